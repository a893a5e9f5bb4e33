import { assert } from "../../../src/base/assert.ts";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { decodeMutableTorrent } from "../../../src/wire/dht/head-record.ts";
import type { FuzzTarget } from "../contract.ts";
import { mutateBencode } from "../mutate-bencode.ts";

const ID = "a".repeat(20);
const CORPUS = [`d2:ih20:${ID}e`, `d3:cid20:${ID}2:ih20:${ID}e`, `d2:ih20:${ID}1:xl1:ai1eee`].map(
  latin1Bytes,
);

export const targets: FuzzTarget[] = [
  {
    name: "mutable-torrent",
    corpus: () => CORPUS,
    words: ["2:ih", "3:cid", "20:", `20:${ID}`].map(latin1Bytes),
    mutate: mutateBencode,
    // The largest value of a DHT item (BEP 44).
    maxBytes: 1_000,
    run(bytes) {
      const infohash = decodeMutableTorrent(bytes);
      assert(/^[0-9a-f]{40}$/.test(infohash), "an infohash");
      return infohash;
    },
  },
];
