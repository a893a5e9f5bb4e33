import { createHash } from "node:crypto";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { type Infohash, infohashOf } from "../../../src/base/ids.ts";
import { instant } from "../../../src/base/time.ts";
import type {
  SwarmInput,
  SwarmLayout,
  SwarmOutput,
  SwarmSetup,
} from "../../../src/protocol/swarm/contract.ts";
import { Swarm } from "../../../src/protocol/swarm/swarm.ts";
import { encodeHandshake, HANDSHAKE_BYTES } from "../../../src/wire/peer/handshake.ts";
import { PeerMessageDecoder, type PeerMessageHandler } from "../../../src/wire/peer/peer-message.ts";
import { PeerMessageWriter } from "../../../src/wire/peer/peer-message-writer.ts";
import { seededRandom } from "../../seeded-random.ts";
import { sha256 } from "../../wire/make-torrent.ts";
import { someLimits } from "./some-limits.ts";

export const BLOCK = 16 * 1024;

export function sha1(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(createHash("sha1").update(bytes).digest());
}

/** Content of `pieceCount` pieces of `blocks` blocks each, the last one shorter by half a block. */
export function makeContent(pieceCount: number, blocks: number) {
  const pieceLength = blocks * BLOCK;
  const bytes = new Uint8Array(pieceCount * pieceLength - BLOCK / 2);
  for (let i = 0; i < bytes.length; i += 4) bytes[i] = (i * 2654435761) >>> 24;
  const pieceHashes = new Uint8Array(20 * pieceCount);
  for (let i = 0; i < pieceCount; i++) {
    pieceHashes.set(sha1(bytes.subarray(i * pieceLength, (i + 1) * pieceLength)), 20 * i);
  }
  const layout: SwarmLayout = {
    pieceLength,
    pieceCount,
    length: bytes.length,
    pieceHashes,
    isPrivate: false,
  };
  return { bytes, layout };
}

export type Content = ReturnType<typeof makeContent>;

type ScriptedOptions = Omit<Partial<SwarmSetup>, "info"> & { readonly info?: SwarmSetup["info"] | undefined };

/** A swarm with a clock controlled by the test, and a record of all its outputs. */
export class ScriptedSwarm {
  readonly swarm: Swarm;
  readonly content: Content;
  readonly outputs: SwarmOutput[] = [];
  readonly pieces: number[] = [];
  readonly peers = new Map<number, ScriptedPeer>();
  now = instant(0);
  /** Number of buffers before the budget is exhausted. */
  budget = 1_000;
  readonly infohash: Infohash;
  #nextConnection = 1;

  /** `info: undefined` makes a swarm that knows only the infohash. */
  constructor(content: Content, options: ScriptedOptions = {}) {
    this.content = content;
    this.infohash = options.infohash ?? infohashOf(new Uint8Array(20).fill(7));
    const { info = { layout: content.layout, infoBytes: Uint8Array.of(100, 101) }, ...others } = options;
    this.swarm = new Swarm(
      {
        infohash: this.infohash,
        peerId: latin1Bytes("-SL0100-abcdefghijkl"),
        ...(!("info" in options && options.info === undefined) && { info }),
        readInfo: () => content.layout,
        trackers: [],
        listenPort: 6881,
        sha1,
        sha256,
        random: seededRandom(1),
        limits: someLimits({}),
        buffers: {
          take: (length) => this.#takeBuffer(length),
          give: () => void this.budget++,
        },
        ...others,
      },
      this.now,
    );
    this.#drain();
  }

  input(input: SwarmInput): void {
    this.swarm.handle(input, this.now);
    this.#drain();
  }

  /** Advances the clock by `ms`, with every wake that the swarm requests on the way. */
  pass(ms: number): void {
    const until = this.now + ms;
    for (let guard = 0; guard < 100_000; guard++) {
      const wake = this.swarm.nextWake();
      if (wake === undefined || wake > until) break;
      this.now = instant(Math.max(this.now, wake));
      this.swarm.wake(this.now);
      this.#drain();
    }
    this.now = instant(until);
  }

  want(start: number, end: number, urgentBytes = 0, reader = 1): void {
    this.input({ kind: "want", reader, range: { start, end }, urgentBytes });
  }

  /** A peer connects to the swarm and sends its handshake. */
  peer(options: { fast?: boolean } = {}): ScriptedPeer {
    const connection = this.#nextConnection;
    this.#nextConnection += 2;
    const peer = new ScriptedPeer(this, connection);
    this.peers.set(connection, peer);
    const address = { host: "127.0.0.1", port: 20_000 + connection };
    this.input({ kind: "accepted", connection, address });
    const peerId = latin1Bytes(`-XX0000-${String(connection).padStart(12, "0")}`);
    const fast = options.fast ?? true;
    peer.raw(encodeHandshake({ infohash: this.infohash, peerId, extensions: false, fast, dht: false }));
    return peer;
  }

  #takeBuffer(length: number): Uint8Array<ArrayBuffer> | undefined {
    if (this.budget === 0) return undefined;
    this.budget--;
    return new Uint8Array(length);
  }

  #drain(): void {
    for (let output = this.swarm.poll(); output; output = this.swarm.poll()) {
      this.outputs.push(output);
      // Connections that the swarm opens have no scripted peer.
      const peer = "connection" in output ? this.peers.get(output.connection) : undefined;
      if (output.kind === "send") peer?.receive(output.bytes);
      else if (output.kind === "close" && peer) peer.closed = output.reason;
      else if (output.kind === "piece") this.pieces.push(output.piece);
    }
  }
}

export interface RequestedBlock {
  readonly piece: number;
  readonly begin: number;
  readonly length: number;
}

/** The remote end of one connection: sends what the test specifies, and records requests. */
export class ScriptedPeer implements PeerMessageHandler {
  readonly connection: number;
  closed: string | undefined;
  /** Requests that are not answered yet. */
  requests: RequestedBlock[] = [];
  readonly cancelled: RequestedBlock[] = [];
  readonly rejected: RequestedBlock[] = [];
  readonly haves: number[] = [];
  readonly allowed: number[] = [];
  readonly blocks: RequestedBlock[] = [];
  received: string[] = [];
  /** Received hash messages, in order. */
  hashes: { readonly id: number; readonly payload: Uint8Array }[] = [];
  readonly #swarm: ScriptedSwarm;
  readonly #decoder = new PeerMessageDecoder(this, {
    maxBitfieldBytes: 1_000,
    maxExtendedBytes: 100_000,
    maxBlockBytes: BLOCK,
  });
  #handshakeBytes = 0;

  constructor(swarm: ScriptedSwarm, connection: number) {
    this.#swarm = swarm;
    this.connection = connection;
  }

  /** Sends raw bytes. */
  raw(bytes: Uint8Array): void {
    this.#swarm.input({ kind: "received", connection: this.connection, bytes });
  }

  /** Sends messages. */
  send(write: (writer: PeerMessageWriter) => void): void {
    const writer = new PeerMessageWriter();
    write(writer);
    this.raw(writer.take()!);
  }

  /** Announces all pieces and unchokes the swarm. */
  seed(): this {
    this.send((writer) => {
      writer.haveAll();
      writer.unchoke();
    });
    return this;
  }

  /** Answers the first `count` requests; `change` may falsify a block. */
  answer(count = Number.POSITIVE_INFINITY, change: (block: Uint8Array) => void = () => {}): void {
    const now = this.requests.splice(0, Math.min(count, this.requests.length));
    for (const { piece, begin, length } of now) {
      if (this.closed !== undefined) return;
      const start = piece * this.#swarm.content.layout.pieceLength + begin;
      const bytes = this.#swarm.content.bytes.slice(start, start + length);
      change(bytes);
      this.send((writer) => writer.block(piece, begin, bytes));
    }
  }

  receive(bytes: Uint8Array): void {
    const skipped = Math.min(HANDSHAKE_BYTES - this.#handshakeBytes, bytes.length);
    this.#handshakeBytes += skipped;
    this.#decoder.feed(bytes.subarray(skipped));
  }

  keepAlive = () => void this.received.push("keep-alive");
  choke = () => void this.received.push("choke");
  unchoke = () => void this.received.push("unchoke");
  interested = () => void this.received.push("interested");
  notInterested = () => void this.received.push("not interested");
  have = (piece: number) => void this.haves.push(piece);
  bitfield = () => void this.received.push("bitfield");
  request = (piece: number, begin: number, length: number) =>
    void this.requests.push({ piece, begin, length });
  cancel = (piece: number, begin: number, length: number) => {
    this.cancelled.push({ piece, begin, length });
    this.requests = this.requests.filter((block) => block.piece !== piece || block.begin !== begin);
  };
  port = () => {};
  suggest = () => {};
  haveAll = () => void this.received.push("have all");
  haveNone = () => void this.received.push("have none");
  reject = (piece: number, begin: number, length: number) =>
    void this.rejected.push({ piece, begin, length });
  allowedFast = (piece: number) => void this.allowed.push(piece);
  extended = () => {};
  hash = (id: number, payload: Uint8Array) => void this.hashes.push({ id, payload: payload.slice() });
  block = (_piece: number, _begin: number, length: number) => new Uint8Array(length);
  blockDone = (piece: number, begin: number, length: number) =>
    void this.blocks.push({ piece, begin, length });
}
