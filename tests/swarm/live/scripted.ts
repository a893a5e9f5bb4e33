import { seededRandom } from "../../../src/base/random.ts";
import { type Instant, instant } from "../../../src/base/time.ts";
import type { LiveInput, LiveOutput, LiveSetup } from "../../../src/swarm/live/contract.ts";
import { LIVE_RULES } from "../../../src/swarm/live/limits.ts";
import { LiveSwarm } from "../../../src/swarm/live/live-swarm.ts";
import type { LiveAbout, LiveWord, SignedHeader } from "../../../src/swarm/live/messages.ts";
import { emptyWindow } from "../../../src/wire/live-window.ts";
import { wakeUntil } from "./wake-until.ts";

export const STRIPES = 4;
const CHUNK_BYTES = 188;

/** What a peer says of itself, unless more is said. */
export const ABOUT: LiveAbout = {
  role: "viewer",
  uploadBytesPerSecond: 1_000_000,
  homeStripe: 0,
  clockMs: 0,
  digest: 77,
};

/** A header that the fake source has signed, or somebody else. */
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

/** Stands for a header's hash. */
export function hashOf(bytes: Uint8Array): Uint8Array {
  const hash = new Uint8Array(20);
  hash.set(bytes.subarray(0, 20));
  return hash;
}

/** The chunk that fits, or one that does not. */
export function chunk(seq: number, stripe: number, isRight = true): LiveWord & { kind: "chunk" } {
  const bytes = new Uint8Array(CHUNK_BYTES).fill(isRight ? 16 * (seq & 15) + stripe : 255);
  return { kind: "chunk", epoch: 1, seq, stripe, isLate: false, bytes };
}

/** What a machine is made with, unless more is said. */
export function setupOf(setup: Partial<LiveSetup>): LiveSetup {
  return {
    about: { ...ABOUT, digest: 1 },
    layout: { stripes: STRIPES, pieceMs: 125, bytesPerSecond: 10_000, maxPieceBytes: 100_000 },
    lagMs: 3_000,
    keepMs: 10_000,
    rules: LIVE_RULES,
    random: seededRandom(1),
    isSigned: ({ bytes }) => bytes[0] === 1,
    fits: (of, stripe, bytes) => bytes[0] === 16 * (of.value.seq & 15) + stripe,
    hash: hashOf,
    isSignedStat: ({ bytes }) => bytes[0] === 1,
    unixMs: (now) => now + 1_000_000,
    ...setup,
  };
}

/** A machine and the hands of the test: peers are played by the test itself. */
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

  /** Lets time pass. */
  pass(ms: number): void {
    const until = instant(this.now + ms);
    wakeUntil(this.swarm, until, (now) => {
      this.now = now;
      this.#drain();
    });
    this.now = until;
  }

  /** A peer that has called us and said hello. */
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
    this.say(connection, { kind: "hello", header: hello });
    return connection;
  }

  /** A peer that has all stripes of everything up to `headSeq`, straight from the source. */
  holder(headSeq: number, host?: string, isReachable = true): number {
    const connection = this.peer(header(headSeq), {}, host, isReachable);
    this.tellWindow(connection, headSeq);
    const paths = Array.from({ length: STRIPES }, (_, stripe) => ({ stripe, depth: 1, ancestors: [9] }));
    this.say(connection, { kind: "paths", paths });
    return connection;
  }

  tellWindow(connection: number, headSeq: number, epoch = 1): void {
    const window = { ...emptyWindow(STRIPES), epoch, baseSeq: headSeq + 1, isOpen: true, freeSlots: 8 };
    this.say(connection, { kind: "window", window });
  }

  say(connection: number, message: LiveWord): void {
    this.input({ kind: "message", connection, message });
  }

  /** What was said to a peer, of one kind. */
  told<K extends LiveWord["kind"]>(kind: K, connection?: number): (LiveWord & { kind: K })[] {
    return this.outputs.flatMap((output) =>
      output.kind === "send" &&
      output.message.kind === kind &&
      (connection ?? output.connection) === output.connection
        ? [output.message as LiveWord & { kind: K }]
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
