import { messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { after } from "../../base/time.ts";
import type { Runtime } from "../../runtime/contract.ts";
import type { LiveTransportFile } from "../../wire/live-transport.ts";
import type { Hold } from "../holds.ts";
import type { Broadcast, BroadcastRequest } from "./broadcast-contract.ts";
import { broadcastFigures } from "./broadcast-figures.ts";
import { broadcastLinks } from "./broadcast-file.ts";
import { STATE_SYNC_MS, sourceStart } from "./broadcast-start.ts";
import type { LiveControl } from "./contract.ts";
import type { BroadcastIdentity } from "./identity.ts";
import type { SourceState } from "./identity-state.ts";
import { cutPieces } from "./piece-cutter.ts";
import { PieceSigner, type SignedPiece } from "./piece-signer.ts";
import type { LiveInput } from "./source.ts";
import { pauseFor, pauseUntil } from "./source-feed.ts";
import { SteadyTime } from "./steady-time.ts";

/** What a broadcast is made of; all of it is its own, and let go of when it is over. */
export interface BroadcastParts {
  readonly runtime: Pick<Runtime, "clock" | "sha256">;
  readonly log: Log;
  /** The time of day in UNIX ms. */
  unixMs(): number;
  readonly request: BroadcastRequest;
  readonly identity: BroadcastIdentity;
  readonly file: LiveTransportFile;
  readonly input: LiveInput;
  readonly hold: Hold;
}

/** Peers that can be called are kept so often, for the next start. */
const PEERS_MS = 60_000;
/** After the end of a source its last pieces are still given to those who lack them: viewers are this late at most. */
const LINGER_MS = 10_000;

/** Starts to broadcast, for as long as the source goes on or until it is stopped. */
export function startBroadcast(parts: BroadcastParts): Broadcast {
  const { request, identity, file, runtime } = parts;
  const run = new BroadcastRun(parts, liveOf(parts.hold));
  return {
    request,
    infohash: file.infohash,
    contentId: file.contentId,
    transportFile: file.bytes,
    transportFilePath: identity.transportFilePath,
    ...broadcastLinks(request, file),
    startedAt: runtime.clock.unixSeconds(),
    figures: () => run.figures(),
    ended: run.ended,
    stop: () => run.stop(),
  };
}

function liveOf({ transfer }: Hold): LiveControl {
  if (transfer.live?.content.role === "source") return transfer.live;
  throw new SluiceError(
    "bad_parameter",
    "this stream is being watched here already, and cannot be broadcast by the same engine until that has ended",
  );
}

/** One life of a source. */
class BroadcastRun {
  readonly #parts: BroadcastParts;
  readonly #live: LiveControl;
  readonly #signer: PieceSigner;
  readonly #pieces: ReturnType<typeof cutPieces>;
  readonly #stopped = new AbortController();
  readonly #now: () => number;
  readonly ended: Promise<void>;
  #last: SignedPiece | undefined;
  /** When the first piece was sent, and how many since then: they do not go faster than their numbers may. */
  #firstAtMs: number | undefined;
  #count = 0;
  #isOver = false;
  #isStateLost = false;
  /** What is being written besides, one after another. */
  #chores: Promise<unknown> = Promise.resolve();
  #cancelSync = () => {};
  #cancelPeers = () => {};

  constructor(parts: BroadcastParts, live: LiveControl) {
    this.#parts = parts;
    this.#live = live;
    const { identity, file, runtime, input } = parts;
    const { clock, sha256 } = runtime;
    const { info, infohash } = file;
    const start = sourceStart(identity.state.found.state, parts.unixMs(), info.pieceMs);
    const time = new SteadyTime();
    // Goes on from the last piece even where the machine's clock was set back: time never does in an epoch.
    time.now(clock.now(), Math.max(start.leastTimestampMs, parts.unixMs()));
    this.#now = () => time.now(clock.now(), parts.unixMs());
    this.#signer = new PieceSigner({ info, infohash, sign: identity.sign, sha256 }, start);
    const { pieceMs, maxPieceBytes, segmentMs } = info;
    const cut = { pieceMs, maxPieceBytes, segmentMs, firstSegment: start.leastSegment };
    this.#pieces = cutPieces(input, cut, { clock, unixMs: this.#now });
    this.ended = this.#run();
    this.ended.catch(() => {}); // Told to whoever waits for it.
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#pieces.close();
    await this.ended.catch(() => {}); // Why it failed is told by `ended`.
  }

  figures() {
    const { hold, runtime, input } = this.#parts;
    const { lastAt, problem } = input.facts;
    const header = this.#last?.header.value;
    return broadcastFigures({
      live: this.#live.figures(),
      swarm: hold.transfer.figures,
      seq: header?.seq,
      pieceAtMs: header?.timestampMs,
      bytesPerSecond: this.#pieces.bytesPerSecond,
      silentMs: lastAt === undefined ? undefined : runtime.clock.now() - lastAt,
      problem,
      isForked: this.#live.isForked,
      isOver: this.#isOver,
    });
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    try {
      this.#syncSoon();
      this.#keepPeersSoon();
      for (
        let piece = await this.#pieces.next();
        piece && !signal.aborted;
        piece = await this.#pieces.next()
      ) {
        await this.#pace();
        if (!signal.aborted) await this.#send(this.#signer.sign(piece));
      }
      if (!signal.aborted) await this.#end();
    } finally {
      this.#isOver = true;
      await this.#letGo();
    }
  }

  /** A burst of the source does not make more pieces than time has room for: their numbers must not overtake the clock. */
  async #pace(): Promise<void> {
    const { clock } = this.#parts.runtime;
    this.#firstAtMs ??= this.#now();
    const dueMs = this.#firstAtMs + this.#count++ * this.#parts.file.info.pieceMs;
    const waitMs = dueMs - this.#now();
    if (waitMs > 0) await pauseUntil(clock, after(clock.now(), waitMs), this.#stopped.signal);
  }

  async #send(piece: SignedPiece): Promise<void> {
    await this.#keepState(piece.state);
    this.#last = piece;
    this.#live.produce(piece.header, piece.chunks);
  }

  /** A disk that fails does not end a broadcast: numbers that follow the clock are not used twice without the state, either. */
  async #keepState(state: SourceState): Promise<void> {
    try {
      await this.#parts.identity.state.write(state);
      this.#isStateLost = false;
    } catch (thrown) {
      if (!this.#isStateLost)
        this.#parts.log.error("the state of a broadcast cannot be written", { reason: messageOf(thrown) });
      this.#isStateLost = true;
    }
  }

  /**
   * The source has come to its end. CHOICE(broadcast-end): only what says itself that it is over ends the stream for viewers; a pipe
   * that breaks, and a stop, may be followed by a start that goes on.
   */
  async #end(): Promise<void> {
    const { request, runtime } = this.#parts;
    const { kind } = request.place;
    if (kind === "pipe" || request.meta.isPermanent || !this.#last) return;
    await this.#send(this.#signer.end(this.#now()));
    this.#isOver = true;
    if (this.#live.figures().peers > 0) await pauseFor(runtime.clock, LINGER_MS, this.#stopped.signal);
  }

  async #letGo(): Promise<void> {
    const { identity, hold, log } = this.#parts;
    this.#cancelSync();
    this.#cancelPeers();
    this.#pieces.close();
    this.#keepPeers();
    await this.#chores;
    hold.release();
    await identity.close().catch((thrown) => {
      log.error("the state of a broadcast may not be on disk", { reason: messageOf(thrown) });
    });
  }

  #syncSoon(): void {
    const { runtime, identity } = this.#parts;
    const { clock } = runtime;
    this.#cancelSync = clock.at(after(clock.now(), STATE_SYNC_MS), () => {
      this.#syncSoon();
      this.#chore("the state of a broadcast is not safe from a power cut", () => identity.state.sync());
    });
  }

  #keepPeersSoon(): void {
    const { clock } = this.#parts.runtime;
    this.#cancelPeers = clock.at(after(clock.now(), PEERS_MS), () => {
      this.#keepPeersSoon();
      this.#keepPeers();
    });
  }

  #keepPeers(): void {
    const peers = this.#live.reachablePeers();
    if (peers.length === 0) return;
    this.#chore("the peers of a broadcast are not kept", () => this.#parts.identity.keepPeers(peers));
  }

  /** Something that would be good to have done, and ends nothing where it cannot be. */
  #chore(failure: string, work: () => Promise<void>): void {
    this.#chores = this.#chores.then(work).catch((thrown) => {
      this.#parts.log.warn(failure, { reason: messageOf(thrown) });
    });
  }
}
