import { assert } from "../../../src/base/assert.ts";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { decodeUtf8 } from "../../../src/base/utf8.ts";
import { parseMagnet } from "../../../src/wire/torrent/magnet.ts";
import type { FuzzTarget } from "../contract.ts";
import { repeated } from "../extremes.ts";

const HASH = "de2fb17b7a45e455815ca4894197bf45e75ee01f";
const CORPUS = [
  `magnet:?xt=urn:btih:${HASH}`,
  `magnet:?xt=urn:btih:${HASH}&dn=a+b%20c%C3%A9&tr=udp%3A%2F%2Ft.example%3A80%2Fannounce&xl=12345`,
  `magnet:?xt=urn:btih:3YX3C632IXSFLAK4USEUDF57IXTV5YA7&x.pe=1.2.3.4:5&x.pe=[2001:db8::1]:6&x.pe=host.example:7`,
  `MAGNET:?xt.1=urn:btih:${HASH}&so=0,2-5,9&ws=http://w.example/f&xs=http://x.example/t.torrent&amp;tr=http://t/announce`,
  `magnet:?xt=urn:btmh:1220${"ab".repeat(32)}`,
  `magnet:?xs=urn:btpk:${"ab".repeat(32)}&s=6c697665`,
];

export const target: FuzzTarget = {
  name: "magnet",
  corpus: () => CORPUS.map(latin1Bytes),
  extremes: () =>
    [
      "&a=",
      "&tr=http://x",
      "&so=0-9000",
      "0-9000,",
      "%",
      "&x.pe=1.2.3.4:5",
      "&xt=urn:btih:",
      "&amp;",
      "&dn=+",
      " .",
    ].map((unit) => repeated(`${CORPUS[0]}&so=`, unit)),
  words: ["&tr=", "&x.pe=", "%", "%00", "&so=0-99999", "[", "]:1", "&amp;", "xt=urn:btih:", "0x7f.1:1"].map(
    latin1Bytes,
  ),
  run(bytes) {
    const magnet = parseMagnet(decodeUtf8(bytes));
    if (magnet.infohash !== undefined) assert(/^[0-9a-f]{40}$/.test(magnet.infohash), "an infohash");
    else assert(magnet.item.key.length === 32 && magnet.item.salt.length <= 64, "a key and a salt");
    assert(magnet.trackers.length <= 100 && magnet.peers.length <= 100, "few entries");
    assert((magnet.selectOnly?.length ?? 0) <= 10_000, "few files");
    for (const { port } of magnet.peers) assert(port > 0 && port < 65536, "a port");
    return magnet;
  },
};
