import { randomBytes } from "node:crypto";
import type { Ed25519Sign } from "../../src/base/signature.ts";
import { framed } from "../../src/protocol/live/send-queue.ts";
import { encodeBencode } from "../../src/wire/bencode-encode.ts";
import type { LiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { signHeader } from "../../src/wire/live/trust.ts";
import { Stranger, type StrangerOptions } from "./live-stranger.ts";

/** What an attack knows: the stream, the ports of the source and of the target, and the stranger's own address. */
export interface Scene {
  readonly file: LiveTransportFile;
  readonly sourcePort: number;
  readonly targetPort: number;
  readonly localAddress: string;
  /** The signing key of the stream, for attacks by a machine that has it. */
  readonly sign: Ed25519Sign;
}

/** An attack of one stranger, until the process ends. */
export interface AttackKind {
  readonly name: string;
  /** By default, both the source and the viewer are attacked. */
  readonly only?: "source" | "viewer";
  run(scene: Scene): void;
}

const LIVE_KINDS = 18;
const u32 = (value: number) => Buffer.of(value >>> 24, value >>> 16, value >>> 8, value);
/** A message of the peer protocol: length, id, body. */
const message = (id: number, body: Uint8Array = Buffer.alloc(0)) =>
  Buffer.concat([u32(1 + body.length), Buffer.of(id), body]);

function join(scene: Scene, options: Partial<StrangerOptions> = {}): Stranger {
  return new Stranger({ ...scene, port: scene.targetPort, ...options });
}

/** Runs `act` `perSecond` times a second on a connection, which is opened again when the engine closes it. */
function flood(
  name: string,
  perSecond: number,
  act: (stranger: Stranger, i: number) => void,
  options: Partial<StrangerOptions> = {},
): AttackKind {
  return {
    name,
    run(scene) {
      let i = 0;
      const open = () => {
        const stranger = join(scene, options);
        stranger.every(20, () => {
          for (let n = 0; n < perSecond / 50; n++) act(stranger, i++);
        });
        stranger.socket.on("close", () => setTimeout(open, 250));
      };
      open();
    },
  };
}

const chunkList = (count: number, seq: number, stripes: number) =>
  Array.from({ length: count }, (_, i) => ({
    seq: Math.max(0, seq - Math.floor(i / stripes)),
    stripe: i % stripes,
  }));

/** The payload of a live message of any kind with arbitrary content. */
const anyPayload = (kind: number, bytes: number) => Buffer.concat([Buffer.of(kind), randomBytes(bytes)]);
const candidate = (i: number) => ({
  address: { host: `127.2.${(i >> 8) & 255}.${i & 255}`, port: 1_024 + (i % 60_000) },
  freeSlots: 60,
  lagMs: 0,
});
const candidates = (i: number) => Array.from({ length: 8 }, (_, n) => candidate(8 * i + n));
const pex = (count: number) =>
  framed(
    1,
    encodeBencode(
      new Map([
        [
          "added",
          Buffer.concat(
            Array.from({ length: count }, (_, i) => Buffer.of(127, 3, (i >> 8) & 255, i & 255, 4, i & 255)),
          ),
        ],
      ]),
    ),
  );

/** What a black hole does with a chunk that its victim should receive. */
type Serve = (payload: Uint8Array, send: (payload: Uint8Array) => void) => void;

const SERVES: Readonly<Record<string, Serve>> = {
  "no chunk": () => {},
  "70 % of the chunks": (payload, send) => Math.random() < 0.7 && send(payload),
  "corrupt chunks": (payload, send) => {
    const copy = Uint8Array.from(payload);
    copy[copy.length - 1]! ^= 1;
    send(copy);
  },
  "chunks 2 s late": (payload, send) => void setTimeout(() => send(payload), 2_000),
  "each chunk five times": (payload, send) => {
    for (let i = 0; i < 5; i++) send(payload);
  },
  "chunks, and refuses requests": (payload, send) => send(payload),
};

/** A relay to the viewer that takes the stream from the source and claims to have everything. */
function blackHole(what: string, claimsToSource: boolean): AttackKind {
  const serve = SERVES[what]!;
  return {
    name: `black hole: ${what}${claimsToSource ? ", claims to the source too" : ""}`,
    only: "viewer",
    run(scene) {
      const source = new Stranger({ ...scene, port: scene.sourcePort });
      const open = () => {
        const victim = join(scene);
        let wanted = 0;
        victim.every(250, () => {
          victim.head = source.head ?? victim.head;
          victim.claim();
          if (claimsToSource && source.head) source.claim();
        });
        victim.onMessage = (received) => {
          if (received.kind === "subscribe") {
            wanted |= received.stripes;
            const { stripes, epoch, startSeq } = received;
            victim.send({ kind: "subscribed", stripes, epoch, startSeq });
          } else if (received.kind === "unsubscribe") wanted &= ~received.stripes;
          else if (received.kind === "ping") victim.send({ ...received, kind: "pong" });
          else if (received.kind === "request" && what.endsWith("refuses requests"))
            victim.send({
              ...{ kind: "lacking" as const, epoch: received.epoch, holders: [] },
              chunks: received.chunks.map(({ seq, stripe }) => ({
                seq,
                stripe,
                reason: "too-late" as const,
              })),
            });
        };
        source.onMessage = (received, payload) => {
          if (received.kind === "header") victim.payload(payload);
          else if (received.kind === "chunk" && ((wanted >>> received.stripe) & 1) === 1)
            serve(Uint8Array.from(payload), (bytes) => victim.payload(bytes));
        };
        victim.socket.on("close", () => setTimeout(open, 500));
      };
      open();
      let hasSubscribed = false;
      source.every(100, () => {
        if (!source.head || hasSubscribed) return;
        hasSubscribed = true;
        source.subscribe();
      });
    },
  };
}

/** Many connections of one stranger, each for `ms`. */
function crowd(
  name: string,
  count: number,
  ms: number,
  options: Partial<StrangerOptions>,
  first?: Uint8Array,
): AttackKind {
  return {
    name,
    run(scene) {
      const open = () => {
        const stranger = join(scene, options);
        if (first) stranger.raw(first);
        if (Number.isFinite(ms)) setTimeout(() => stranger.end(), ms);
        stranger.socket.on("close", () => setTimeout(open, 100));
      };
      for (let i = 0; i < count; i++) setTimeout(open, 5 * i);
    },
  };
}

/** All attacks: against the source, against the viewer, or against both in turn. */
export const ATTACK_KINDS: readonly AttackKind[] = [
  ...Object.keys(SERVES).flatMap((what) => [blackHole(what, false), blackHole(what, true)]),
  flood("HREQ: 3,000/s for 256 headers", 3_000, (s) =>
    s.send({
      kind: "headerRequest",
      epoch: s.epoch,
      firstSeq: Math.max(0, s.seq - 250),
      count: 256,
      step: 1,
      onlyRandomAccess: false,
    }),
  ),
  flood("HREQ: keyframes of the last hours", 500, (s) =>
    s.send({
      kind: "headerRequest",
      epoch: s.epoch,
      firstSeq: 0,
      count: 65_535,
      step: 1,
      onlyRandomAccess: true,
    }),
  ),
  flood("HREQ: another epoch", 1_000, (s) =>
    s.send({ kind: "headerRequest", epoch: 1, firstSeq: 0, count: 1, step: 1, onlyRandomAccess: false }),
  ),
  flood("REQ: the newest 64 chunks, 100/s", 100, (s) =>
    s.send({
      kind: "request",
      epoch: s.epoch,
      chunks: chunkList(64, s.seq, s.stripes).map((c) => ({ ...c, withinMs: 3_000 })),
    }),
  ),
  flood("REQ: one chunk, 2,000/s", 2_000, (s) =>
    s.send({ kind: "request", epoch: s.epoch, chunks: [{ seq: s.seq, stripe: 0, withinMs: 3_000 }] }),
  ),
  flood("REQ: pieces that do not exist", 500, (s, i) =>
    s.send({
      kind: "request",
      epoch: s.epoch,
      chunks: chunkList(64, s.seq + 1_000_000 + i, s.stripes).map((c) => ({ ...c, withinMs: 1 })),
    }),
  ),
  flood("REQ: another epoch", 500, (s) =>
    s.send({
      kind: "request",
      epoch: 1,
      chunks: chunkList(64, s.seq, s.stripes).map((c) => ({ ...c, withinMs: 1 })),
    }),
  ),
  flood("CANCEL: 64 chunks, 500/s", 500, (s) =>
    s.send({ kind: "cancel", epoch: s.epoch, chunks: chunkList(64, s.seq, s.stripes) }),
  ),
  flood("SUB and UNSUB, 500/s", 500, (s, i) =>
    i % 2 === 0
      ? s.subscribe(32)
      : s.send({ kind: "unsubscribe", stripes: 2 ** s.stripes - 1, reason: "moved" }),
  ),
  flood("SUB with a second of backlog, 200/s", 200, (s) => s.subscribe(32)),
  flood("SUBOK that was not requested", 500, (s) =>
    s.send({ kind: "subscribed", stripes: 2 ** s.stripes - 1, epoch: s.epoch, startSeq: s.seq }),
  ),
  flood("SUBNO with 8 addresses, 200/s", 200, (s, i) =>
    s.send({ kind: "refused", stripes: 1, reason: "full", retryMs: 0, candidates: candidates(i) }),
  ),
  flood("BYE with 8 addresses", 10, (s, i) =>
    s.send({ kind: "bye", reason: "leaving", candidates: candidates(i) }),
  ),
  flood("WIN, 1,000/s", 1_000, (s) => s.claim()),
  flood("PATHS that change, 1,000/s", 1_000, (s, i) =>
    s.send({ kind: "paths", paths: [{ stripe: i % s.stripes, depth: 2, ancestors: [i & 0xffff, 7] }] }),
  ),
  flood("NAK that was not requested", 500, (s) =>
    s.send({
      kind: "lacking",
      epoch: s.epoch,
      chunks: chunkList(64, s.seq, s.stripes).map((c) => ({ ...c, reason: "busy" })),
      holders: [],
    }),
  ),
  flood("PING, 2,000/s", 2_000, (s, i) => s.send({ kind: "ping", token: i, clockMs: 0 })),
  flood("HELLO again", 500, (s) => s.send({ kind: "hello", header: s.headBytes })),
  flood(
    "HEADER: the newest one again",
    500,
    (s) => s.headBytes && s.send({ kind: "header", isAnswer: false, header: s.headBytes }),
  ),
  flood("HEADER: forged signature", 50, (s) => {
    if (!s.headBytes) return;
    const forged = Uint8Array.from(s.headBytes);
    forged[forged.length - 1]! ^= 1;
    s.send({ kind: "header", isAnswer: false, header: forged });
  }),
  flood("CHUNK: garbage of the newest piece", 200, (s, i) =>
    s.send({
      kind: "chunk",
      epoch: s.epoch,
      seq: s.seq,
      stripe: i % s.stripes,
      fragment: 0,
      isLast: true,
      isLate: false,
      bytes: randomBytes(1_000),
    }),
  ),
  flood("CHUNK: pieces that are not signed yet", 200, (s, i) =>
    s.send({
      kind: "chunk",
      epoch: s.epoch,
      seq: s.seq + 1 + (i % 16),
      stripe: i % s.stripes,
      fragment: 0,
      isLast: true,
      isLate: false,
      bytes: randomBytes(16_000),
    }),
  ),
  flood("CHUNK: fragments without an end", 200, (s, i) =>
    s.send({
      kind: "chunk",
      epoch: s.epoch,
      seq: s.seq + (i % 16),
      stripe: i % s.stripes,
      fragment: i % 200,
      isLast: false,
      isLate: false,
      bytes: randomBytes(16_000),
    }),
  ),
  flood("STAT: forged", 100, (s) => s.payload(anyPayload(15, 400))),
  flood("PROOF: forged", 100, (s) => s.payload(Buffer.concat([Buffer.of(17, 2, 0, 0), randomBytes(64)]))),
  ...["source", "relay"].map((role) =>
    flood(`claims to be ${role}`, 4, (s) => s.claim(), { role: role as "source" | "relay" }),
  ),
  ...Array.from({ length: LIVE_KINDS }, (_, kind) =>
    flood(`malformed: kind ${kind}`, 100, (s, i) => s.payload(anyPayload(kind, i % 300))),
  ),
  flood("malformed: unknown kinds", 1_000, (s, i) => s.payload(anyPayload(18 + (i % 200), 20))),
  flood("oversize: 1 MiB of one message", 20, (s) => s.payload(anyPayload(2, 1024 * 1024))),
  flood("oversize: a length of 4 GiB", 20, (s) => s.raw(u32(0xffffffff))),
  flood("PEX: 10,000 addresses", 5, (s) => s.raw(pex(10_000))),
  flood("metadata requests, 500/s", 500, (s) =>
    s.raw(
      framed(
        2,
        encodeBencode(
          new Map([
            ["msg_type", 0],
            ["piece", 0],
          ]),
        ),
      ),
    ),
  ),
  flood("extension handshakes, 200/s", 200, (s, i) =>
    s.extend({ role: (["viewer", "relay", "source"] as const)[i % 3]!, uploadBytesPerSecond: i * 1e6 }),
  ),
  flood("extension handshake: nested lists", 20, (s) => s.raw(framed(0, Buffer.alloc(100_000, "l")))),
  flood("messages of other swarms, 1,000/s", 1_000, (s, i) => s.raw(message(i % 20, Buffer.alloc(i % 16)))),
  flood("keep-alives, 5,000/s", 5_000, (s) => s.raw(u32(0))),
  flood("slow reading: subscribes, requests and does not read", 50, (s) => {
    if (!s.head) return;
    s.subscribe(32);
    const chunks = chunkList(64, s.seq, s.stripes).map((c) => ({ ...c, withinMs: 3_000 }));
    s.send({ kind: "request", epoch: s.epoch, chunks });
    s.socket.pause();
  }),
  {
    name: "fork: headers with the key of the stream",
    run(scene) {
      const { file, sign } = scene;
      const forge = flood("", 50, (s) => {
        if (!s.headBytes) return;
        const forged = Uint8Array.from(s.headBytes);
        // The hash of the last chunk, before the signature of 64 bytes.
        forged[forged.length - 65]! ^= 1;
        signHeader(forged, file.infohash, sign);
        s.send({ kind: "header", isAnswer: false, header: forged });
      });
      forge.run(scene);
    },
  },
  {
    name: "drip: one byte of a message each 100 ms",
    run(scene) {
      const stranger = join(scene);
      const bytes = framed(3, anyPayload(2, 60_000));
      let at = 0;
      stranger.every(100, () => stranger.raw(bytes.subarray(at, ++at)));
    },
  },
  crowd("idle: 150 connections that say HELLO", 150, Number.POSITIVE_INFINITY, {}),
  crowd("idle: 150 connections without a byte", 150, Number.POSITIVE_INFINITY, { isSilent: true }),
  crowd(
    "idle: 150 connections with one byte",
    150,
    Number.POSITIVE_INFINITY,
    { isSilent: true },
    Buffer.of(19),
  ),
  crowd("100 connections that come and go each 200 ms", 100, 200, {}),
];
