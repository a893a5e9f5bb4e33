import { createHash } from "node:crypto";
import { addressScope } from "../../../src/base/address.ts";
import { assert } from "../../../src/base/assert.ts";
import { concatBytes, latin1Bytes, latin1Text, readU16, writeU16 } from "../../../src/base/bytes.ts";
import { type Random, randomBelow } from "../../../src/base/random.ts";
import { instant } from "../../../src/base/time.ts";
import { encodeUtf8 } from "../../../src/base/utf8.ts";
import { DataChannel } from "../../../src/protocol/webrtc/data-channel.ts";
import { IceAgent } from "../../../src/protocol/webrtc/ice-agent.ts";
import { encodePacket } from "../../../src/protocol/webrtc/sctp-packet.ts";
import { decodeSdp, encodeSdp } from "../../../src/protocol/webrtc/sdp.ts";
import { encodeStun, peekStun } from "../../../src/protocol/webrtc/stun.ts";
import { decodeWsSignal } from "../../../src/protocol/webrtc/tracker-signals.ts";
import type { FuzzTarget } from "../contract.ts";

const sha1 = (bytes: Uint8Array) => new Uint8Array(createHash("sha1").update(bytes).digest());
const PEER = { host: "192.0.2.1", port: 4000 };

const OFFER = encodeSdp(
  {
    ...{ type: "offer", fragment: "abcd", password: "abcdefghijklmnopqrstuvwx", setup: "actpass", mid: "0" },
    ...{ fingerprint: new Uint8Array(32).fill(7), sctpPort: 5000, maxMessageBytes: 262_144 },
    candidates: [PEER, { host: "2001:db8::1", port: 5 }],
  },
  1,
);
/** As Chromium writes it, with a name instead of an address. */
const CHROMIUM = OFFER.replace(
  "a=end-of-candidates",
  "a=candidate:1 1 tcp 2122260223 10.0.0.1 9 typ host tcptype active\r\na=ice-options:trickle\r\n" +
    "a=candidate:1 1 udp 2113937151 0f3ad2b4-11aa.local 51234 typ host generation 0 network-cost 999",
);

const sdp: FuzzTarget = {
  name: "webrtc-sdp",
  corpus: () => [latin1Bytes(OFFER), latin1Bytes(CHROMIUM)],
  maxBytes: 32 * 1024,
  words: ["a=", "m=", "\r\n", ":", " typ host", "sha-256", "candidate", "mid", "active"].map(latin1Bytes),
  run(bytes) {
    const description = decodeSdp("offer", latin1Text(bytes));
    assert(description.candidates.length <= 16, "at most 16 candidates");
    for (const { host, port } of description.candidates)
      assert(addressScope(host) !== undefined && port > 0 && port < 65_536, "candidates are addresses");
    const again = decodeSdp("offer", encodeSdp(description, 1));
    assert(JSON.stringify(again) === JSON.stringify(description), "the encoding keeps everything");
    return description;
  },
  extremes: () => [
    latin1Bytes(OFFER + "a=candidate:1 1 udp 1 10.0.0.1 9 typ host\r\n".repeat(300)),
    latin1Bytes(`${OFFER}a=mid:${"a".repeat(16_000)}`),
    latin1Bytes(`${OFFER}${"a=x:y\n".repeat(10_000)}`),
  ],
};

const signal: FuzzTarget = {
  name: "webrtc-signal",
  corpus: () =>
    ["offer", "answer"].map((type) =>
      encodeUtf8(
        JSON.stringify({
          action: "announce",
          info_hash: "a".repeat(20),
          peer_id: "b".repeat(20),
          offer_id: "c".repeat(20),
          [type]: { type, sdp: OFFER },
        }),
      ),
    ),
  run: (bytes) => decodeWsSignal(new TextDecoder().decode(bytes)),
};

const STUN = [
  encodeStun(
    {
      ...{ kind: "request", transaction: new Uint8Array(12).fill(3), username: "abcd:efgh", priority: 5 },
      ...{ isNominated: true, role: { isControlling: true, tieBreaker: new Uint8Array(8) } },
    },
    "password-of-the-receiver",
    sha1,
  ),
  encodeStun(
    { kind: "success", transaction: new Uint8Array(12), mapped: PEER },
    "password-of-the-receiver",
    sha1,
  ),
  encodeStun(
    { kind: "error", transaction: new Uint8Array(12), errorCode: 487 },
    "password-of-the-receiver",
    sha1,
  ),
];

const stun: FuzzTarget = {
  name: "webrtc-stun",
  corpus: () => STUN,
  maxBytes: 1_500,
  mutate: withHeaderLength,
  run: peekStun,
};

const ice: FuzzTarget = {
  name: "webrtc-ice",
  corpus: () => STUN,
  maxBytes: 1_500,
  run(bytes) {
    const agent = new IceAgent({
      ...{ fragment: "abcd", password: "password-of-the-receiver", isControlling: false, sha1 },
      ...{ tieBreaker: new Uint8Array(8), newTransaction: () => new Uint8Array(12), mayUse: () => true },
    });
    agent.setRemote({ fragment: "efgh", password: "password-of-the-receiver" }, [], instant(0));
    agent.received(bytes, PEER, instant(1));
    let sent = 0;
    for (let output = agent.poll(); output; output = agent.poll()) sent++;
    assert(sent <= 3, "a datagram has few answers");
    return agent.selected;
  },
};

/** A random length, as a datagram of another length is no STUN message. */
function withHeaderLength(random: Random, seed: Uint8Array): Uint8Array {
  const bytes = seed.slice(0, 20 + randomBelow(random, seed.length - 19));
  for (let i = 0; i < 3; i++) bytes[randomBelow(random, bytes.length)] = randomBelow(random, 256);
  bytes.set(seed.subarray(0, 8));
  writeU16(bytes, 2, bytes.length - 20);
  return bytes;
}

const TAGS = { ours: 77, theirs: 88 } as const;
const PORTS = { local: 5000, remote: 5000 };

function channel(opens: boolean): DataChannel {
  const tag = opens ? TAGS.theirs : TAGS.ours;
  return new DataChannel({
    ...{ opens, tag, isDtlsClient: opens, port: PORTS, firstTsn: 100 },
    cookie: new Uint8Array(16),
  });
}

/** Connects two channels; returns the one that accepted, and the packets that it received. */
function connected(): { target: DataChannel; packets: Uint8Array[] } {
  const [peer, target] = [channel(true), channel(false)];
  const packets: Uint8Array[] = [];
  const now = instant(0);
  peer.start(now);
  target.start(now);
  for (let isBusy = true; isBusy; ) {
    isBusy = false;
    for (const [from, to] of [
      [peer, target],
      [target, peer],
    ] as const)
      for (let output = from.poll(); output; output = from.poll()) {
        isBusy = true;
        if (output.kind === "opened" && from === peer) peer.write(new Uint8Array(3_000), now);
        if (output.kind !== "send") continue;
        if (to === target) packets.push(output.bytes);
        to.received(output.bytes, now);
      }
  }
  return { target, packets };
}

const PACKETS = [
  ...connected().packets,
  ...[0, 3, 4, 6, 7, 130, 192].map((type) =>
    encodePacket({ port: PORTS, tag: TAGS.ours }, type, 3, new Uint8Array(24).fill(1)),
  ),
];

/** A sequence of packets, each with two bytes of length, for an open channel. */
const dataChannel: FuzzTarget = {
  name: "webrtc-data-channel",
  corpus: () => [joined(PACKETS), ...PACKETS.map((packet) => joined([packet]))],
  maxBytes: 16_384,
  mutate: (random) => joined(Array.from({ length: 1 + randomBelow(random, 12) }, () => likely(random))),
  run(bytes) {
    const { target } = connected();
    let outBytes = 0;
    let receivedBytes = 0;
    let now = 0;
    const drain = () => {
      for (let output = target.poll(); output; output = target.poll()) {
        if (output.kind === "send") outBytes += output.bytes.length;
        if (output.kind === "received") receivedBytes += output.bytes.length;
      }
    };
    target.write(new Uint8Array(3_000), instant(now));
    drain();
    const first = outBytes;
    let packets = 0;
    for (let at = 0; at + 2 <= bytes.length; packets++) {
      const end = Math.min(bytes.length, at + 2 + readU16(bytes, at));
      target.received(bytes.slice(at + 2, end), instant(now));
      drain();
      now += 10;
      at = end;
    }
    assert(receivedBytes <= bytes.length, "nothing is made up");
    // What was written may be sent again once; besides, each packet has a short answer.
    assert(
      outBytes - first <= 4_000 + bytes.length + 64 * packets,
      `amplification to ${outBytes - first} bytes`,
    );
    return receivedBytes;
  },
};

/** A packet of the corpus with the right tag and a changed chunk. */
function likely(random: Random): Uint8Array {
  const packet = PACKETS[randomBelow(random, PACKETS.length)]!.slice();
  for (let i = randomBelow(random, 4); i > 0; i--)
    packet[12 + randomBelow(random, Math.min(40, packet.length - 12))] = randomBelow(random, 256);
  return packet;
}

function joined(packets: readonly Uint8Array[]): Uint8Array {
  return concatBytes(
    packets.flatMap((packet) => {
      const length = new Uint8Array(2);
      writeU16(length, 0, packet.length);
      return [length, packet];
    }),
  );
}

export const targets: readonly FuzzTarget[] = [sdp, signal, stun, ice, dataChannel];
