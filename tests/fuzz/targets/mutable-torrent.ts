import { assert } from "../../../src/base/assert.ts";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { decodeHeadRecord } from "../../../src/wire/live-head-record.ts";
import { decodeMutableTorrent } from "../../../src/wire/mutable-torrent.ts";
import type { FuzzTarget } from "../contract.ts";
import { mutateBencode } from "../mutate-bencode.ts";

const ID = "a".repeat(20);
const CORPUS = [`d2:ih20:${ID}e`, `d3:cid20:${ID}2:ih20:${ID}e`, `d2:ih20:${ID}1:xl1:ai1eee`].map(
  latin1Bytes,
);

const shared = {
  corpus: () => CORPUS,
  words: ["2:ih", "3:cid", "20:", `20:${ID}`].map(latin1Bytes),
  mutate: mutateBencode,
  // An item of the DHT has no more.
  maxBytes: 1_000,
} satisfies Partial<FuzzTarget>;

export const targets: FuzzTarget[] = [
  {
    ...shared,
    name: "mutable-torrent",
    run(bytes) {
      const infohash = decodeMutableTorrent(bytes);
      assert(/^[0-9a-f]{40}$/.test(infohash), "an infohash");
      return infohash;
    },
  },
  {
    ...shared,
    name: "head-record",
    run(bytes) {
      const record = decodeHeadRecord(bytes);
      assert(record.infohash === decodeMutableTorrent(bytes), "readers of BEP 46 find the same");
      return record;
    },
  },
];
