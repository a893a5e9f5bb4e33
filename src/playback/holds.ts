import { messageOf, SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import type { LiveFigures } from "../protocol/live/contract.ts";
import type { SwarmFigures } from "../protocol/swarm/contract.ts";
import type { Clock } from "../runtime/contract.ts";
import type { ActiveTransfer, Hold, TransferContent, Transfers } from "../transfer/contract.ts";
import type { TransferActivity } from "./contract.ts";

/** CHOICE(foreign-share): limit of the transfers that pages of other sites open. */
const FOREIGN_TRANSFERS_LIMIT = 4;

/** CHOICE(idle-transfer): a transfer whose last player left this long ago stops receiving live data and yields to other
 * transfers. A player that reconnects, or a page that is reloaded, returns earlier. */
const GRACE_MS = 3_000;

interface Held {
  readonly transfer: ActiveTransfer;
  /** True if only pages of other sites have opened it. */
  isForeign: boolean;
  /** True for a file of this machine, which is only shared: it needs neither memory nor many connections, so it is not counted. */
  readonly isOwnFile: boolean;
  holders: number;
  /** The holders that need no data for now. */
  resting: number;
  /** When the last holder released it; the longest idle transfer is stopped first. */
  idleSince: number;
  cancelIdle: () => void;
}

/** Dependencies of {@link Holds}. */
interface HoldsDependencies {
  readonly clock: Clock;
  readonly transfers: Pick<Transfers, "open">;
  /** With more swarms at once, each would have too few connections and too little memory for playback. */
  readonly maxTransfers: number;
  /** How long a transfer without holders continues, in milliseconds. */
  readonly idleMs: number;
  /** Ends the sessions of the transfer that is used least, so that it has no holders; does nothing if all are in use. */
  readonly endUnused: (transfers: readonly HeldTransfer[]) => void;
  /** Called when a transfer has been opened. */
  readonly opened?: () => void;
  readonly log: Log;
}

/** A transfer and the number of its holders. */
export type HeldTransfer = Pick<Held, "transfer" | "holders">;

/** Counts the users of each transfer. A transfer without users continues for a while, to seed and for players that return. */
export class Holds {
  readonly #dependencies: HoldsDependencies;
  readonly #held = new Map<Infohash, Held>();
  #isClosed = false;

  constructor(dependencies: HoldsDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Returns a hold on the transfer of this content; opens it if necessary. `isForeign`: for a page of another site. Throws
   * `too_many`.
   */
  open(content: TransferContent, isForeign = false): Hold {
    if (this.#isClosed) throw new SluiceError("session_stopped", "the engine is stopping");
    const isOwnFile = content.ownFile !== undefined;
    if (!this.#held.has(content.infohash) && !isOwnFile) this.#makeRoom(isForeign);
    // An open transfer gets the trackers and peers of this content.
    const transfer = this.#dependencies.transfers.open(content);
    const known = this.#held.get(content.infohash);
    const counts = { holders: 0, resting: 0, idleSince: 0, cancelIdle: () => {} };
    const held = known ?? { transfer, isForeign, isOwnFile, ...counts };
    if (!isForeign) held.isForeign = false;
    this.#held.set(content.infohash, held);
    if (known === undefined) this.#dependencies.opened?.();
    return this.#hold(held);
  }

  /** Returns the hold of the content's owner, such as a broadcast: when it is released, the transfer stops for all players. */
  openOwned(content: TransferContent): Hold {
    const hold = this.open(content);
    const held = this.#held.get(content.infohash)!;
    return {
      ...hold,
      release: () => {
        hold.release();
        if (this.#isCurrent(held)) this.#stop(held);
      },
    };
  }

  /** Returns what each transfer does. */
  figures(): EngineFigures["transfers"] {
    return [...this.#held.values()].map(({ transfer, holders }) => ({
      infohash: transfer.infohash,
      name: transfer.name,
      holders,
      figures: transfer.figures,
      live: transfer.live?.figures(),
    }));
  }

  /** What each transfer does, for the operator. */
  activity(): Omit<TransferActivity, "limits">[] {
    return [...this.#held.values()].map(({ transfer, holders }) => {
      const { infohash, name, files, live, figures, transportType = "bt" } = transfer;
      const size = live ? 0 : files.reduce((sum, file) => sum + file.size, 0);
      const share = figures.pieceCount > 0 ? figures.piecesHeld / figures.pieceCount : 0;
      const isOwn = live?.content.role === "source";
      const kind = transportType !== "bt" ? "web" : isOwn ? "own" : live ? "live" : "files";
      const heldBytes = live ? (live.diskBytes ?? 0) : Math.round(share * size);
      return { infohash, name, holders, kind, size, heldBytes, figures };
    });
  }

  /** Stops a transfer for all its users. Throws `unknown_session` if it is not open, `bad_parameter` for a broadcast of this engine. The
   * promise resolves when it has stopped. */
  stop(infohash: Infohash): Promise<void> {
    const held = this.#held.get(infohash);
    if (held === undefined)
      throw new SluiceError("unknown_session", "no transfer with this infohash is open");
    if (held.transfer.live?.content.role === "source")
      throw new SluiceError("bad_parameter", "infohash: this is a broadcast; stop it with broadcast_stop");
    return this.#stop(held);
  }

  /** Cancels all timers. The owner of the transfers closes them. */
  close(): void {
    this.#isClosed = true;
    for (const held of this.#held.values()) held.cancelIdle();
    this.#held.clear();
  }

  /** Returns the hold of a visit: when it is released, the transfer stops receiving at once. */
  openForVisit(content: TransferContent): Hold {
    const hold = this.open(content);
    return {
      ...hold,
      release() {
        hold.rest(true);
        hold.release();
      },
    };
  }

  #hold(held: Held): Hold {
    held.cancelIdle();
    if (held.holders === held.resting) held.transfer.setIdle?.(false);
    held.holders++;
    let released = false;
    let rests = false;
    const rest = (isResting: boolean) => {
      if (released || rests === isResting) return;
      rests = isResting;
      held.resting += isResting ? 1 : -1;
      const others = held.holders - 1 - (held.resting - (isResting ? 1 : 0));
      if (others === 0 && this.#isCurrent(held)) held.transfer.setIdle?.(isResting);
    };
    return {
      transfer: held.transfer,
      rest,
      release: () => {
        if (released) return;
        released = true;
        held.holders--;
        if (rests) held.resting--;
        else if (held.holders > 0 && held.holders === held.resting && this.#isCurrent(held))
          held.transfer.setIdle?.(true);
        if (held.holders === 0 && this.#isCurrent(held)) this.#idle(held);
      },
    };
  }

  /** False if the transfer was stopped while it had holders: the infohash may belong to a newer transfer by now. */
  #isCurrent(held: Held): boolean {
    return this.#held.get(held.transfer.infohash) === held;
  }

  #idle(held: Held): void {
    const { clock, idleMs } = this.#dependencies;
    held.idleSince = clock.now();
    const stop = (afterMs: number) => clock.at(after(clock.now(), afterMs), () => this.#stop(held));
    if (idleMs <= GRACE_MS) {
      held.cancelIdle = stop(idleMs);
      return;
    }
    held.cancelIdle = clock.at(after(clock.now(), GRACE_MS), () => {
      held.transfer.setIdle?.(true);
      held.cancelIdle = stop(idleMs - GRACE_MS);
    });
  }

  #makeRoom(isForeign: boolean): void {
    const all = [...this.#held.values()].filter((held) => !held.isOwnFile);
    const foreign = all.filter((held) => held.isForeign);
    const { maxTransfers } = this.#dependencies;
    if (isForeign && foreign.length >= FOREIGN_TRANSFERS_LIMIT)
      this.#stopLeastUseful(foreign, `transfer limit for pages of other sites (${FOREIGN_TRANSFERS_LIMIT})`);
    else if (all.length >= maxTransfers)
      this.#stopLeastUseful(all, `transfer limit (${maxTransfers}; see --max-transfers)`);
  }

  /** Stops the longest idle transfer, else one whose players have gone. */
  #stopLeastUseful(candidates: readonly Held[], limit: string): void {
    const isIdle = ({ holders }: Held) => holders === 0;
    if (!candidates.some(isIdle)) this.#dependencies.endUnused(candidates);
    const oldest = candidates.filter(isIdle).sort((a, b) => a.idleSince - b.idleSince)[0];
    if (!oldest) throw new SluiceError("too_many", `${limit} reached; stop a session first`);
    this.#stop(oldest);
  }

  #stop(held: Held): Promise<void> {
    held.cancelIdle();
    this.#held.delete(held.transfer.infohash);
    return held.transfer.stop().catch((thrown) => {
      this.#dependencies.log.warn("cannot stop a transfer cleanly", {
        infohash: held.transfer.infohash,
        reason: messageOf(thrown),
      });
    });
  }
}

/** What the engine does: its sessions and transfers. */
export interface EngineFigures {
  readonly sessions: number;
  /** Sessions of players: without those of visits, recordings and catch-up. */
  readonly players: number;
  readonly transfers: readonly {
    readonly infohash: Infohash;
    readonly name: string;
    readonly holders: number;
    readonly figures: SwarmFigures;
    /** Undefined unless it is a live stream. */
    readonly live: LiveFigures | undefined;
  }[];
}
