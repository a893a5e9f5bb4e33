import { sleep } from "../../async/sleep.ts";
import { messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { after } from "../../base/time.ts";
import type { SegmentGrid } from "../../media/segment-grid.ts";
import type { Runtime } from "../../runtime/contract.ts";
import type { Hold, LiveControl } from "../../transfer/contract.ts";
import type { PieceHeader } from "../../wire/live/header.ts";
import type { LiveTransportFile } from "../../wire/live/transport-file.ts";
import { isTimely, MAX_AHEAD_MS } from "../../wire/live/trust.ts";
import type { LiveVariant } from "../../wire/live/variants.ts";
import type { LiveInput } from "../input/source.ts";
import { SteadyTime } from "../input/steady-time.ts";
import type { Broadcast, BroadcastRequest } from "./broadcast-contract.ts";
import { broadcastFigures } from "./broadcast-figures.ts";
import { broadcastOf } from "./broadcast-file.ts";
import { lostCount, type SourceStart, STATE_SYNC_MS, sourceStart } from "./broadcast-start.ts";
import type { BroadcastIdentity } from "./identity.ts";
import { cutPieces } from "./piece-cutter.ts";
import { PieceSigner, type SignedPiece } from "./piece-signer.ts";
import { StatSigner } from "./stat-signer.ts";

/** What a broadcast is made of. It owns all of these, and releases them at its end. */
export interface BroadcastOptions {
  readonly runtime: Pick<Runtime, "clock" | "sha1" | "sha256" | "ed25519Verifier">;
  readonly log: Log;
  /** The time of day in UNIX ms. */
  unixMs(): number;
  readonly request: BroadcastRequest;
  readonly identity: BroadcastIdentity;
  readonly file: LiveTransportFile;
  readonly input: LiveInput;
  readonly hold: Hold;
  /** The signed record of the stream that replaces this one. */
  readonly successor?: Uint8Array;
  /** Segments that are common with the other qualities of the broadcast. */
  readonly grid?: SegmentGrid;
  /** How to start; the default is derived from the state. */
  readonly start?: SourceStart;
  /** Called before the broadcast ends because another program is on air with its key, with the same or a later epoch.
   * If it is absent, a later epoch is an error, and the same epoch is ignored. */
  readonly yielded?: (rival: PieceHeader) => void;
}

/** How often reachable peers are saved for the next start, and the STAT is repeated. */
const PEERS_INTERVAL_MS = 60_000;
/** After its end, a source serves the last pieces to late viewers for this long. */
const LINGER_MS = 10_000;

/** Starts a broadcast, until its source ends or it is stopped. */
export function startBroadcast(options: BroadcastOptions): Broadcast {
  return broadcastOf(options, new BroadcastRun(options, liveOf(options.hold)));
}

function liveOf({ transfer }: Hold): LiveControl {
  if (transfer.live?.content.role === "source") return transfer.live;
  throw new SluiceError(
    "bad_parameter",
    "this engine is playing the same stream; stop watching it before broadcasting it",
  );
}

function takenOverError(name: string, epoch: number): SluiceError {
  return new SluiceError(
    "bad_configuration",
    `${name} is on air elsewhere: another program with its key started later (epoch ${epoch}), and viewers follow that one. Start this one with --standby to take over when the other one stops. If you run no other one, your key was copied`,
  );
}

/** One run of a source. */
class BroadcastRun {
  readonly #options: BroadcastOptions;
  readonly #live: LiveControl;
  readonly #signer: PieceSigner;
  readonly #statSigner: StatSigner;
  readonly #pieces: ReturnType<typeof cutPieces>;
  readonly #stopped = new AbortController();
  readonly #now: () => number;
  readonly ended: Promise<void>;
  #last: SignedPiece | undefined;
  #reservedSeq = 0;
  #isOver = false;
  #isWriteFailing = false;
  /** Background writes, one after another. */
  #background: Promise<unknown> = Promise.resolve();
  #cancelSync = () => {};
  #cancelPeers = () => {};

  constructor(options: BroadcastOptions, live: LiveControl) {
    this.#options = options;
    this.#live = live;
    const { identity, file, runtime, input } = options;
    const { clock, sha256 } = runtime;
    const { info, infohash } = file;
    const start = options.start ?? sourceStart(identity.state.found.state, options.unixMs(), info.pieceMs);
    const time = new SteadyTime();
    // Continues from the last piece even if the clock was set back: time never goes back within an epoch.
    time.now(clock.now(), Math.max(start.leastTimestampMs, options.unixMs()));
    this.#now = () => time.now(clock.now(), options.unixMs());
    this.#signer = new PieceSigner({ info, infohash, sign: identity.sign, sha256 }, start);
    const { successor } = options;
    const signer = { infohash, sign: identity.sign, ...(successor && { successor }) };
    this.#statSigner = new StatSigner(options.request, signer);
    const { pieceMs, maxPieceBytes, segmentMs } = info;
    const cut = {
      pieceMs,
      maxPieceBytes,
      segmentMs,
      ...(options.grid && { grid: options.grid }),
      ...(start.firstSegment !== undefined && { firstSegment: start.firstSegment }),
    };
    this.#pieces = cutPieces(input, cut, { clock, unixMs: this.#now });
    this.ended = this.#run();
    this.ended.catch(() => {}); // Callers that need the error wait for `ended`.
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#pieces.close();
    await this.ended.catch(() => {}); // `ended` reports the error.
  }

  tellVariants(variants: readonly LiveVariant[]): void {
    this.#statSigner.offer(variants);
    this.#sendStat(false);
  }

  figures() {
    const { hold, runtime, input } = this.#options;
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
      this.#scheduleSync();
      this.#schedulePeers();
      for (
        let piece = await this.#pieces.next();
        piece && !signal.aborted;
        piece = await this.#pieces.next()
      ) {
        if (this.#yields()) return;
        await this.#send(this.#signer.sign(piece));
        this.#refuseWrongClock();
      }
      if (!signal.aborted) await this.#end();
    } finally {
      this.#isOver = true;
      await this.#release();
    }
  }

  /** Whether to yield to another source: viewers follow the later epoch. Old headers are ignored, because any peer can
   * repeat them. */
  #yields(): boolean {
    const { rival } = this.#live;
    const own = this.#last?.header.value;
    if (!rival || !own || !isTimely(rival, this.#options.unixMs(), own.timestampMs)) return false;
    const { yielded, request } = this.#options;
    if (rival.epoch > own.epoch && !yielded) throw takenOverError(request.name, rival.epoch);
    if (rival.epoch < own.epoch || !yielded) return false;
    yielded(rival);
    return true;
  }

  async #send(piece: SignedPiece): Promise<void> {
    await this.#saveState(piece.state, piece.header.value.isSegmentStart);
    const isFirst = this.#last === undefined;
    this.#last = piece;
    this.#live.produce(piece.header, piece.chunks);
    if (isFirst) this.#sendStat(false);
  }

  /** Ends the broadcast if the clock was far ahead and has been corrected: its timestamps stay wrong until a restart,
   * and peers reject them. If it has viewers, its time is right and the clock is wrong now. */
  #refuseWrongClock(): void {
    const aheadMs = this.#now() - this.#options.unixMs();
    if (aheadMs <= MAX_AHEAD_MS || this.#live.figures().children > 0) return;
    const minutes = Math.round(aheadMs / 60_000);
    throw new SluiceError(
      "bad_configuration",
      `the clock of this machine was set back by ${minutes} min, and viewers cannot play a stream from the future: start the broadcast again; its link stays the same`,
    );
  }

  /**
   * Writes the state before a piece is sent. Numbers ahead of the clock, after a burst, are reserved on disk first,
   * so that a power cut cannot repeat them. A disk error does not end the broadcast, because numbering by the clock
   * alone avoids most repetitions.
   */
  async #saveState(piece: SignedPiece["state"], isSegmentStart: boolean): Promise<void> {
    const { identity, file, log } = this.#options;
    const { pieceMs } = file.info;
    const isAhead = piece.seq > Math.max(this.#reservedSeq, Math.floor(this.#now() / pieceMs));
    if (isAhead) this.#reservedSeq = piece.seq + lostCount(pieceMs);
    try {
      await identity.state.write({ ...piece, reservedSeq: this.#reservedSeq });
      if (isAhead) await identity.state.sync();
      else if (isSegmentStart) this.#sync();
      this.#isWriteFailing = false;
    } catch (thrown) {
      if (!this.#isWriteFailing)
        log.error("cannot write the state of a broadcast", { reason: messageOf(thrown) });
      this.#isWriteFailing = true;
      this.#reservedSeq = 0;
    }
  }

  /** Ends the stream after its source. CHOICE(broadcast-end): the stream ends for viewers only if the source has a
   * definite end; a pipe that breaks, and a stop, may be followed by a restart. */
  async #end(): Promise<void> {
    const { request, runtime } = this.#options;
    const { kind } = request.place;
    if (kind === "pipe" || request.meta.isPermanent || !this.#last) return;
    await this.#send(this.#signer.end(this.#now()));
    this.#sendStat(true);
    this.#isOver = true;
    if (this.#live.figures().peers > 0) await sleep(runtime.clock, LINGER_MS, this.#stopped.signal);
  }

  async #release(): Promise<void> {
    const { identity, hold, log } = this.#options;
    this.#cancelSync();
    this.#cancelPeers();
    this.#pieces.close();
    this.#savePeers();
    await this.#background;
    hold.release();
    await identity.close().catch((thrown) => {
      log.error("cannot close the state file of a broadcast", { reason: messageOf(thrown) });
    });
  }

  #scheduleSync(): void {
    const { clock } = this.#options.runtime;
    this.#cancelSync = clock.at(after(clock.now(), STATE_SYNC_MS), () => {
      this.#scheduleSync();
      this.#sync();
    });
  }

  /** Syncs the state in the background. Segment numbers are used once, too, so this also runs at each segment start. */
  #sync(): void {
    this.#runInBackground("cannot sync the state of a broadcast; a power cut may repeat numbers", () =>
      this.#options.identity.state.sync(),
    );
  }

  #schedulePeers(): void {
    const { clock } = this.#options.runtime;
    this.#cancelPeers = clock.at(after(clock.now(), PEERS_INTERVAL_MS), () => {
      this.#schedulePeers();
      this.#savePeers();
      this.#sendStat(false);
    });
  }

  #sendStat(isEnd: boolean): void {
    const epoch = this.#last?.header.value.epoch;
    const stat = epoch === undefined ? undefined : this.#statSigner.at(epoch, this.#now(), isEnd);
    if (stat) this.#live.tell(stat);
  }

  #savePeers(): void {
    const peers = this.#live.reachablePeers();
    if (peers.length === 0) return;
    this.#runInBackground("cannot save the peers of a broadcast", () =>
      this.#options.identity.keepPeers(peers),
    );
  }

  /** Runs work whose failure does not end the broadcast. */
  #runInBackground(failure: string, work: () => Promise<void>): void {
    this.#background = this.#background.then(work).catch((thrown) => {
      this.#options.log.warn(failure, { reason: messageOf(thrown) });
    });
  }
}
