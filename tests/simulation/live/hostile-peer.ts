import type { PeerAddress } from "../../../src/base/address.ts";
import type { Machine } from "../../../src/base/machine.ts";
import type { Random } from "../../../src/base/random.ts";
import { after, earliest, type Instant } from "../../../src/base/time.ts";
import {
  type LiveInput,
  type LiveOutput,
  type LivePriority,
  PRIORITY,
} from "../../../src/protocol/live/contract.ts";
import type { LiveMessage, SignedHeader } from "../../../src/protocol/live/messages.ts";
import { emptyWindow } from "../../../src/wire/live/window.ts";

/** What a hostile peer does after it has claimed to have everything: sends no chunk, 70 % of the chunks, corrupt chunks,
 * all chunks two seconds late, chunks on time but no answers, refuses each request, or requests 3,000 times each second. */
export const ATTACKS = ["nothing", "lossy", "corrupt", "late", "mute", "refusing", "flood"] as const;
/** Only hostile pages do the last one: they send the pieces of some seconds ago again instead of the new ones. */
export type Attack = (typeof ATTACKS)[number] | "replay";

/** A piece as the source made it. */
export interface MadePiece {
  readonly header: SignedHeader;
  readonly chunks: readonly Uint8Array[];
}

/** What a hostile peer depends on. */
export interface HostileSetup {
  readonly attack: Attack;
  readonly stripes: number;
  readonly pieceMs: number;
  readonly random: Random;
  /** The addresses that it connects to when it starts. */
  readonly targets: readonly PeerAddress[];
  /** The pieces of the last seconds: a hostile peer can get them from the source. */
  readonly recent: () => readonly MadePiece[];
  /** It subscribes to all stripes of its targets, and so takes places there. */
  readonly subscribes: boolean;
}

const LATE_MS = 2_000;
const LOSS = 0.3;
const WIN_MS = 250;
/** 66 kB of HREQ, each of which asks for the most headers. */
const FLOOD_MESSAGES = 3_000;
const FLOOD_MS = 1_000;

interface Delayed {
  readonly at: Instant;
  readonly output: LiveOutput;
}

/** A peer that accepts every subscription, claims to have every chunk, and serves its targets badly. */
export class HostilePeer implements Machine<LiveInput, LiveOutput> {
  readonly #setup: HostileSetup;
  readonly #outputs: LiveOutput[] = [];
  readonly #delayed: Delayed[] = [];
  /** The stripes that each connection has subscribed to. */
  readonly #children = new Map<number, number>();
  #sentSeq: number;
  #tickAt: Instant;
  #windowAt: Instant;
  #floodAt: Instant;

  constructor(setup: HostileSetup, now: Instant) {
    this.#setup = setup;
    this.#tickAt = this.#windowAt = this.#floodAt = now;
    this.#sentSeq = this.#head?.header.value.seq ?? -1;
    for (const [i, address] of setup.targets.entries())
      this.#outputs.push({ kind: "connect", connection: 2 * i, address });
  }

  handle(input: LiveInput, now: Instant): void {
    if (input.kind === "opened" || input.kind === "accepted") this.#opened(input.connection, now);
    else if (input.kind === "closed") this.#children.delete(input.connection);
    else if (input.kind === "message") this.#received(input.connection, input.message, now);
  }

  wake(now: Instant): void {
    while (this.#delayed[0] && this.#delayed[0].at <= now) this.#outputs.push(this.#delayed.shift()!.output);
    if (now < this.#tickAt) return;
    this.#tickAt = after(now, this.#setup.pieceMs / 4);
    for (const piece of this.#setup.recent()) {
      if (piece.header.value.seq <= this.#sentSeq) continue;
      this.#sentSeq = piece.header.value.seq;
      for (const [connection, stripes] of this.#children) this.#push(connection, stripes, piece, now);
    }
    if (now >= this.#windowAt) {
      this.#windowAt = after(now, WIN_MS);
      for (const connection of this.#children.keys()) this.#claim(connection);
    }
    if (this.#setup.attack !== "flood" || now < this.#floodAt) return;
    this.#floodAt = after(now, FLOOD_MS);
    for (const connection of this.#children.keys()) this.#flood(connection);
  }

  poll(): LiveOutput | undefined {
    return this.#outputs.shift();
  }

  nextWake(): Instant {
    return earliest(this.#tickAt, this.#delayed[0]?.at)!;
  }

  get #head(): MadePiece | undefined {
    return this.#setup.recent().at(-1);
  }

  #opened(connection: number, now: Instant): void {
    const { stripes, subscribes } = this.#setup;
    this.#children.set(connection, 0);
    this.#send(connection, { kind: "hello", header: this.#head?.header });
    this.#claim(connection);
    const paths = Array.from({ length: stripes }, (_, stripe) => ({ stripe, depth: 1, ancestors: [] }));
    this.#send(connection, { kind: "paths", paths });
    if (!subscribes || !this.#head) return;
    const { epoch, seq } = this.#head.header.value;
    const have = new Array<number>(stripes).fill(0);
    const wanted = { stripes: 2 ** stripes - 1, epoch, startSeq: seq + 1, backfillPieces: 0, have };
    this.#send(connection, { kind: "subscribe", ...wanted, isDesperate: true });
    this.#floodAt = now;
  }

  #received(connection: number, message: LiveMessage, now: Instant): void {
    const { attack } = this.#setup;
    switch (message.kind) {
      case "subscribe": {
        const { stripes, epoch, startSeq } = message;
        this.#children.set(connection, (this.#children.get(connection) ?? 0) | stripes);
        this.#send(connection, { kind: "subscribed", stripes, epoch, startSeq });
        return;
      }
      case "unsubscribe":
        this.#children.set(connection, (this.#children.get(connection) ?? 0) & ~message.stripes);
        return;
      case "request":
        if (attack === "refusing") {
          const chunks = message.chunks.map(({ seq, stripe }) => ({
            seq,
            stripe,
            reason: "too-late" as const,
          }));
          this.#send(connection, { kind: "lacking", epoch: message.epoch, chunks, holders: [] });
        } else if (attack !== "mute") {
          const recent = new Map(this.#setup.recent().map((piece) => [piece.header.value.seq, piece]));
          for (const { seq, stripe } of message.chunks) {
            const piece = recent.get(seq);
            if (piece) this.#serve(connection, piece, stripe, true, now);
          }
        }
        return;
      case "ping":
        this.#send(connection, { ...message, kind: "pong" });
        return;
      default:
        return;
    }
  }

  /** Sends a piece to a child of these stripes, as the attack demands. */
  #push(connection: number, stripes: number, piece: MadePiece, now: Instant): void {
    if (stripes === 0 || this.#setup.attack === "nothing") return;
    this.#send(connection, { kind: "header", isAnswer: false, header: piece.header });
    for (let stripe = 0; stripe < this.#setup.stripes; stripe++)
      if (((stripes >>> stripe) & 1) === 1) this.#serve(connection, piece, stripe, false, now);
  }

  #serve(connection: number, piece: MadePiece, stripe: number, isLate: boolean, now: Instant): void {
    const { attack, random } = this.#setup;
    if (attack === "replay") piece = this.#setup.recent()[0]!;
    const { epoch, seq } = piece.header.value;
    const genuine = piece.chunks[stripe]!;
    if (attack === "nothing" || genuine.length === 0 || (attack === "lossy" && random() < LOSS)) return;
    const bytes = attack === "corrupt" ? genuine.slice() : genuine;
    const output = send(connection, { kind: "chunk", epoch, seq, stripe, isLate, bytes }, PRIORITY.live);
    if (attack === "late") this.#delayed.push({ at: after(now, LATE_MS), output });
    else this.#outputs.push(output);
  }

  /** WIN: everything is here, the slots are free, and nothing waits. */
  #claim(connection: number): void {
    const { stripes } = this.#setup;
    const value = this.#head?.header.value;
    if (!value) return;
    const claims = { epoch: value.epoch, oldestSeq: 0, baseSeq: value.seq + 1, isOpen: true, freeSlots: 60 };
    this.#send(connection, { kind: "window", window: { ...emptyWindow(stripes), ...claims } });
  }

  #flood(connection: number): void {
    const value = this.#head?.header.value;
    if (!value) return;
    const request = {
      kind: "headerRequest",
      ...{ epoch: value.epoch, firstSeq: Math.max(0, value.seq - 250), count: 256, step: 1 },
      onlyRandomAccess: false,
    } as const;
    for (let i = 0; i < FLOOD_MESSAGES; i++) this.#send(connection, request);
  }

  #send(connection: number, message: LiveMessage): void {
    this.#outputs.push(send(connection, message, PRIORITY.control));
  }
}

function send(connection: number, message: LiveMessage, priority: LivePriority): LiveOutput {
  return { kind: "send", connection, message, priority, expiresAt: Number.POSITIVE_INFINITY as Instant };
}
