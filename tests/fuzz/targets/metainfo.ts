import { assert } from "../../../src/base/assert.ts";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { type Info, parseInfo, parseTransportFile } from "../../../src/wire/torrent/metainfo.ts";
import { makeTorrent } from "../../wire/make-torrent.ts";
import type { FuzzTarget } from "../contract.ts";
import { repeated } from "../extremes.ts";
import { mutateBencode } from "../mutate-bencode.ts";

const MADE = [
  makeTorrent({
    name: "one.mp4",
    files: [{ path: "one.mp4", bytes: new Uint8Array(40_000) }],
    pieceLength: 16_384,
  }),
  makeTorrent({
    name: "séries",
    files: [
      { path: "a/b.mkv", bytes: new Uint8Array(100) },
      { path: ".pad/28", bytes: new Uint8Array(28), attr: "p" },
      { path: "a/b.mkv", bytes: new Uint8Array(0) },
      { path: "..", bytes: new Uint8Array(1), attr: "lx" },
      { path: "c", bytes: new Uint8Array(7) },
    ],
    pieceLength: 128,
    trackers: [["http://a.example/announce", "udp://b.example:1"], ["https://c.example/announce?k=1"]],
    private: true,
    extra: { comment: "hello", "creation date": 1 },
  }),
];

const transportFile: FuzzTarget = {
  name: "transport-file",
  corpus: () => MADE.map(({ bytes }) => bytes),
  words: ["8:announce0:", "i1e", "6:lengthi9e", "4:pathl2:..e", "6:pieces0:", "12:meta versioni2e"].map(
    latin1Bytes,
  ),
  mutate: mutateBencode,
  run(bytes) {
    // The hash is not part of the decoder, so a trivial one suffices.
    const file = parseTransportFile(bytes, () => new Uint8Array(20));
    check(file.info);
    assert(file.trackers.flat().length <= 100, "few trackers");
    return file;
  },
};

/** End of an extreme input after the file list: one byte of content in one piece. */
const TAIL = `d6:lengthi1e4:pathl1:zeee4:name1:x12:piece lengthi1e6:pieces20:${"h".repeat(20)}e`;
const EMPTY_FILES = [
  "d6:lengthi0e4:pathl1:aee",
  "d6:lengthi0e4:pathl0:ee",
  "d6:lengthi0e4:pathl2:\xc3\xa9ee",
  "d4:attr1:p6:lengthi0ee",
];

const info: FuzzTarget = {
  name: "info",
  corpus: () => MADE.map(({ infoBytes }) => infoBytes),
  extremes: () => [
    ...EMPTY_FILES.map((unit) => repeated("d5:filesl", unit, TAIL)),
    repeated("d5:filesl", `d6:lengthi0e4:pathl${"1:a".repeat(100)}ee`, TAIL, 50_000),
  ],
  mutate: mutateBencode,
  run(bytes) {
    const parsed = parseInfo(bytes);
    check(parsed);
    return parsed;
  },
};

/** Checks the invariants that later code relies on. */
function check(info: Info): void {
  assert(info.pieceCount === Math.ceil(info.length / info.pieceLength), "the pieces cover the content");
  assert(info.pieceHashes.length === 20 * info.pieceCount, "a hash for each piece");
  let offset = 0;
  const paths = new Set<string>();
  for (const file of info.files) {
    assert(file.offset === offset && file.length >= 0, "files follow one another");
    offset += file.length;
    assert(file.path.length > 0, "every file has a path");
    for (const element of file.path) {
      assert(
        element !== "" && element !== ".." && element !== "." && !/[\p{Cc}/\\]/u.test(element),
        `safe: ${element}`,
      );
    }
    if (file.isPad) continue;
    assert(!paths.has(file.path.join("/")), "every path that is shown is its own");
    paths.add(file.path.join("/"));
  }
  assert(offset === info.length, "files make up the content");
}

export const targets = [transportFile, info];
