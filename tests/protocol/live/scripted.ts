import { type Instant, instant } from "../../../src/base/time.ts";
import type { LiveInput, LiveOutput, LiveSetup } from "../../../src/protocol/live/contract.ts";
import { LiveSwarm } from "../../../src/protocol/live/live-swarm.ts";
import type { LiveAbout, LiveMessage, SignedHeader } from "../../../src/protocol/live/messages.ts";
import { emptyWindow } from "../../../src/wire/live/window.ts";
import { seededRandom } from "../../seeded-random.ts";
import { wakeUntil } from "./wake-until.ts";

export const STRIPES = 4;
export const CHUNK_BYTES = 188;

/** The claims of a peer, by default. */
export const ABOUT: LiveAbout = {
  role: "viewer",
  uploadBytesPerSecond: 1_000_000,
  homeStripe: 0,
  digest: 77,
};

/** A header that the fake source signed, or did not sign. */
export function header(
  seq: number,
  more: Partial<SignedHeader["value"]> = {},
  isSigned = true,
): SignedHeader {
  return {
    bytes: new Uint8Array([isSigned ? 1 : 0, seq & 255, more.timestampMs === undefined ? 0 : 1]),
    value: {
      epoch: 1,
      seq,
      timestampMs: seq * 125,
      spanMs: 125,
      clockReference: undefined,
      randomAccessOffset: 0,
      isSegmentStart: false,
      segment: 0,
      isDiscontinuity: false,
      isEnd: false,
      pieceBytes: STRIPES * CHUNK_BYTES,
      previousHash: hashOf(new Uint8Array([1, (seq - 1) & 255, 0])),
      chunkHashes: new Uint8Array(20 * STRIPES),
      ...more,
    },
  };
}

/** Stands for the hash of a header. */
export function hashOf(bytes: Uint8Array): Uint8Array {
  const hash = new Uint8Array(20);
  hash.set(bytes.subarray(0, 20));
  return hash;
}

/** A valid chunk, or one with a wrong hash. */
export function chunk(seq: number, stripe: number, isRight = true): LiveMessage & { kind: "chunk" } {
  const bytes = new Uint8Array(CHUNK_BYTES).fill(isRight ? 16 * (seq & 15) + stripe : 255);
  return { kind: "chunk", epoch: 1, seq, stripe, isLate: false, bytes };
}

/** The setup of a swarm, by default. */
export function setupOf(setup: Partial<LiveSetup>): LiveSetup {
  return {
    about: { ...ABOUT, digest: 1 },
    layout: { stripes: STRIPES, pieceMs: 125, bytesPerSecond: 10_000, maxPieceBytes: 100_000 },
    lagMs: 3_000,
    keepMs: 10_000,
    random: seededRandom(1),
    isSigned: ({ bytes }) => bytes[0] === 1,
    isValidChunk: (of, stripe, bytes) => bytes[0] === 16 * (of.value.seq & 15) + stripe,
    hash: hashOf,
    isSignedStat: ({ bytes }) => bytes[0] === 1,
    unixMs: (now) => now + 1_000_000,
    ...setup,
  };
}

/** A swarm whose peers the test plays. */
export class Scripted {
  readonly swarm: LiveSwarm;
  readonly outputs: LiveOutput[] = [];
  now: Instant = instant(1_000);
  #next = 1;

  constructor(setup: Partial<LiveSetup> = {}) {
    this.swarm = new LiveSwarm(setupOf(setup), this.now);
  }

  input(input: LiveInput): void {
    this.swarm.handle(input, this.now);
    this.#drain();
  }

  /** Advances the time. */
  pass(ms: number): void {
    const until = instant(this.now + ms);
    wakeUntil(this.swarm, until, (now) => {
      this.now = now;
      this.#drain();
    });
    this.now = until;
  }

  /** Connects a peer that sends HELLO; returns its connection. */
  peer(
    hello: SignedHeader | undefined,
    about: Partial<LiveAbout> = {},
    host?: string,
    isReachable = true,
  ): number {
    const connection = this.#next;
    this.#next += 2;
    const address = { host: host ?? `11.0.${connection}.7`, port: 6881 };
    const input = { connection, address, isReachable, rttMs: 20 };
    this.input({ kind: "accepted", ...input, about: { ...ABOUT, digest: 100 + connection, ...about } });
    this.receive(connection, { kind: "hello", header: hello });
    return connection;
  }

  /** Connects a peer that has all stripes up to `headSeq`, directly from the source. */
  holder(headSeq: number, host?: string, isReachable = true, about: Partial<LiveAbout> = {}): number {
    const connection = this.peer(header(headSeq), about, host, isReachable);
    this.receiveWindow(connection, headSeq);
    const paths = Array.from({ length: STRIPES }, (_, stripe) => ({ stripe, depth: 1, ancestors: [9] }));
    this.receive(connection, { kind: "paths", paths });
    return connection;
  }

  receiveWindow(connection: number, headSeq: number, epoch = 1): void {
    const window = { ...emptyWindow(STRIPES), epoch, baseSeq: headSeq + 1, isOpen: true, freeSlots: 8 };
    this.receive(connection, { kind: "window", window });
  }

  receive(connection: number, message: LiveMessage): void {
    this.input({ kind: "message", connection, message });
  }

  /** The messages of one kind that were sent to a peer, or to all. */
  sent<K extends LiveMessage["kind"]>(kind: K, connection?: number): (LiveMessage & { kind: K })[] {
    return this.outputs.flatMap((output) =>
      output.kind === "send" &&
      output.message.kind === kind &&
      (connection ?? output.connection) === output.connection
        ? [output.message as LiveMessage & { kind: K }]
        : [],
    );
  }

  of<K extends LiveOutput["kind"]>(kind: K): (LiveOutput & { kind: K })[] {
    return this.outputs.filter((output): output is LiveOutput & { kind: K } => output.kind === kind);
  }

  #drain(): void {
    for (let output = this.swarm.poll(); output; output = this.swarm.poll()) this.outputs.push(output);
  }
}
