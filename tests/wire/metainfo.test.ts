import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes, latin1Text, toHex } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { type BencodeInput, bencodeDict, encodeBencode } from "../../src/wire/bencode-encode.ts";
import {
  makeTransportFile,
  parseInfo,
  parseTransportFile,
  readDhtNodes,
} from "../../src/wire/torrent/metainfo.ts";
import { webSeedPaths } from "../../src/wire/torrent/web-seed-paths.ts";
import { makeTorrent, sha1 } from "./make-torrent.ts";

type Members = Readonly<Record<string, BencodeInput | undefined>>;

/** Returns an info dictionary of one file of 425 bytes, with changes. */
function info(changes: Members = {}): Uint8Array {
  const members = { name: "temp", length: 425, "piece length": 16_384, pieces: new Uint8Array(20) };
  return encodeBencode(bencodeDict({ ...members, ...changes }));
}

/** Returns an info dictionary with a list of files. */
function multi(files: readonly Members[], changes: Members = {}): Uint8Array {
  return info({ length: undefined, files: files.map(bencodeDict), ...changes });
}

const paths = (infoBytes: Uint8Array) => parseInfo(infoBytes).files.map(({ path }) => path.join("/"));

test("parseTransportFile reads one file: names, lengths, hashes, infohash, file hash", () => {
  const made = makeTorrent({
    name: "film.mp4",
    files: [{ path: "film.mp4", bytes: new Uint8Array(40_000).fill(7) }],
    pieceLength: 16_384,
    trackers: [["http://a.example/announce"], ["udp://b.example:80", "udp://c.example:80"]],
    private: true,
    extra: { comment: "hello", "created by": "x", "url-list": "http://w.example/" },
  });
  const file = parseTransportFile(made.bytes, sha1);
  assert.equal(file.infohash, made.infohash);
  assert.equal(file.fileHash, toHex(sha1(made.bytes)));
  assert.deepEqual(file.infoBytes, made.infoBytes);
  assert.equal(file.comment, "hello");
  assert.deepEqual(file.trackers, [
    ["http://a.example/announce"],
    ["udp://b.example:80", "udp://c.example:80"],
  ]);
  const { pieceHashes, ...rest } = file.info;
  assert.deepEqual(pieceHashes.subarray(0, 20), sha1(made.content.subarray(0, 16_384)));
  assert.deepEqual(rest, {
    name: "film.mp4",
    pieceLength: 16_384,
    pieceCount: 3,
    length: 40_000,
    isPrivate: true,
    files: [{ path: ["film.mp4"], length: 40_000, offset: 0, isPad: false, isSymlink: false }],
  });
});

test("parseTransportFile reads many files, pads and links (BEP 47)", () => {
  const bytes = multi([
    { length: 100, path: ["a", "b.mkv"] },
    { attr: "p", length: 28 },
    { attr: "xl", length: 5, path: ["link"], "symlink path": ["a", "b.mkv"] },
    { attr: "h", length: 7, path: ["c"] },
  ]);
  const { files, length } = parseInfo(bytes);
  assert.equal(length, 135);
  assert.deepEqual(
    files.map((file) => [file.path.join("/"), file.offset, file.length, file.isPad, file.isSymlink]),
    [
      ["a/b.mkv", 0, 100, false, false],
      [".pad/28", 100, 28, true, false],
      ["link", 128, 0, false, true],
      ["c", 128, 7, false, false],
    ],
  );
});

// Malicious or careless paths, and their display form.
const PATHS: readonly (readonly [readonly string[], string])[] = [
  [["a", "b"], "a/b"],
  [["", ""], "file 1"],
  [[".."], "file 1"],
  [["..", "..", "etc", "passwd"], "etc/passwd"],
  [[".", "a"], "a"],
  [["/etc/passwd"], "_etc_passwd"],
  [["..\\..\\x"], ".._.._x"],
  [["C:\\x"], "C__x"],
  [["a\0b\nc"], "abc"],
  [["\u202egpj.exe"], "gpj.exe"],
  [["  spaced  "], "spaced"],
  [["..."], "..."],
  [["\xff\xfe"], "\ufffd\ufffd"],
  [[`${"x".repeat(300)}.mkv`], `${"x".repeat(236)}.mkv`],
];

test("parseInfo makes every path safe to show", () => {
  for (const [path, shown] of PATHS) {
    const elements = path.map((element) =>
      /[\u0100-\uffff]/.test(element) ? new TextEncoder().encode(element) : element,
    );
    assert.deepEqual(paths(multi([{ length: 425, path: elements }])), [shown], JSON.stringify(path));
  }
});

test("parseInfo makes equal paths unique", () => {
  const file = { length: 1, path: ["foo", "bar.txt"] };
  const taken = { length: 1, path: ["foo", "bar (2).txt"] };
  assert.deepEqual(paths(multi([taken, file, file, file])), [
    "foo/bar (2).txt",
    "foo/bar.txt",
    "foo/bar (3).txt",
    "foo/bar (4).txt",
  ]);
});

test("parseInfo handles 100,000 equal names quickly", () => {
  const files = Array.from({ length: 100_000 }, () => ({ length: 1, path: ["a"] }));
  const infoBytes = multi(files, { pieces: new Uint8Array(20 * 7) });
  assert.equal(new Set(paths(infoBytes)).size, 100_000);
});

test("parseInfo prefers UTF-8 names", () => {
  const utf8 = new TextEncoder().encode("日本");
  const bytes = multi([{ length: 425, path: ["x"], "path.utf-8": [utf8] }], { "name.utf-8": utf8 });
  assert.deepEqual([parseInfo(bytes).name, ...paths(bytes)], ["日本", "日本"]);
});

test("parseInfo calls content without a usable name unnamed", () => {
  for (const name of ["", "..", "\0", " "]) assert.equal(parseInfo(info({ name })).name, "unnamed");
});

test("parseInfo accepts odd piece lengths", () => {
  assert.equal(parseInfo(info({ "piece length": 100, pieces: new Uint8Array(100) })).pieceCount, 5);
  assert.equal(parseInfo(info({ "piece length": 32 * 1024 * 1024 })).pieceCount, 1);
  // Content smaller than one piece: the piece length has no effect.
  assert.equal(parseInfo(info({ "piece length": 536_854_528 })).pieceCount, 1);
});

const BAD: readonly (readonly [string, Uint8Array, RegExp])[] = [
  ["no piece length", info({ "piece length": undefined }), /piece length/],
  ["piece length is text", info({ "piece length": "16384" }), /piece length/],
  ["piece length is 0", info({ "piece length": 0 }), /piece length/],
  ["piece length is negative", info({ "piece length": -16_384 }), /piece length/],
  ["pieces are huge", info({ length: 33_554_433, "piece length": 33_554_433 }), /piece length/],
  ["piece length is huge", info({ "piece length": 536_854_529 }), /piece length/],
  ["no name", info({ name: undefined }), /no name/],
  ["name is a number", info({ name: 5 }), /no name/],
  ["negative length", info({ length: -425 }), /file length/],
  ["length is text", info({ length: "425" }), /file length/],
  ["no length and no files", info({ length: undefined }), /file length/],
  ["no content", info({ length: 0, pieces: "" }), /the content is empty/],
  ["no pieces", info({ pieces: undefined }), /no piece hashes/],
  ["pieces is a list", info({ pieces: [] }), /no piece hashes/],
  ["unaligned pieces", info({ pieces: new Uint8Array(19) }), /piece hashes/],
  ["too few pieces", info({ length: 16_385 }), /expected 2 piece hashes, not 1/],
  ["too many pieces", info({ pieces: new Uint8Array(40) }), /expected 1 piece hashes, not 2/],
  ["too many pieces to hold", info({ length: 2 ** 40, "piece length": 1024 }), /more than 2097152 pieces/],
  ["version 2 only", info({ pieces: undefined, "meta version": 2 }), /BitTorrent v2 only/],
  ["no files in the list", multi([]), /list of files/],
  ["files is a dictionary", info({ files: new Map() }), /list of files/],
  ["a file is a number", info({ files: [1] }), /not a dictionary/],
  ["a file without length", multi([{ path: ["a"] }]), /file length/],
  ["a file of negative length", multi([{ length: -1, path: ["a"] }]), /file length/],
  ["a file without path", multi([{ length: 425 }]), /no path/],
  ["a path that is text", multi([{ length: 425, path: "a" }]), /no path/],
  ["an empty path list", multi([{ length: 425, path: [] }]), /no path/],
  ["a path of numbers", multi([{ length: 425, path: [1] }]), /not a string/],
  ["a path that is too deep", multi([{ length: 425, path: Array(101).fill("a") }]), /too many elements/],
  [
    "more bytes than numbers hold",
    multi(Array(3).fill({ length: Number.MAX_SAFE_INTEGER, path: ["a"] })),
    /2\^53/,
  ],
  ["too many files", multi(Array(100_001).fill({ length: 0, path: ["a"] })), /more than 100000 files/],
];

test("parseInfo refuses contradictions and states the reason", () => {
  for (const [what, bytes, message] of BAD) {
    assert.throws(
      () => parseInfo(bytes),
      (error) => error instanceof DecodeError && message.test(error.message),
      what,
    );
  }
});

test("parseTransportFile refuses malformed files", () => {
  const parse = (text: string) => () => parseTransportFile(latin1Bytes(text), sha1);
  assert.throws(parse("de"), /no info/);
  assert.throws(parse("4:spam"), /expected a dictionary/);
  assert.throws(parse("d4:infoi5ee"), /info is not a dictionary/);
  assert.throws(parse("<html>"), DecodeError);
  assert.throws(() => parseTransportFile(new Uint8Array(10_000_001), sha1), /larger than 10000000/);
});

// As in libtorrent: the infohash protects the info dictionary, and the rest of the file is only advice.
const NOT_CANONICAL: readonly (readonly [string, (info: string) => string])[] = [
  ["ends in a newline", (text) => `d4:info${text}e\n`],
  ["has bytes after its end", (text) => `d4:info${text}e\0\0garbage`],
  ["has unsorted keys", (text) => `d4:info${text}7:comment2:hie`],
  ["has repeated keys", (text) => `d4:info${text}4:info3:xyze`],
  ["has leading zeros", (text) => `d004:info${text}3:onei01ee`],
  ["has an integer of 64 bits", (text) => `d4:info${text}4:sizei9223372036854775807ee`],
];

for (const [what, wrap] of NOT_CANONICAL) {
  test(`parseTransportFile accepts a file that ${what}`, () => {
    const bytes = latin1Bytes(wrap(latin1Text(info())));
    const file = parseTransportFile(bytes, sha1);
    assert.equal(file.infohash, toHex(sha1(info())));
    assert.equal(file.fileHash, toHex(sha1(bytes)));
    assert.equal(file.bytes, bytes);
    assert.deepEqual(readDhtNodes(bytes), []);
  });
}

test("parseInfo accepts metadata with unsorted and repeated keys: the first value counts", () => {
  const text = latin1Text(info()).replace("6:lengthi425e", "").replace(/e$/, "6:lengthi425e4:name5:othere");
  const unsorted = latin1Bytes(text);
  assert.deepEqual({ ...parseInfo(unsorted) }, { ...parseInfo(info()) });
  assert.deepEqual(webSeedPaths(unsorted), ["temp"]);
  assert.deepEqual(parseTransportFile(makeTransportFile(unsorted, []), sha1).infoBytes, unsorted);
  assert.throws(() => parseInfo(latin1Bytes(`${text}\n`)), /after the end of the value/);
});

test("parseTransportFile keeps the supported trackers", () => {
  const tiers = [
    ["gopher://x/announce", " udp://test.example/announce "],
    [],
    ["udp://test.example/announce", 5],
    7,
  ];
  const withList = encodeBencode(
    bencodeDict({ announce: "http://a.example/announce", "announce-list": tiers, info: new Map() }),
  );
  const text = latin1Text(withList).replace("4:infode", `4:info${latin1Text(info())}`);
  assert.deepEqual(parseTransportFile(latin1Bytes(text), sha1).trackers, [["udp://test.example/announce"]]);
  const single = `d8:announce25:http://a.example/announce4:info${latin1Text(info())}e`;
  assert.deepEqual(parseTransportFile(latin1Bytes(single), sha1).trackers, [["http://a.example/announce"]]);
});

test("makeTransportFile wraps metadata so that it reads back with the same infohash", () => {
  const infoBytes = info();
  for (const tiers of [[], [["http://a.example/announce"], [], ["udp://b.example:1"]]]) {
    const file = parseTransportFile(makeTransportFile(infoBytes, tiers), sha1);
    assert.equal(file.infohash, toHex(sha1(infoBytes)));
    assert.deepEqual(
      file.trackers,
      tiers.filter((tier) => tier.length > 0),
    );
  }
});
