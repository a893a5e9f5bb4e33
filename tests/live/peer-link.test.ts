import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import type { PeerAddress } from "../../src/base/address.ts";
import { DecodeError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { randomBelow } from "../../src/base/random.ts";
import type { Ed25519Sign } from "../../src/base/signature.ts";
import { type Instant, instant } from "../../src/base/time.ts";
import { PeerLink, type PeerLinkSetup } from "../../src/live/peer-link.ts";
import type { LiveAbout, LiveMessage } from "../../src/protocol/live/messages.ts";
import { framed, MAX_CONTROL_BYTES, SendQueue } from "../../src/protocol/live/send-queue.ts";
import { decodeBencode, dictOf } from "../../src/wire/bencode.ts";
import { encodeLiveMessage } from "../../src/wire/live/message.ts";
import { pathDigest } from "../../src/wire/live/paths.ts";
import { homeStripeOf } from "../../src/wire/live/peer-info.ts";
import { emptyWindow } from "../../src/wire/live/window.ts";
import { encodeExtensionHandshake } from "../../src/wire/peer/extension-handshake.ts";
import { encodeHandshake } from "../../src/wire/peer/handshake.ts";
import { decodeMetadataMessage, encodeMetadataMessage } from "../../src/wire/peer/metadata-message.ts";
import { handleOnly, PeerMessageDecoder } from "../../src/wire/peer/peer-message.ts";
import { encodePexMessage } from "../../src/wire/peer/pex-message.ts";
import { someBytes } from "../engine/parts.ts";
import { seededRandom } from "../seeded-random.ts";
import { PieceMaker, someRoles, someStream } from "./driver-parts.ts";

const STREAM = someStream({ stripeCount: 4 });
const NEVER = instant(Number.POSITIVE_INFINITY);
const LIVE_ID = 3;
const ABOUT = { role: "viewer", uploadBytesPerSecond: 1_024 } as const;

/** A link that records its events. */
function noted(
  peerIdSeed: number,
  isIncoming: boolean,
  options: {
    remote?: string;
    setup?: Partial<PeerLinkSetup>;
    rejection?: string;
    /** The swarm closes the link as soon as it is ready. */
    isRefused?: boolean;
  } = {},
) {
  const { file } = STREAM;
  const messages: LiveMessage[] = [];
  const peers: PeerAddress[] = [];
  const rejections: string[] = [];
  const proved: string[] = [];
  const ready: { about: LiveAbout; rttMs: number }[] = [];
  const setup: PeerLinkSetup = {
    infohash: file.infohash,
    info: file.info,
    infoBytes: file.infoBytes,
    peerId: someBytes(20, peerIdSeed),
    about: ABOUT,
    listenPort: 4_000,
    sharesPeers: true,
    sha256: runtime.sha256,
    roles: someRoles(STREAM, { peerId: someBytes(20, peerIdSeed) }),
    ...options.setup,
  };
  const queue = new SendQueue({ controlBytes: MAX_CONTROL_BYTES, dataBytes: 1_000_000 });
  const link: PeerLink = new PeerLink(
    setup,
    {
      handshake: () => options.rejection,
      ready(opened, about, rttMs) {
        ready.push({ about, rttMs });
        if (options.isRefused) opened.close();
      },
      proved: (_, role) => void proved.push(role),
      message: (_, word) => void messages.push(word),
      peers: (_, added) => void peers.push(...added.map(({ address }) => address)),
      holePunch: () => {},
      rejected: (closed, reason) => {
        rejections.push(reason);
        closed.close();
      },
    },
    queue,
    { isIncoming, remote: { host: options.remote ?? "127.0.0.1", port: 3_000 } },
    instant(0),
  );
  return { link, messages, peers, rejections, ready, proved, setup };
}

type Noted = ReturnType<typeof noted>;

/** Carries bytes between two links until both are idle, `size` bytes at a time. */
function exchange(a: Noted, b: Noted, now: Instant, size = 1_000_000): void {
  for (let moved = true; moved; ) {
    moved = false;
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      for (let bytes = from.link.queue.take(1_000_000, now); bytes; bytes = from.link.queue.take(1, now)) {
        moved = true;
        for (let at = 0; at < bytes.length; at += size) to.link.received(bytes.slice(at, at + size), now);
      }
    }
  }
}

/** Two connected links. */
function pair(options: Parameters<typeof noted>[2] = {}, size?: number): { caller: Noted; called: Noted } {
  const caller = noted(1, false, options);
  const called = noted(2, true, options);
  caller.link.opened(instant(10));
  exchange(caller, called, instant(30), size);
  return { caller, called };
}

/** The handshake of an unknown peer, and its next bytes. */
function strangerSays(...payloads: (readonly [id: number, payload: Uint8Array])[]): Uint8Array {
  const greeting = encodeHandshake({
    infohash: STREAM.file.infohash,
    peerId: someBytes(20, 77),
    extensions: true,
    fast: true,
    dht: true,
  });
  return Buffer.concat([greeting, ...payloads.map(([id, payload]) => framed(id, payload))]);
}

function strangerHello(members: Partial<Parameters<typeof encodeExtensionHandshake>[0]> = {}): Uint8Array {
  return encodeExtensionHandshake({
    messages: new Map([
      ["sl_live", 8],
      ["ut_metadata", 6],
      ["ut_pex", 5],
    ]),
    live: ABOUT,
    ...members,
  });
}

/** The extended messages in a link's queue, after its handshake. */
function saidBy({ link }: Noted): { id: number; payload: Uint8Array }[] {
  const sent: { id: number; payload: Uint8Array }[] = [];
  const decoder = new PeerMessageDecoder(
    handleOnly({ extended: (id, payload) => void sent.push({ id, payload: payload.slice() }) }),
    { maxBitfieldBytes: 0, maxExtendedBytes: 70_000, maxBlockBytes: 0 },
  );
  const bytes = link.queue.take(1_000_000, instant(100));
  if (bytes) decoder.feed(bytes.subarray(bytes[0] === 19 ? 68 : 0));
  return sent;
}

test("PeerLink: two links become ready, for any read size", () => {
  for (const size of [1, 7, 1_000_000]) {
    const { caller, called } = pair({}, size);
    for (const { ready, rejections } of [caller, called]) {
      assert.equal(ready.length, 1);
      assert.deepEqual(rejections, []);
    }
    assert.equal(caller.ready[0]!.rttMs, 20);
    // Everything arrived at once: the round trip was not measured.
    assert.equal(called.ready[0]!.rttMs, 100);
    assert.equal(called.link.listenAddress?.port, 4_000);
    assert.match(called.link.client, /Sluice/);
  }
});

test("PeerLink: a caller sends everything at once; the round trip is measured if it waits for a reply", () => {
  const caller = noted(1, false);
  const called = noted(2, true);
  caller.link.opened(instant(10));
  called.link.received(caller.link.queue.take(10_000, instant(10))!, instant(20));
  assert.equal(called.link.isReady, true);
  const slow = noted(2, true);
  slow.link.received(strangerSays(), instant(20));
  slow.link.received(framed(0, strangerHello()), instant(90));
  assert.equal(slow.ready[0]!.rttMs, 70);
});

test("PeerLink.received: home stripe and digest follow from the peer id, whatever a peer claims", () => {
  const { caller, called } = pair();
  const hash = runtime.sha256(called.setup.peerId);
  const { about } = caller.ready[0]!;
  assert.equal(about.homeStripe, homeStripeOf(hash, 4));
  assert.equal(about.digest, pathDigest(hash));
  assert.equal(about.uploadBytesPerSecond, 1_024);
});

test("PeerLink: a role is proven by the key of the stream, and by no claim", () => {
  const about = { ...ABOUT, role: "source" } as const;
  const joined = (sign: Ed25519Sign | undefined) => {
    const key = sign && ({ role: "source", sign } as const);
    const roles = someRoles(STREAM, { peerId: someBytes(20, 1), ...(key && { key }) });
    const caller = noted(1, false, { setup: { about, roles } });
    const called = noted(2, true);
    caller.link.opened(instant(10));
    exchange(caller, called, instant(30));
    assert.equal(called.ready[0]!.about.role, "source");
    assert.deepEqual(caller.proved, []);
    return called.proved;
  };
  assert.deepEqual(joined(STREAM.key.sign), ["source"]);
  assert.deepEqual(joined(someStream({}, 9).key.sign), []);
  assert.deepEqual(joined(undefined), []);
});

test("PeerLink: no role is proven to a peer that the swarm refuses, because a signature is costly", () => {
  const signatures: Uint8Array[] = [];
  const sign: Ed25519Sign = (message) => {
    signatures.push(message);
    return STREAM.key.sign(message);
  };
  const roles = someRoles(STREAM, { peerId: someBytes(20, 2), key: { role: "source", sign } });
  const about = { ...ABOUT, role: "source" } as const;
  for (const isRefused of [true, false]) {
    const called = noted(2, true, { setup: { about, roles }, isRefused });
    const caller = noted(1, false);
    caller.link.opened(instant(10));
    exchange(caller, called, instant(30));
    assert.equal(called.ready.length, 1);
    assert.equal(signatures.length, isRefused ? 0 : 1);
  }
});

test("PeerLink.send: messages arrive with decoded headers and whole chunks", () => {
  const { caller, called } = pair();
  const { header, chunks } = new PieceMaker(STREAM).make(someBytes(150_000));
  const { epoch, seq } = header.value;
  const window = { ...emptyWindow(4), epoch, baseSeq: 3 };
  const sentMessages: LiveMessage[] = [
    { kind: "hello", header },
    { kind: "hello", header: undefined },
    { kind: "header", isAnswer: true, header },
    { kind: "chunk", epoch, seq, stripe: 2, isLate: true, bytes: chunks[2]! },
    { kind: "window", window },
    { kind: "subscribe", stripes: 3, epoch, startSeq: 5, backfillPieces: 1, have: [0, 1], isDesperate: true },
    { kind: "subscribed", stripes: 3, epoch, startSeq: 5 },
    { kind: "unsubscribe", stripes: 4, reason: "slow" },
    { kind: "paths", paths: [{ stripe: 1, depth: 2, ancestors: [7, 8] }] },
    { kind: "request", epoch, chunks: [{ seq: 9, stripe: 1, withinMs: 300 }] },
    { kind: "cancel", epoch, chunks: [{ seq: 9, stripe: 1 }] },
    { kind: "headerRequest", epoch, firstSeq: 4, count: 3, step: 1, onlyRandomAccess: true },
    { kind: "bye", reason: "leaving", candidates: [] },
  ];
  for (const word of sentMessages) assert.equal(caller.link.send(word, 0, NEVER, instant(40)), true);
  exchange(caller, called, instant(50));
  const chunkLast = (a: LiveMessage, b: LiveMessage) =>
    Number(a.kind === "chunk") - Number(b.kind === "chunk");
  assert.deepEqual(
    called.messages.toSorted(chunkLast).map((word) => JSON.stringify(word)),
    sentMessages.toSorted(chunkLast).map((word) => JSON.stringify(word)),
  );
});

test("PeerLink.send: omits messages with an empty set or list, which the protocol forbids", () => {
  const { caller, called } = pair();
  const sentMessages: LiveMessage[] = [
    { kind: "paths", paths: [] },
    { kind: "request", epoch: 1, chunks: [] },
    { kind: "unsubscribe", stripes: 0, reason: "moved" },
  ];
  for (const word of sentMessages) caller.link.send(word, 0, NEVER, instant(40));
  exchange(caller, called, instant(50));
  assert.deepEqual(called.messages, []);
});

test("PeerLink: a PONG returns the token of the PING, which has more bits than the wire carries", () => {
  const { caller, called } = pair();
  const token = 5 * 2 ** 32 + 123.75;
  caller.link.send({ kind: "ping", token, clockMs: 0 }, 0, NEVER, instant(40));
  exchange(caller, called, instant(50));
  const [ping] = called.messages;
  assert.equal(ping?.kind, "ping");
  called.link.send(
    { ...(ping as LiveMessage & { kind: "ping" }), kind: "pong", clockMs: 77 },
    0,
    NEVER,
    instant(50),
  );
  exchange(caller, called, instant(60));
  assert.deepEqual(caller.messages, [{ kind: "pong", token, clockMs: 0 }]);
});

test("PeerLink.received: a stored header is not changed by later bytes", () => {
  const { caller, called } = pair();
  const maker = new PieceMaker(STREAM);
  const { header } = maker.make(someBytes(1_000));
  caller.link.send({ kind: "header", isAnswer: false, header }, 0, NEVER, instant(40));
  const bytes = caller.link.queue.take(10_000, instant(40))!.slice();
  called.link.received(bytes, instant(50));
  bytes.fill(0);
  const [word] = called.messages;
  assert.ok(word?.kind === "header");
  assert.deepEqual(word.header.bytes, header.bytes);
  assert.deepEqual(word.header.value, header.value);
});

test("PeerLink.received: a different infohash or an invalid handshake is a protocol error", () => {
  const other = "12".repeat(20) as Infohash;
  const caller = noted(1, false, { setup: { infohash: other } });
  const called = noted(2, true);
  caller.link.opened(instant(10));
  assert.throws(() => exchange(caller, called, instant(20)), DecodeError);
  assert.throws(() => noted(2, true).link.received(someBytes(68), instant(1)), DecodeError);
});

test("PeerLink.received: a live message before the introduction is a protocol error", () => {
  const word = encodeLiveMessage({ kind: "hello", header: undefined });
  const early = strangerSays([LIVE_ID, word]);
  assert.throws(() => noted(2, true).link.received(early, instant(1)), DecodeError);
  const inTime = strangerSays([0, strangerHello()], [LIVE_ID, word]);
  const called = noted(2, true);
  called.link.received(inTime, instant(1));
  assert.deepEqual(called.messages, [{ kind: "hello", header: undefined }]);
});

test("PeerLink.received: wrong lengths and empty messages are protocol errors; unknown kinds are ignored", () => {
  const { header } = new PieceMaker(STREAM).make(someBytes(1_000));
  const right = encodeLiveMessage({ kind: "header", isAnswer: false, header: header.bytes });
  const bad = [right.subarray(0, -1), Buffer.concat([right, new Uint8Array(1)]), new Uint8Array(0)];
  for (const payload of bad) {
    const bytes = strangerSays([0, strangerHello()], [LIVE_ID, payload]);
    assert.throws(() => noted(2, true).link.received(bytes, instant(1)), DecodeError);
  }
  const unknown = noted(2, true);
  unknown.link.received(strangerSays([0, strangerHello()], [LIVE_ID, new Uint8Array([99, 1])]), instant(1));
  assert.deepEqual(unknown.messages, []);
  assert.equal(unknown.link.isReady, true);
});

test("PeerLink.received: a length above the limit is a protocol error before the message is read", () => {
  const called = noted(2, true);
  const claim = new Uint8Array([0, 1, 0, 0, 20, LIVE_ID]);
  called.link.received(strangerSays([0, strangerHello()]), instant(1));
  assert.throws(() => called.link.received(claim, instant(1)), DecodeError);
});

test("PeerLink.isFlooding: many messages are a flood; many chunks, and responses to requests, are not", () => {
  const ping = framed(LIVE_ID, encodeLiveMessage({ kind: "ping", token: 1, clockMs: 0 }));
  const chunk = framed(
    LIVE_ID,
    encodeLiveMessage({
      ...{ kind: "chunk", epoch: 1, seq: 1, stripe: 0, fragment: 0, isLast: true, isLate: false },
      bytes: new Uint8Array(188),
    }),
  );
  const called = noted(2, true);
  called.link.received(strangerSays([0, strangerHello()]), instant(1));
  for (let i = 0; i < 10_000; i++) called.link.received(chunk, instant(1));
  for (let second = 1; second < 60; second++) {
    for (let i = 0; i < 200; i++) called.link.received(ping, instant(1_000 * second));
  }
  assert.equal(called.link.isFlooding(instant(59_000)), false);
  const lacking = framed(
    LIVE_ID,
    encodeLiveMessage({
      ...{ kind: "lacking", epoch: 1, holders: [] },
      chunks: [{ seq: 1, stripe: 0, reason: "too-late" }],
    }),
  );
  const chunks = Array.from({ length: 100 }, (_, seq) => ({ seq, stripe: 0, withinMs: 1_000 }));
  for (let i = 0; i < 20; i++) {
    called.link.send({ kind: "request", epoch: 1, chunks }, 0, NEVER, instant(59_000));
    for (let n = 0; n < 100; n++) called.link.received(lacking, instant(59_000));
  }
  assert.equal(called.link.isFlooding(instant(59_000)), false);
  for (let i = 0; i < 2_000; i++) called.link.received(lacking, instant(59_000));
  assert.equal(called.link.isFlooding(instant(59_000)), true);
  assert.equal(called.link.isFlooding(instant(65_000)), false);
});

test("PeerLink.isFlooding: a few extension handshakes are no flood; two hundred a second are, because they are costly", () => {
  for (const [count, isFlood] of [
    [20, false],
    [100, true],
  ] as const) {
    const called = noted(2, true);
    called.link.received(strangerSays([0, strangerHello()]), instant(1));
    for (let i = 0; i < count; i++) called.link.received(framed(0, strangerHello()), instant(1 + 5 * i));
    assert.equal(called.link.isFlooding(instant(1 + 5 * count)), isFlood);
  }
});

test("PeerLink.received: ignores the messages of BEP 3", () => {
  const called = noted(2, true);
  const have = [0, 0, 0, 5, 4, 0, 0, 0, 1];
  const request = [0, 0, 0, 13, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 64, 0];
  const piece = [0, 0, 0, 12, 7, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3];
  const bitfield = [0, 0, 0, 2, 5, 255];
  const keepAlive = [0, 0, 0, 0];
  const bytes = new Uint8Array([have, request, piece, bitfield, keepAlive].flat());
  called.link.received(Buffer.concat([strangerSays(), bytes, framed(0, strangerHello())]), instant(1));
  assert.equal(called.link.isReady, true);
  assert.deepEqual(called.rejections, []);
});

test("PeerLink.received: any bytes are either read or a DecodeError", () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = seededRandom(seed);
    const called = noted(2, true);
    const junk = someBytes(randomBelow(random, 2_000), seed);
    // Half of them resemble live messages of every kind.
    const payload = junk.subarray(0, randomBelow(random, 600));
    if (payload.length > 0) payload[0] = randomBelow(random, 18);
    const rest = seed % 2 === 0 ? junk : framed(LIVE_ID, payload);
    try {
      called.link.received(Buffer.concat([strangerSays([0, strangerHello()]), rest]), instant(1));
    } catch (error) {
      assert.ok(error instanceof DecodeError, `seed ${seed}: ${error}`);
    }
  }
});

test("PeerLink: serves metadata, and allows the introduction to follow later", () => {
  const called = noted(2, true);
  const { infoBytes } = STREAM.file;
  const stranger = { messages: new Map([["ut_metadata", 6]]) };
  called.link.received(strangerSays([0, encodeExtensionHandshake(stranger)]), instant(1_000));
  const hello = dictOf(decodeBencode(saidBy(called)[0]!.payload));
  assert.equal(hello?.get("metadata_size"), infoBytes.length);
  called.link.received(framed(1, encodeMetadataMessage({ kind: "request", piece: 0 })), instant(2_000));
  const [answer] = saidBy(called);
  const message = decodeMetadataMessage(answer!.payload);
  assert.equal(answer!.id, 6);
  assert.ok(message?.kind === "data");
  assert.deepEqual(Buffer.compare(message.bytes, infoBytes), 0);
  assert.equal(called.link.timeoutReason(instant(20_000)), undefined);
  called.link.received(framed(0, strangerHello()), instant(21_000));
  assert.equal(called.ready.length, 1);
  assert.equal(called.link.timeoutReason(instant(1_000_000)), undefined);
});

test("PeerLink: limits the metadata replies", () => {
  const called = noted(2, true);
  called.link.received(strangerSays([0, strangerHello({ live: undefined } as never)]), instant(1));
  saidBy(called);
  let answers = 0;
  for (let i = 0; i < 100; i++) {
    called.link.received(framed(1, encodeMetadataMessage({ kind: "request", piece: 0 })), instant(2));
    answers += saidBy(called).length;
  }
  assert.equal(answers, 10);
});

test("PeerLink.timeoutReason: limits the time without a handshake and without an introduction", () => {
  const silent = noted(2, true);
  assert.equal(silent.link.timeoutReason(instant(9_000)), undefined);
  assert.match(silent.link.timeoutReason(instant(10_001)) ?? "", /handshake/);
  const stranger = noted(2, true);
  stranger.link.received(strangerSays([0, encodeExtensionHandshake({ messages: new Map() })]), instant(100));
  assert.equal(stranger.link.timeoutReason(instant(5_000)), undefined);
  assert.match(stranger.link.timeoutReason(instant(5_200)) ?? "", /not in the live network/);
});

test("PeerLink: rejects a peer without the extension protocol or a duplicate, without a protocol error", () => {
  const greeting = encodeHandshake({
    infohash: STREAM.file.infohash,
    peerId: someBytes(20, 5),
    extensions: false,
    fast: true,
    dht: false,
  });
  const called = noted(2, true);
  called.link.received(greeting, instant(1));
  assert.equal(called.rejections.length, 1);
  const unwanted = noted(2, true, { rejection: "connected twice" });
  unwanted.link.received(strangerSays([0, strangerHello()]), instant(1));
  assert.deepEqual(unwanted.rejections, ["connected twice"]);
  assert.deepEqual(unwanted.ready, []);
});

test("PeerLink: accepts local addresses from local peers only", () => {
  const hosts = ["10.0.0.1", "127.0.0.1", "8.8.8.8", "169.254.1.1"];
  const added = hosts.map((host) => ({ address: { host, port: 1_000 }, flags: 0 }));
  const candidates = hosts.map((host) => ({ address: { host, port: 1_000 }, freeSlots: 1, lagMs: 0 }));
  const says = strangerSays(
    [0, strangerHello()],
    [2, encodePexMessage({ added, dropped: [] })],
    [LIVE_ID, encodeLiveMessage({ kind: "bye", reason: "leaving", candidates })],
  );
  const expected = [
    ["9.9.9.9", ["8.8.8.8"]],
    ["192.168.0.9", ["10.0.0.1", "8.8.8.8"]],
    ["127.0.0.1", ["10.0.0.1", "127.0.0.1", "8.8.8.8"]],
  ] as const;
  for (const [remote, believed] of expected) {
    const called = noted(2, true, { remote });
    called.link.received(says, instant(1));
    assert.deepEqual(
      called.peers.map(({ host }) => host),
      believed,
    );
    const [bye] = called.messages;
    assert.ok(bye?.kind === "bye");
    assert.deepEqual(
      bye.candidates.map(({ address }) => address.host),
      believed,
    );
  }
});

test("PeerLink.sharePeers: once a minute, and not if PEX is off", () => {
  const { caller, called } = pair();
  const known = [{ address: { host: "127.0.0.2", port: 9 }, flags: 0 }];
  caller.link.sharePeers(known, instant(1_000));
  exchange(caller, called, instant(1_000));
  assert.deepEqual(called.peers, [known[0]!.address]);
  const more = [...known, { address: { host: "127.0.0.3", port: 9 }, flags: 0 }];
  caller.link.sharePeers(more, instant(30_000));
  assert.equal(caller.link.queue.bytes, 0);
  caller.link.sharePeers(more, instant(62_000));
  exchange(caller, called, instant(62_000));
  assert.equal(called.peers.length, 2);
  const silent = pair({ setup: { sharesPeers: false } });
  silent.caller.link.sharePeers(known, instant(1_000));
  assert.equal(silent.caller.link.queue.bytes, 0);
});

test("PeerLink.isKeptWhenCrossed: both ends keep the same one of two crossed connections", () => {
  const { caller, called } = pair();
  assert.equal(caller.link.isKeptWhenCrossed, called.link.isKeptWhenCrossed);
  const back = { caller: noted(2, false), called: noted(1, true) };
  back.caller.link.opened(instant(10));
  exchange(back.caller, back.called, instant(30));
  assert.notEqual(caller.link.isKeptWhenCrossed, back.caller.link.isKeptWhenCrossed);
  assert.equal(caller.link.isSamePeer(back.called.link), true);
});

test("PeerLink.isSamePeer: compares peer ids of one host, in both address families", () => {
  const at = (remote: string, seed: number) => {
    const called = noted(2, true, { remote });
    const caller = noted(seed, false);
    caller.link.opened(instant(1));
    exchange(caller, called, instant(2));
    return called.link;
  };
  const link = at("8.8.8.8", 1);
  assert.equal(link.isSamePeer(at("8.8.8.8", 1)), true);
  assert.equal(link.isSamePeer(at("2001:db8::1", 1)), true);
  assert.equal(link.isSamePeer(at("9.9.9.9", 1)), false);
  assert.equal(link.isSamePeer(at("8.8.8.8", 3)), false);
  assert.equal(at("127.0.0.1", 1).isSamePeer(at("127.1.0.1", 1)), true);
});

test("PeerLink.isOurselves: detects a connection to ourselves", () => {
  const caller = noted(1, false);
  const called = noted(1, true);
  caller.link.opened(instant(10));
  exchange(caller, called, instant(30));
  assert.equal(caller.link.isOurselves && called.link.isOurselves, true);
  assert.equal(pair().caller.link.isOurselves, false);
});
