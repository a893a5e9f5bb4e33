import { sleep } from "../../async/sleep.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { Instant } from "../../base/time.ts";
import type { Runtime } from "../../runtime/contract.ts";
import type { ActiveTransfer, Hold, TransferContent } from "../../transfer/contract.ts";
import type { PieceHeader } from "../../wire/live/header.ts";
import type { LiveTransportFile } from "../../wire/live/transport-file.ts";
import { comparePieces } from "../../wire/live/trust.ts";
import { startBroadcast } from "./broadcast.ts";
import { broadcastContent, holdSource } from "./broadcast-content.ts";
import type { Broadcast, BroadcastFigures, BroadcastRequest } from "./broadcast-contract.ts";
import { broadcastOf } from "./broadcast-file.ts";
import { takeoverStart } from "./broadcast-start.ts";
import type { BroadcastIdentity } from "./identity.ts";
import type { StandbyInput } from "./standby-input.ts";
import { SILENCE_MS, START_MS, StandbyWatch } from "./standby-watch.ts";

/** What a standby is made of. It owns all of these, and releases them at its end. */
export interface StandbyOptions {
  readonly runtime: Pick<Runtime, "clock" | "sha1" | "sha256" | "ed25519Verifier">;
  readonly log: Log;
  /** The time of day in UNIX ms. */
  unixMs(): number;
  readonly random: Random;
  readonly request: BroadcastRequest;
  readonly identity: BroadcastIdentity;
  readonly file: LiveTransportFile;
  readonly input: StandbyInput;
  /** Opens the transfer of a stream. Releasing the hold ends the transfer at once and notifies the peers. */
  open(content: TransferContent): Hold;
}

/** How often it checks whether a source is on air: a twentieth of the silence that viewers tolerate. */
const CHECK_MS = 100;
/** Random delay: of several standbys, the first one on air is seen by the others. */
const SPREAD_MS = 1000;
const START_SPREAD_MS = 2000;
/** Delay after two sources went on air in the same epoch and both stopped: the one with the shorter delay continues,
 * in a later epoch. */
const TIE_MS = 500;
const TIE_SPREAD_MS = 3000;
/** A kept-open source without data for longer is not ready. */
const READY_MS = 2000;

/** Starts a standby: it broadcasts the stream whenever no other source does, until its source ends or it is stopped. */
export function startStandby(options: StandbyOptions): Broadcast {
  return broadcastOf(options, new StandbyRun(options));
}

/** The relay transfer while another source is on air, and what it observes. */
interface Watching {
  readonly hold: Hold;
  readonly watch: StandbyWatch;
}

class StandbyRun {
  readonly #options: StandbyOptions;
  readonly #stopped = new AbortController();
  readonly ended: Promise<void>;
  #watching: Watching | undefined;
  #onAir: Broadcast | undefined;
  /** The newest genuine header received: our own pieces must be later. */
  #newest: PieceHeader | undefined;
  #startMs: number;
  #isOver = false;

  constructor(options: StandbyOptions) {
    this.#options = options;
    this.#startMs = this.#startTimeout();
    this.ended = this.#run();
    this.ended.catch(() => {}); // Callers that need the error wait for `ended`.
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#onAir?.stop();
    await this.ended.catch(() => {}); // `ended` reports the error.
  }

  figures(): BroadcastFigures {
    if (this.#onAir) return this.#onAir.figures();
    const { runtime, input } = this.#options;
    return standbyFigures({
      transfer: this.#watching?.hold.transfer,
      watch: this.#watching?.watch,
      isReady: this.#isReady(),
      problem: input.facts?.problem,
      startMs: this.#startMs,
      isOver: this.#isOver,
      now: runtime.clock.now(),
    });
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    const { input, identity, log } = this.#options;
    try {
      while (!signal.aborted) {
        if ((await this.#follow()) === "over" || signal.aborted) return;
        if ((await this.#broadcast()) === "over") return;
      }
    } finally {
      this.#isOver = true;
      this.#stopFollowing();
      input.close();
      await identity.close().catch((thrown) => {
        log.error("cannot close the state file of a broadcast", { reason: messageOf(thrown) });
      });
    }
  }

  /** Follows the stream until no source is on air. */
  async #follow(): Promise<"gone" | "over"> {
    const { runtime, open, random, input, log, request } = this.#options;
    const { clock } = runtime;
    const { signal } = this.#stopped;
    const silenceMs = SILENCE_MS + random() * SPREAD_MS;
    const watch = new StandbyWatch({ silenceMs, startMs: this.#startMs }, clock.now());
    const hold = open(this.#content("relay", this.#options.identity.knownPeers));
    this.#watching = { hold, watch };
    input.discard();
    for (let isLogged = false; ; await sleep(clock, CHECK_MS, signal)) {
      if (signal.aborted || input.hasEnded) return "over";
      if (input.failure) throw input.failure.reason;
      const { newest, heardAt } = hold.transfer.live!.figures();
      const result = watch.update({ newest, heardAt, isReady: this.#isReady() }, clock.now());
      this.#noteHeader(watch.seen);
      if (!isLogged && watch.state !== "start") {
        isLogged = true;
        log.info("standby: another source is on air", { name: request.name, epoch: watch.seen?.epoch });
      }
      if (result === "over") return "over";
      if (result === "take over") return "gone";
    }
  }

  /** Goes on air, until another source does or this one ends. */
  async #broadcast(): Promise<"yielded" | "over"> {
    const { request, identity, file, input, unixMs, random, log, open } = this.#options;
    const { live } = this.#watching!.hold.transfer;
    const knownPeers = [...(live?.reachablePeers() ?? []), ...identity.knownPeers];
    const seen = this.#newest;
    const start = takeoverStart({ seen, state: identity.state.found.state, nowMs: unixMs(), random });
    live?.expectSuccessor();
    this.#stopFollowing();
    const hold = holdSource(open, this.#content("source", knownPeers));
    let rival: PieceHeader | undefined;
    try {
      log.info("on air: no other source is", { name: request.name, epoch: start.epoch });
      this.#onAir = startBroadcast({
        ...this.#options,
        // The standby keeps the identity open.
        identity: { ...identity, knownPeers, close: () => identity.state.sync() },
        file,
        input: input.use(),
        hold,
        start,
        yielded: (header) => {
          rival = header;
        },
      });
    } catch (thrown) {
      hold.release();
      throw thrown;
    }
    try {
      await this.#onAir.ended;
    } finally {
      this.#onAir = undefined;
    }
    if (!rival) return "over";
    this.#noteHeader(rival);
    const isTie = rival.epoch === start.epoch;
    this.#startMs = isTie ? TIE_MS + random() * TIE_SPREAD_MS : this.#startTimeout();
    log.info("off air: another source is on air", {
      name: request.name,
      epoch: rival.epoch,
    });
    return "yielded";
  }

  /** Returns how long to wait for a source at the start. It is random, so that machines started together do not go on
   * air together. */
  #startTimeout(): number {
    return START_MS + this.#options.random() * START_SPREAD_MS;
  }

  #content(role: "source" | "relay", knownPeers: BroadcastIdentity["knownPeers"]): TransferContent {
    return broadcastContent(role, { ...this.#options, knownPeers });
  }

  #stopFollowing(): void {
    this.#watching?.hold.release();
    this.#watching = undefined;
  }

  #noteHeader(header: PieceHeader | undefined): void {
    if (header && (!this.#newest || comparePieces(header, this.#newest) > 0)) this.#newest = header;
  }

  #isReady(): boolean {
    const { input, runtime } = this.#options;
    if (!input.isKeptOpen) return true;
    const lastAt = input.facts?.lastAt;
    return lastAt !== undefined && runtime.clock.now() - lastAt <= READY_MS;
  }
}

/** The facts from which the figures of a standby are derived. */
interface StandbyFacts {
  readonly transfer: ActiveTransfer | undefined;
  readonly watch: StandbyWatch | undefined;
  readonly isReady: boolean;
  /** The last error of its own source. */
  readonly problem: string | undefined;
  /** How long it waits for another source at its start. */
  readonly startMs: number;
  readonly isOver: boolean;
  readonly now: Instant;
}

/** Returns the figures of a standby while it is not on air. */
function standbyFigures(facts: StandbyFacts): BroadcastFigures {
  const { transfer, watch, isOver } = facts;
  const live = transfer?.live?.figures();
  const swarm = transfer?.figures;
  return {
    health: isOver ? "ended" : "standby",
    remark: isOver ? "it is over" : remarkOf(facts),
    peers: live?.peers ?? 0,
    children: live?.children ?? 0,
    seq: watch?.seen?.seq,
    pieceAtMs: watch?.seen?.timestampMs,
    bytesPerSecond: undefined,
    uploadBytesPerSecond: swarm?.bytesPerSecondUp ?? 0,
    uploaded: swarm?.uploaded ?? 0,
  };
}

function remarkOf(facts: StandbyFacts): string {
  const { watch, isReady, problem, startMs, now } = facts;
  if (!watch) return "switching";
  const own = isReady ? "" : `; no data from its own source${problem === undefined ? "" : ` (${problem})`}`;
  const { seen } = watch;
  const silentMs = watch.silentMs(now);
  switch (watch.state) {
    case "start": {
      const leftSeconds = Math.max(0, Math.ceil((startMs - silentMs) / 1000));
      return `no other source found; on air in ${leftSeconds} s${own}`;
    }
    case "follow":
      return `another source is on air: epoch ${seen!.epoch}, piece ${seen!.seq}${own}`;
    case "silent":
      return `no new piece for ${(silentMs / 1000).toFixed(1)} s${own}`;
    case "alone":
      return `no message from any peer for ${(silentMs / 1000).toFixed(0)} s; the network of this machine may be down${own}`;
  }
}
