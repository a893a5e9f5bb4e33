import { messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { after } from "../../base/time.ts";
import type { Runtime } from "../../runtime/contract.ts";
import type { PieceHeader } from "../../wire/live-header.ts";
import type { LiveTransportFile } from "../../wire/live-transport.ts";
import { isTimely, MAX_AHEAD_MS } from "../../wire/live-trust.ts";
import type { Hold } from "../holds.ts";
import type { Broadcast, BroadcastRequest } from "./broadcast-contract.ts";
import { broadcastFigures } from "./broadcast-figures.ts";
import { broadcastOf } from "./broadcast-file.ts";
import { BroadcastNews } from "./broadcast-news.ts";
import { lostCount, type SourceStart, STATE_SYNC_MS, sourceStart } from "./broadcast-start.ts";
import type { LiveControl } from "./contract.ts";
import type { BroadcastIdentity } from "./identity.ts";
import { cutPieces } from "./piece-cutter.ts";
import { PieceSigner, type SignedPiece } from "./piece-signer.ts";
import type { LiveInput } from "./source.ts";
import { pauseFor } from "./source-feed.ts";
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
  /** How it begins; as its state says where that is absent. */
  readonly start?: SourceStart;
  /**
   * Called before it ends, since another is on air with its key: with a later epoch, or with this one. Where it is absent, a
   * later epoch is its failure, and who has the same one is borne.
   */
  readonly yielded?: (rival: PieceHeader) => void;
}

/** Peers that can be called are kept so often, for the next start; and so often the source tells its news again. */
const PEERS_MS = 60_000;
/** After the end of a source its last pieces are still given to those who lack them: viewers are this late at most. */
const LINGER_MS = 10_000;

/** Starts to broadcast, for as long as the source goes on or until it is stopped. */
export function startBroadcast(parts: BroadcastParts): Broadcast {
  return broadcastOf(parts, new BroadcastRun(parts, liveOf(parts.hold)));
}

function liveOf({ transfer }: Hold): LiveControl {
  if (transfer.live?.content.role === "source") return transfer.live;
  throw new SluiceError(
    "bad_parameter",
    "this stream is being watched here already, and cannot be broadcast by the same engine until that has ended",
  );
}

function takenOver(name: string, epoch: number): SluiceError {
  return new SluiceError(
    "bad_configuration",
    `${name} is on air elsewhere: another program with its key began later (epoch ${epoch}), and viewers follow that one. Start this one with --standby, and it takes over when the other is gone; where nobody else should have the key, it is in other hands`,
  );
}

/** One life of a source. */
class BroadcastRun {
  readonly #parts: BroadcastParts;
  readonly #live: LiveControl;
  readonly #signer: PieceSigner;
  readonly #news: BroadcastNews;
  readonly #pieces: ReturnType<typeof cutPieces>;
  readonly #stopped = new AbortController();
  readonly #now: () => number;
  readonly ended: Promise<void>;
  #last: SignedPiece | undefined;
  #reservedSeq = 0;
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
    const start = parts.start ?? sourceStart(identity.state.found.state, parts.unixMs(), info.pieceMs);
    const time = new SteadyTime();
    // Goes on from the last piece even where the machine's clock was set back: time never does in an epoch.
    time.now(clock.now(), Math.max(start.leastTimestampMs, parts.unixMs()));
    this.#now = () => time.now(clock.now(), parts.unixMs());
    this.#signer = new PieceSigner({ info, infohash, sign: identity.sign, sha256 }, start);
    this.#news = new BroadcastNews(parts.request, { infohash, sign: identity.sign });
    const { pieceMs, maxPieceBytes, segmentMs } = info;
    const cut = {
      pieceMs,
      maxPieceBytes,
      segmentMs,
      ...(start.firstSegment !== undefined && { firstSegment: start.firstSegment }),
    };
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
        if (this.#yields()) return;
        await this.#send(this.#signer.sign(piece));
        this.#refuseWrongClock();
      }
      if (!signal.aborted) await this.#end();
    } finally {
      this.#isOver = true;
      await this.#letGo();
    }
  }

  /** Whether another is on air: two must not fight, and viewers follow the later epoch. What is not of now may be told by anybody. */
  #yields(): boolean {
    const { rival } = this.#live;
    const own = this.#last?.header.value;
    if (!rival || !own || !isTimely(rival, this.#parts.unixMs(), own.timestampMs)) return false;
    const { yielded, request } = this.#parts;
    if (rival.epoch > own.epoch && !yielded) throw takenOver(request.name, rival.epoch);
    if (rival.epoch < own.epoch || !yielded) return false;
    yielded(rival);
    return true;
  }

  async #send(piece: SignedPiece): Promise<void> {
    await this.#keepState(piece.state, piece.header.value.isSegmentStart);
    const isFirst = this.#last === undefined;
    this.#last = piece;
    this.#live.produce(piece.header, piece.chunks);
    if (isFirst) this.#tell(false);
  }

  /**
   * Where the machine's clock was far ahead and has been set right, our time is as wrong as that was, and nobody takes what we send. A start anew
   * heals it. But who is watched has the right time: then it is the clock that is wrong now.
   */
  #refuseWrongClock(): void {
    const aheadMs = this.#now() - this.#parts.unixMs();
    if (aheadMs <= MAX_AHEAD_MS || this.#live.figures().children > 0) return;
    const minutes = Math.round(aheadMs / 60_000);
    throw new SluiceError(
      "bad_configuration",
      `the clock of this machine was set back by ${minutes} min, and nobody can watch a stream from so far ahead: start it again, for the same link`,
    );
  }

  /**
   * Takes down what is about to be sent. Numbers that are ahead of the clock, after a burst, are reserved on disk first: a power cut
   * must not bring them back. A disk that fails ends no broadcast, since the clock alone keeps others from being used twice.
   */
  async #keepState(piece: SignedPiece["state"], isSegmentStart: boolean): Promise<void> {
    const { identity, file, log } = this.#parts;
    const { pieceMs } = file.info;
    const isAhead = piece.seq > Math.max(this.#reservedSeq, Math.floor(this.#now() / pieceMs));
    if (isAhead) this.#reservedSeq = piece.seq + lostCount(pieceMs);
    try {
      await identity.state.write({ ...piece, reservedSeq: this.#reservedSeq });
      if (isAhead) await identity.state.sync();
      else if (isSegmentStart) this.#sync();
      this.#isStateLost = false;
    } catch (thrown) {
      if (!this.#isStateLost)
        log.error("the state of a broadcast cannot be written", { reason: messageOf(thrown) });
      this.#isStateLost = true;
      this.#reservedSeq = 0;
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
    this.#tell(true);
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
    const { clock } = this.#parts.runtime;
    this.#cancelSync = clock.at(after(clock.now(), STATE_SYNC_MS), () => {
      this.#syncSoon();
      this.#sync();
    });
  }

  /** Segments, too, have their numbers once; the first piece of one is on disk very soon. */
  #sync(): void {
    this.#chore("the state of a broadcast is not safe from a power cut", () =>
      this.#parts.identity.state.sync(),
    );
  }

  #keepPeersSoon(): void {
    const { clock } = this.#parts.runtime;
    this.#cancelPeers = clock.at(after(clock.now(), PEERS_MS), () => {
      this.#keepPeersSoon();
      this.#keepPeers();
      this.#tell(false);
    });
  }

  #tell(isEnd: boolean): void {
    const epoch = this.#last?.header.value.epoch;
    const stat = epoch === undefined ? undefined : this.#news.at(epoch, this.#now(), isEnd);
    if (stat) this.#live.tell(stat);
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
