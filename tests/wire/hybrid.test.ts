import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../../src/base/errors.ts";
import { type BencodeInput, bencodeDict, encodeBencode } from "../../src/wire/bencode-encode.ts";
import { parseInfo } from "../../src/wire/torrent/metainfo.ts";

type Members = Readonly<Record<string, BencodeInput | undefined>>;

const PIECE = 16_384;
const leaf = (length: number, root: Uint8Array | undefined = new Uint8Array(32).fill(1)) =>
  bencodeDict({ "": bencodeDict({ length, "pieces root": length > 0 ? root : undefined }) });

/** Returns the info dictionary of a hybrid with three files and two pads, with changes. */
function hybrid(changes: Members = {}): Uint8Array {
  const files = [
    { length: 100, path: ["a"] },
    { attr: "p", length: PIECE - 100, path: [".pad", "16284"] },
    { length: PIECE, path: ["sub", "b"] },
    { length: 0, path: ["sub", "c"] },
    { length: 5, path: ["z"] },
  ];
  const tree = bencodeDict({
    a: leaf(100),
    sub: bencodeDict({ b: leaf(PIECE), c: leaf(0) }),
    z: leaf(5),
  });
  return encodeBencode(
    bencodeDict({
      "file tree": tree,
      files: files.map(bencodeDict),
      "meta version": 2,
      name: "h",
      "piece length": PIECE,
      pieces: new Uint8Array(60),
      ...changes,
    }),
  );
}

test("parseInfo: a hybrid counts as v1 if its v1 and v2 metadata list the same files", () => {
  const info = parseInfo(hybrid());
  assert.equal(info.pieceCount, 3);
  assert.deepEqual(
    info.files.filter(({ isPad }) => !isPad).map(({ path, offset }) => [path.join("/"), offset]),
    [
      ["a", 0],
      ["sub/b", PIECE],
      ["sub/c", 2 * PIECE],
      ["z", 2 * PIECE],
    ],
  );
  const one = { files: undefined, length: 100, pieces: new Uint8Array(20) };
  assert.equal(parseInfo(hybrid({ ...one, "file tree": bencodeDict({ h: leaf(100) }) })).files.length, 1);
});

const folder = (tree: Members) => ({ "file tree": bencodeDict(tree) });
const REFUSED: readonly (readonly [string, Members, RegExp])[] = [
  ["another length", folder({ a: leaf(99), sub: bencodeDict({ b: leaf(PIECE) }) }), /file 0 \(a\)/],
  ["another name", folder({ x: leaf(100), sub: bencodeDict({ b: leaf(PIECE) }) }), /file 0 \(a\)/],
  ["a file too few", folder({ a: leaf(100) }), /file 2 \(sub\/b\)/],
  [
    "a file too many",
    folder({ a: leaf(100), sub: bencodeDict({ b: leaf(PIECE), c: leaf(0) }), z: leaf(5), zz: leaf(1) }),
    /1 files are missing/,
  ],
  [
    "no pads",
    {
      files: [
        { length: 100, path: ["a"] },
        { length: 2 * PIECE, path: ["b"] },
      ].map(bencodeDict),
      ...folder({ a: leaf(100), b: leaf(2 * PIECE) }),
    },
    /file 1 \(b\) does not start at a piece boundary/,
  ],
  ["another version", { "meta version": 3 }, /meta version 2, not 3/],
  ["no version", { "meta version": undefined }, /meta version 2, not undefined/],
  ["a tree of the wrong type", { "file tree": 5 }, /dictionary of files/],
  ["an empty tree", folder({}), /has no files/],
  ["an entry of the wrong type", folder({ a: 5 }), /not a dictionary/],
  ["a root that is too short", folder({ a: leaf(100, new Uint8Array(31)) }), /32 bytes, not 31/],
  ["a length below 0", folder({ a: leaf(-1) }), /file length/],
];

for (const [what, changes, message] of REFUSED) {
  test(`parseInfo: refuses a hybrid with ${what}`, () => {
    assert.throws(
      () => parseInfo(hybrid(changes)),
      (error) => error instanceof DecodeError && message.test(error.message),
    );
  });
}

test("parseInfo: refuses a file tree that is too deep", () => {
  let tree = bencodeDict({ a: leaf(1) });
  for (let depth = 0; depth < 120; depth++) tree = bencodeDict({ a: tree });
  assert.throws(() => parseInfo(hybrid({ "file tree": tree })), DecodeError);
});
