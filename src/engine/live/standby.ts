import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { Runtime } from "../../runtime/contract.ts";
import type { PieceHeader } from "../../wire/live-header.ts";
import type { LiveTransportFile } from "../../wire/live-transport.ts";
import { comparePieces } from "../../wire/live-trust.ts";
import type { TransferContent } from "../contract.ts";
import type { Hold } from "../holds.ts";
import { startBroadcast } from "./broadcast.ts";
import { broadcastContent, holdSource } from "./broadcast-content.ts";
import type { Broadcast, BroadcastFigures, BroadcastRequest } from "./broadcast-contract.ts";
import { broadcastOf } from "./broadcast-file.ts";
import type { BroadcastIdentity } from "./identity.ts";
import { pauseFor } from "./source-feed.ts";
import { standbyFigures } from "./standby-figures.ts";
import type { StandbyInput } from "./standby-input.ts";
import { takeoverStart } from "./standby-start.ts";
import { SILENCE_MS, START_MS, StandbyWatch } from "./standby-watch.ts";

/** What a standby is made of; all of it is its own, and let go of when it is over. */
export interface StandbyParts {
  readonly runtime: Pick<Runtime, "clock" | "sha256">;
  readonly log: Log;
  /** The time of day in UNIX ms. */
  unixMs(): number;
  readonly random: Random;
  readonly request: BroadcastRequest;
  readonly identity: BroadcastIdentity;
  readonly file: LiveTransportFile;
  readonly input: StandbyInput;
  /** Holds the transfer of a stream. Its release ends it at once, with a word to the peers. */
  open(content: TransferContent): Hold;
}

/** How often it looks whether somebody is on air: a twentieth of what viewers wait. */
const LOOK_MS = 100;
/** Of several that stand by the first one is heard by the others, if they do not begin in the same moment. */
const SPREAD_MS = 1000;
const START_SPREAD_MS = 2000;
/** Two that went on air in one epoch have both stopped: whoever waits less goes on, in a later one. */
const TIE_MS = 500;
const TIE_SPREAD_MS = 3000;
/** A warm source that gave nothing for longer has nothing to show. */
const READY_MS = 2000;

/** Stands by for a stream, and broadcasts it whenever nobody else does; until its source ends, or it is stopped. */
export function startStandby(parts: StandbyParts): Broadcast {
  return broadcastOf(parts, new StandbyRun(parts));
}

/** Another is on air: what is seen of that. */
interface Watching {
  readonly hold: Hold;
  readonly watch: StandbyWatch;
}

class StandbyRun {
  readonly #parts: StandbyParts;
  readonly #stopped = new AbortController();
  readonly ended: Promise<void>;
  #watching: Watching | undefined;
  #onAir: Broadcast | undefined;
  /** The newest genuine header of all that were heard: what we sign is later. */
  #newest: PieceHeader | undefined;
  #startMs: number;
  #isOver = false;

  constructor(parts: StandbyParts) {
    this.#parts = parts;
    this.#startMs = this.#patience();
    this.ended = this.#run();
    this.ended.catch(() => {}); // Told to whoever waits for it.
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#onAir?.stop();
    await this.ended.catch(() => {}); // Why it failed is told by `ended`.
  }

  figures(): BroadcastFigures {
    if (this.#onAir) return this.#onAir.figures();
    const { runtime, input } = this.#parts;
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
    const { input, identity, log } = this.#parts;
    try {
      while (!signal.aborted) {
        if ((await this.#watchOthers()) === "over" || signal.aborted) return;
        if ((await this.#broadcast()) === "over") return;
      }
    } finally {
      this.#isOver = true;
      this.#leave();
      input.close();
      await identity.close().catch((thrown) => {
        log.error("the state of a broadcast may not be on disk", { reason: messageOf(thrown) });
      });
    }
  }

  /** Follows the stream until nobody is on air. */
  async #watchOthers(): Promise<"gone" | "over"> {
    const { runtime, open, random, input, log, request } = this.#parts;
    const { clock } = runtime;
    const { signal } = this.#stopped;
    const silenceMs = SILENCE_MS + random() * SPREAD_MS;
    const watch = new StandbyWatch({ silenceMs, startMs: this.#startMs }, clock.now());
    const hold = open(this.#content("relay", this.#parts.identity.knownPeers));
    this.#watching = { hold, watch };
    input.idle();
    for (let isTold = false; ; await pauseFor(clock, LOOK_MS, signal)) {
      if (signal.aborted || input.isOver) return "over";
      if (input.failure) throw input.failure.reason;
      const { newest, heardAt } = hold.transfer.live!.figures();
      const verdict = watch.look({ newest, heardAt, isReady: this.#isReady() }, clock.now());
      this.#hear(watch.seen);
      if (!isTold && watch.state !== "start") {
        isTold = true;
        log.info("stands by: on air elsewhere", { name: request.name, epoch: watch.seen?.epoch });
      }
      if (verdict === "over") return "over";
      if (verdict === "take over") return "gone";
    }
  }

  /** Goes on air, until another does or the source ends. */
  async #broadcast(): Promise<"yielded" | "over"> {
    const { request, identity, file, input, unixMs, random, log, open } = this.#parts;
    const { live } = this.#watching!.hold.transfer;
    const knownPeers = [...(live?.reachablePeers() ?? []), ...identity.knownPeers];
    const seen = this.#newest;
    const start = takeoverStart({ seen, state: identity.state.found.state, nowMs: unixMs(), random });
    live?.expectSuccessor();
    this.#leave();
    const hold = holdSource(open, this.#content("source", knownPeers));
    let rival: PieceHeader | undefined;
    try {
      log.info("on air: nobody else is", { name: request.name, epoch: start.epoch });
      this.#onAir = startBroadcast({
        ...this.#parts,
        // It is kept for the next time.
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
    this.#hear(rival);
    const isTie = rival.epoch === start.epoch;
    this.#startMs = isTie ? TIE_MS + random() * TIE_SPREAD_MS : this.#patience();
    log.info("off air: another is on air, with a later epoch or the same", {
      name: request.name,
      epoch: rival.epoch,
    });
    return "yielded";
  }

  /** How long it waits for somebody to be on air: machines that were started together do not begin together. */
  #patience(): number {
    return START_MS + this.#parts.random() * START_SPREAD_MS;
  }

  #content(role: "source" | "relay", knownPeers: BroadcastIdentity["knownPeers"]): TransferContent {
    return broadcastContent(role, { ...this.#parts, knownPeers });
  }

  #leave(): void {
    this.#watching?.hold.release();
    this.#watching = undefined;
  }

  #hear(header: PieceHeader | undefined): void {
    if (header && (!this.#newest || comparePieces(header, this.#newest) > 0)) this.#newest = header;
  }

  #isReady(): boolean {
    const { input, runtime } = this.#parts;
    if (!input.isWarm) return true;
    const lastAt = input.facts?.lastAt;
    return lastAt !== undefined && runtime.clock.now() - lastAt <= READY_MS;
  }
}
