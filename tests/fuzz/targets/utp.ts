import { createHash } from "node:crypto";
import { assert } from "../../../src/base/assert.ts";
import { type Random, randomBelow } from "../../../src/base/random.ts";
import { instant } from "../../../src/base/time.ts";
import { UtpTable } from "../../../src/protocol/utp/table.ts";
import { decodeUtpPacket, encodeUtpPacket, type UtpKind } from "../../../src/wire/utp-packet.ts";
import { seededRandom } from "../../seeded-random.ts";
import type { FuzzTarget } from "../contract.ts";

const KINDS: readonly UtpKind[] = ["data", "fin", "state", "reset", "syn"];
const HEADER = { connectionId: 7, timestampUs: 1, delayUs: 2, windowBytes: 3, sequence: 4, ack: 5 };

const packets = KINDS.map((kind) => encodeUtpPacket({ ...HEADER, kind }, { payloadBytes: 4 }));
const CORPUS = [
  ...packets,
  encodeUtpPacket({ ...HEADER, kind: "state" }, { selectiveAck: Uint8Array.of(255, 255, 255, 255) }),
  encodeUtpPacket({ ...HEADER, kind: "data" }, { paddedBytes: 1_352, payloadBytes: 8 }),
];

const decoder: FuzzTarget = {
  name: "utp-packet",
  corpus: () => CORPUS,
  maxBytes: 2_048,
  run(bytes) {
    const packet = decodeUtpPacket(bytes);
    assert(packet.sequence <= 65535 && packet.ack <= 65535, "numbers have 16 bits");
    return packet;
  },
};

/** A sequence of packets, each with two bytes of length, for a table with an open connection. */
const table: FuzzTarget = {
  name: "utp-table",
  corpus: () => [
    joined(CORPUS),
    joined([...CORPUS, ...CORPUS].reverse()),
    ...CORPUS.map((one) => joined([one])),
  ],
  maxBytes: 8_192,
  mutate: (random) => joined(Array.from({ length: 1 + randomBelow(random, 12) }, () => likely(random))),
  run(bytes) {
    const peer = { host: "5.6.7.8", port: 9 };
    const sha1 = (text: Uint8Array) => createHash("sha1").update(text).digest();
    const setup = { random: seededRandom(1), sha1, secret: new Uint8Array(20), acceptsIncoming: true };
    let now = 1_000;
    const target = new UtpTable(setup, instant(now));
    let outBytes = 0;
    const drain = () => {
      for (let output = target.poll(); output; output = target.poll()) {
        if (output.kind === "send") outBytes += output.bytes.length;
      }
    };
    target.handle({ kind: "connect", id: 2, address: peer, timeoutMs: 5_000 }, instant(now));
    drain();
    target.handle({ kind: "write", id: 2, bytes: new Uint8Array(3_000) }, instant(now));
    for (let at = 0; at + 2 <= bytes.length; ) {
      const end = Math.min(bytes.length, at + 2 + (bytes[at]! << 8) + bytes[at + 1]!);
      target.handle({ kind: "datagram", bytes: bytes.slice(at + 2, end), from: peer }, instant(now));
      drain();
      at = end;
      now += 40;
      target.wake(instant(now));
      drain();
    }
    assert(target.size <= 2, "an address that cannot receive our packets gets no connection");
    assert(outBytes < 200_000, "little is sent for little input");
    return outBytes;
  },
};

/** Encodes a packet of the peer of the open connection; its random numbers are the same each time. */
function likely(random: Random): Uint8Array {
  const drawn = seededRandom(1);
  const receiveId = randomBelow(drawn, 65536);
  const first = randomBelow(drawn, 65536);
  const small = () => randomBelow(random, 4);
  const header = {
    kind: KINDS[randomBelow(random, KINDS.length)]!,
    connectionId: receiveId + (random() < 0.2 ? 1 : 0),
    ...{ timestampUs: randomBelow(random, 1 << 30), delayUs: randomBelow(random, 1 << 30) },
    windowBytes: random() < 0.3 ? small() : 1 << 20,
    ...{ sequence: small(), ack: (first + small()) & 0xffff },
  };
  const payloadBytes = randomBelow(random, 40);
  return encodeUtpPacket(header, {
    payloadBytes,
    ...(random() < 0.3 && { selectiveAck: new Uint8Array(4).fill(small()) }),
  });
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [part.length >> 8, part.length & 255, ...part]));
}

export const targets = [decoder, table];
