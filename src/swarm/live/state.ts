import type { Instant } from "../../base/time.ts";
import { after, instant } from "../../base/time.ts";
import type { LiveOutput, LivePriority, LiveSetup } from "./contract.ts";
import type { LiveWord } from "./messages.ts";
import type { LivePeer } from "./peer.ts";
import { Timeline } from "./timeline.ts";
import { PieceWindow } from "./window.ts";

/** What the small machines of a live swarm share. */
export class LiveState {
  readonly setup: LiveSetup;
  readonly peers = new Map<number, LivePeer>();
  readonly window: PieceWindow;
  readonly timeline = new Timeline();
  now: Instant;
  epoch = 0;
  /** Where output goes on; −1 until a start is chosen. */
  nextSeq = -1;
  /** Where output began: from there on, what is behind us was here or was given up. */
  firstSeq = -1;
  /** The first piece that we subscribed from; −1 until then. */
  startSeq = -1;
  /** Something has been given out since the start was chosen. */
  hasPlayed = false;
  /** When the newest header came. */
  headAt: Instant;
  /** Connections that are being opened. */
  opening = 0;
  isStopped = false;
  /** Somebody has called us, so others can. */
  wasCalled = false;
  /** The time of the STAT in which the source says that it is over for good. */
  overAtMs: number | undefined;
  /** When two versions of the stream were last seen: until then, who sends the other one is not at fault. */
  forkedAt = Number.NEGATIVE_INFINITY;
  receivedBytes = 0;
  duplicateBytes = 0;
  skippedPieces = 0;
  #outputs: LiveOutput[] = [];
  #taken = 0;

  constructor(setup: LiveSetup, now: Instant) {
    this.setup = setup;
    this.now = now;
    this.headAt = now;
    const { stripes, pieceMs } = setup.layout;
    this.window = new PieceWindow(stripes, Math.ceil(setup.keepMs / pieceMs));
  }

  get isSource(): boolean {
    return this.setup.about.role === "source";
  }

  /** The source has ended with the newest piece, or says that it has: there is nothing more to seek. */
  get isEnding(): boolean {
    const head = this.window.piece(this.window.head)?.header.value;
    // Without a piece we cannot tell an old word of the source from its last one.
    return head !== undefined && (head.isEnd || head.timestampMs <= (this.overAtMs ?? -1));
  }

  /** It has ended, and all that could be played has been. */
  get hasEnded(): boolean {
    return this.isEnding && (this.isSource || this.nextSeq > this.window.head);
  }

  /** Pieces in `ms`, rounded up. */
  piecesIn(ms: number): number {
    return Math.ceil(ms / this.setup.layout.pieceMs);
  }

  /** Bytes a second of one stripe. */
  get stripeRate(): number {
    return this.setup.layout.bytesPerSecond / this.setup.layout.stripes;
  }

  /** Bytes of a chunk, as a rule. */
  get chunkBytes(): number {
    return (this.stripeRate * this.setup.layout.pieceMs) / 1_000;
  }

  emit(output: LiveOutput): void {
    this.#outputs.push(output);
  }

  /** Says something to a peer; `usefulMs` from now on it is of use. */
  send(peer: LivePeer, message: LiveWord, priority: LivePriority = 0, usefulMs?: number): void {
    const expiresAt =
      usefulMs === undefined ? instant(Number.POSITIVE_INFINITY) : after(this.now, Math.max(0, usefulMs));
    this.#outputs.push({ kind: "send", connection: peer.connection, message, priority, expiresAt });
  }

  poll(): LiveOutput | undefined {
    const output = this.#outputs[this.#taken++];
    if (output === undefined) {
      this.#taken = 0;
      if (this.#outputs.length > 0) this.#outputs = [];
    }
    return output;
  }
}
