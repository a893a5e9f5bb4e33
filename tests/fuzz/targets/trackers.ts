import { assert } from "../../../src/base/assert.ts";
import { latin1Bytes, latin1Text } from "../../../src/base/bytes.ts";
import type { Infohash } from "../../../src/base/ids.ts";
import type { AnnounceReply } from "../../../src/wire/tracker/announce.ts";
import {
  decodeHttpAnnounce,
  decodeHttpScrape,
  httpAnnounceUrl,
  httpScrapeUrl,
} from "../../../src/wire/tracker/http.ts";
import { decodeUdpReply, encodeUdpAnnounce } from "../../../src/wire/tracker/udp.ts";
import { trackerUrlProblem } from "../../../src/wire/tracker/url.ts";
import { announceRequest } from "../../parts/announce-request.ts";
import type { FuzzTarget } from "../contract.ts";
import { repeated } from "../extremes.ts";
import { mutateBencode } from "../mutate-bencode.ts";

const INFOHASH = "61".repeat(20) as Infohash;

const announce: FuzzTarget = {
  name: "tracker-http",
  corpus: () =>
    [
      "d8:intervali1800e5:peers12:\x01\x02\x03\x04\x1a\xe1\x05\x06\x07\x08\x1a\xe1e",
      "d8:completei5e10:incompletei2e8:intervali60e12:min intervali30e5:peersld2:ip7:1.2.3.44:porti6881eeee",
      `d8:intervali1800e5:peers0:6:peers618:${"\x20".repeat(18)}10:tracker id3:abce`,
      "d14:failure reason9:not todaye",
      "d8:completei9e11:external ip4:\x05\x06\x07\x0810:incompletei3e8:intervali60e5:peers0:e",
      "d5:peers0:8:intervali9e15:warning message4:slowe\r\n",
    ].map(latin1Bytes),
  extremes: () => [
    repeated("d5:peers60000:", "\x01\x02\x03", "e", 60_015),
    repeated("d6:peers664800:", "\x20\x01\x02\x03", "e", 64_816),
    repeated("d5:peersl", "d2:ip7:1.2.3.44:porti6881ee", "ee", 20_000),
  ],
  mutate: mutateBencode,
  run(bytes) {
    const reply: AnnounceReply = decodeHttpAnnounce(bytes);
    if (!reply.ok) return reply;
    assert(reply.intervalSeconds >= 30 && reply.intervalSeconds <= 7200, "an interval within limits");
    assert(reply.peers.length <= 1000, "not too many peers");
    for (const { port } of reply.peers) assert(port > 0 && port < 65536, "a port");
    return reply;
  },
};

const scrape: FuzzTarget = {
  name: "tracker-http-scrape",
  corpus: () => [
    latin1Bytes(`d5:filesd20:${"a".repeat(20)}d8:completei5e10:downloadedi50e10:incompletei10eeee`),
    latin1Bytes("d5:filesdee"),
  ],
  mutate: mutateBencode,
  run: (bytes) => decodeHttpScrape(bytes, INFOHASH),
};

function udpReply(...words: number[]): Uint8Array {
  const bytes = new Uint8Array(4 * words.length);
  for (const [i, word] of words.entries()) new DataView(bytes.buffer).setUint32(4 * i, word);
  return bytes;
}

const udp: FuzzTarget = {
  name: "tracker-udp",
  corpus: () => [
    udpReply(0, 7, 1, 2),
    udpReply(1, 7, 1800, 3, 4, 0x01020304, 0x1ae10506, 0x07081ae1),
    udpReply(2, 7, 1, 2, 3),
    udpReply(3, 7, 0x6f6f7073),
  ],
  extremes: () => [repeated("\0\0\0\x01\0\0\0\x07", "\x01\x02\x03\x04", "", 60_020)],
  run: (bytes) => [decodeUdpReply(bytes, bytes.length % 2 === 0 ? 4 : 6)],
};

const url: FuzzTarget = {
  name: "tracker-url",
  corpus: () =>
    [
      "http://t.example/announce",
      "udp://[2001:db8::1]:80/announce?a=b#c",
      "https://t.example:1/x/announce.php?passkey=1",
    ].map(latin1Bytes),
  words: ["info_hash=", "@", "#", "?", "/", "\\", "%0d%0a", "\n"].map(latin1Bytes),
  run(bytes) {
    const text = latin1Text(bytes);
    if (trackerUrlProblem(text) !== undefined) return undefined;
    const request = announceRequest(text, { infohash: INFOHASH });
    const announceUrl = httpAnnounceUrl(request);
    assert(!/[\s#]/.test(announceUrl), "a clean URL");
    encodeUdpAnnounce(new Uint8Array(8), 1, request);
    return [announceUrl, httpScrapeUrl(text, INFOHASH)];
  },
};

export const targets = [announce, scrape, udp, url];
