import { assert } from "../../../src/base/assert.ts";
import { latin1Bytes, latin1Text } from "../../../src/base/bytes.ts";
import { instant } from "../../../src/base/time.ts";
import { decodeUtf8, encodeUtf8 } from "../../../src/base/utf8.ts";
import { OfferRelay } from "../../../src/protocol/tracker/offer-relay.ts";
import { Tracker } from "../../../src/protocol/tracker/tracker.ts";
import {
  decodeHttpAnnounceRequest,
  decodeHttpScrapeRequest,
  encodeHttpAnnounceResponse,
  encodeHttpScrapeResponse,
} from "../../../src/wire/tracker/server-http.ts";
import {
  decodeUdpRequest,
  encodeUdpAnnounceResponse,
  encodeUdpScrapeResponse,
} from "../../../src/wire/tracker/server-udp.ts";
import { decodeWsRequest } from "../../../src/wire/tracker/server-ws.ts";
import { decodeWsReply } from "../../../src/wire/tracker/ws.ts";
import { seededRandom } from "../../seeded-random.ts";
import type { FuzzTarget } from "../contract.ts";
import { repeated } from "../extremes.ts";

const NOW = instant(1_000_000);
const HASH = "%12%34%56%78%9a%bc%de%f1%23Eg%89%ab%cd%ef%124Vx%9a";
const PEER = "-SL0001-abcdefghijkl";

/** A new tracker that accepts all infohashes. */
function freshTracker(): Tracker {
  return new Tracker({
    isTracked: () => true,
    ownAddresses: () => [{ host: "192.168.1.2", port: 8621 }],
    random: seededRandom(1),
  });
}

const http: FuzzTarget = {
  name: "tracker-question-http",
  corpus: () =>
    [
      `info_hash=${HASH}&peer_id=${PEER}&port=6881&uploaded=0&downloaded=0&left=0&compact=1&event=started&numwant=50`,
      `peer_id=${PEER}&info_hash=${HASH}&port=1&left=7&event=stopped&numwant=-1&key=abc&ip=1.2.3.4`,
      `info_hash=${HASH}&info_hash=${HASH}`,
    ].map(latin1Bytes),
  words: ["&info_hash=", "&port=", "%", "+", "=", "&event=completed", "&numwant="].map(latin1Bytes),
  extremes: () => [
    repeated("info_hash=", "%ff", "", 8_000),
    repeated("", "info_hash=%&", "", 60_000),
    repeated(`info_hash=${HASH}&peer_id=${PEER}&port=1`, "&", "", 8_000),
  ],
  run(bytes) {
    const query = latin1Text(bytes);
    if (/(?:^|&)port=/.test(query)) {
      const question = decodeHttpAnnounceRequest(query);
      assert(question.port >= 0 && question.port < 65_536, "a port");
      const asker = { host: "60.0.0.1", isForeign: false };
      const answer = freshTracker().announce(question, asker, NOW);
      return "refused" in answer ? answer : encodeHttpAnnounceResponse(answer, asker.host);
    }
    const infohashes = decodeHttpScrapeRequest(query);
    assert(infohashes.length <= 74, "a bounded scrape");
    return encodeHttpScrapeResponse(
      infohashes.map((each) => [each, { seeders: 0, leechers: 0, completed: 0 }]),
    );
  },
};

function announceQuestion(event: number): Uint8Array {
  const bytes = new Uint8Array(98).fill(7);
  const view = new DataView(bytes.buffer);
  view.setUint32(8, 1);
  view.setUint32(80, event);
  view.setInt32(92, -1);
  return bytes;
}

function scrapeQuestion(count: number): Uint8Array {
  const bytes = new Uint8Array(16 + 20 * count).fill(9);
  new DataView(bytes.buffer).setUint32(8, 2);
  return bytes;
}

const udp: FuzzTarget = {
  name: "tracker-question-udp",
  corpus: () => [
    Uint8Array.of(0, 0, 4, 0x17, 0x27, 0x10, 0x19, 0x80, 0, 0, 0, 0, 1, 2, 3, 4),
    announceQuestion(0),
    announceQuestion(3),
    new Uint8Array([...announceQuestion(2), 2, 9, ...latin1Bytes("/announce"), 0]),
    scrapeQuestion(1),
    scrapeQuestion(74),
  ],
  extremes: () => [scrapeQuestion(3000), new Uint8Array(65_000).fill(1)],
  run(bytes) {
    const question = decodeUdpRequest(bytes);
    if (question.kind === "connect") return question;
    if (question.kind === "scrape") {
      const counts = question.infohashes.map(() => ({ seeders: 1, leechers: 2, completed: 3 }));
      const answer = encodeUdpScrapeResponse(question.transaction, counts);
      assert(answer.length <= bytes.length, "no more than was asked with");
      return answer;
    }
    const asker = { host: "60.0.0.1", isForeign: false };
    const answer = freshTracker().announce(question.announce, asker, NOW, 4);
    return "refused" in answer ? answer : encodeUdpAnnounceResponse(question.transaction, answer, 4);
  },
};

const INFO = "abcdefghijklmnopqrst";
const OFFER = { type: "offer", sdp: "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\n" };

const wsQuestion: FuzzTarget = {
  name: "tracker-question-ws",
  corpus: () =>
    [
      {
        action: "announce",
        info_hash: INFO,
        peer_id: "-WW0111-abcdefghijkl",
        numwant: 2,
        left: 5,
        event: "started",
        offers: [
          { offer: OFFER, offer_id: "\x01\xff23456789012345678" },
          { offer: OFFER, offer_id: "1" },
        ],
      },
      {
        action: "announce",
        info_hash: INFO,
        peer_id: "-WW0111-abcdefghijkl",
        to_peer_id: "-WW0111-bbbbbbbbbbbb",
        answer: { type: "answer", sdp: "v=0" },
        offer_id: "1",
      },
      {
        action: "announce",
        info_hash: INFO,
        peer_id: "-SL0111-abcdefghijkl",
        port: 8621,
        numwant: 50,
        left: 1,
      },
      { action: "scrape", info_hash: [INFO, "\xff".repeat(20)] },
      { action: "scrape", info_hash: INFO },
    ].map((message) => encodeUtf8(JSON.stringify(message))),
  words: ['"offers":', '"answer":', "[", "{", "null", '"\\u0000"', "1e999"].map(latin1Bytes),
  extremes: () => [
    repeated("", "[", "", 60_000),
    repeated("", '{"a":', "", 60_000),
    repeated('{"action":"scrape","info_hash":[', '"abcdefghijklmnopqrst",', "1]}", 60_000),
  ],
  run(bytes) {
    // Two other peers are connected; each output goes to a connected peer and fits into a frame.
    const relay = new OfferRelay(freshTracker(), () => true, seededRandom(1));
    for (const id of [1, 2, 3]) {
      assert(relay.opened(id, { host: "60.0.0.1", isForeign: id === 3 }), "room for three");
      if (id === 3) break;
      const peerId = `-WW0111-${(id === 1 ? "b" : "c").repeat(12)}`;
      relay.received(id, JSON.stringify({ action: "announce", info_hash: INFO, peer_id: peerId }), NOW);
    }
    while (relay.poll());
    const text = decodeUtf8(bytes);
    relay.received(3, text, NOW);
    for (let output = relay.poll(); output; output = relay.poll()) {
      assert(output.to >= 1 && output.to <= 3, "a connected peer");
      if (output.kind === "send")
        assert(encodeUtf8(output.text).length <= 65_535, "a message that fits a frame");
    }
    relay.closed(3);
    return [relay, decodeWsRequest(text)];
  },
};

const wsReply: FuzzTarget = {
  name: "tracker-reply-ws",
  corpus: () =>
    [
      {
        action: "announce",
        info_hash: INFO,
        interval: 120,
        complete: 3,
        incomplete: 4,
        "tracker id": "x\xff",
      },
      {
        action: "announce",
        info_hash: INFO,
        "min interval": 5,
        peers: [{ ip: "1.2.3.4", port: 5 }, { ip: "::1" }],
      },
      { action: "announce", info_hash: INFO, offer: OFFER, offer_id: "1", peer_id: "-WW0111-abcdefghijkl" },
      { action: "scrape", files: { [INFO]: { complete: 1, incomplete: 2, downloaded: 3 } } },
      { "failure reason": "not today", "warning message": "slow" },
    ].map((message) => encodeUtf8(JSON.stringify(message))),
  words: ['"peers":', '"files":', "[", "{", "null", "-1", "1e999"].map(latin1Bytes),
  extremes: () => [
    repeated("", "[", "", 60_000),
    repeated(
      '{"action":"announce","info_hash":"abcdefghijklmnopqrst","peers":[',
      '{"ip":"::1","port":1},',
      "0]}",
      60_000,
    ),
  ],
  run(bytes) {
    const reply = decodeWsReply(decodeUtf8(bytes));
    if (reply.kind !== "announce" || !reply.reply.ok) return reply;
    const { intervalSeconds, peers } = reply.reply;
    assert(intervalSeconds >= 30 && intervalSeconds <= 7200, "an interval within limits");
    assert(peers.length <= 1000, "not too many peers");
    for (const { port } of peers) assert(port > 0 && port < 65_536, "a port");
    return reply;
  },
};

export const targets = [http, udp, wsQuestion, wsReply];
