import { messageOf, SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { ActiveTransfer, TransferContent, Transfers } from "./contract.ts";
import type { EngineFigures } from "./engine.ts";

/** More swarms at once would leave each with too few connections and too little memory to play from. */
const TRANSFERS_LIMIT = 24;

/** One use of a transfer. */
export interface Hold {
  readonly transfer: ActiveTransfer;
  /** Gives it back; further calls do nothing. */
  release(): void;
}

interface Held {
  readonly transfer: ActiveTransfer;
  holders: number;
  /** When the last holder left, in the order of leaving; for choosing which idle transfer goes first. */
  idleSince: number;
  cancelIdle: () => void;
}

/** Who uses which transfer. One that nobody holds goes on for a while, to seed and for those who come back. */
export class Holds {
  readonly #parts: { clock: Clock; transfers: Transfers; idleMs: number; log: Log };
  readonly #held = new Map<Infohash, Held>();
  #closed = false;

  constructor(parts: { clock: Clock; transfers: Transfers; idleMs: number; log: Log }) {
    this.#parts = parts;
  }

  /** Holds the transfer of this content, opened where there is none; rejects with `too_many`. */
  open(content: TransferContent): Hold {
    if (this.#closed) throw new SluiceError("session_stopped", "the engine is stopping");
    if (!this.#held.has(content.infohash)) this.#makeRoom();
    // Content that is open already learns of further trackers and peers this way.
    const transfer = this.#parts.transfers.open(content);
    const known = this.#held.get(content.infohash);
    const held = known ?? { transfer, holders: 0, idleSince: 0, cancelIdle: () => {} };
    this.#held.set(content.infohash, held);
    return this.#hold(held);
  }

  /** The same for whoever makes the content: it is over for all who play it as soon as that one gives it back. */
  openOwned(content: TransferContent): Hold {
    const hold = this.open(content);
    const held = this.#held.get(content.infohash)!;
    return {
      transfer: hold.transfer,
      release: () => {
        hold.release();
        if (this.#isKept(held)) this.#stop(held);
      },
    };
  }

  figures(): EngineFigures["transfers"] {
    return [...this.#held.values()].map(({ transfer, holders }) => ({
      infohash: transfer.infohash,
      name: transfer.name,
      holders,
      figures: transfer.figures,
    }));
  }

  /** Cancels every timer. The transfers themselves are closed by their owner. */
  close(): void {
    this.#closed = true;
    for (const held of this.#held.values()) held.cancelIdle();
    this.#held.clear();
  }

  #hold(held: Held): Hold {
    held.cancelIdle();
    held.holders++;
    let released = false;
    return {
      transfer: held.transfer,
      release: () => {
        if (released) return;
        released = true;
        held.holders--;
        if (held.holders === 0 && this.#isKept(held)) this.#idle(held);
      },
    };
  }

  /** Not where it was ended under its players: what is there now under its name is another one's. */
  #isKept(held: Held): boolean {
    return this.#held.get(held.transfer.infohash) === held;
  }

  #idle(held: Held): void {
    const { clock, idleMs } = this.#parts;
    held.idleSince = clock.now();
    held.cancelIdle = clock.at(after(clock.now(), idleMs), () => this.#stop(held));
  }

  #makeRoom(): void {
    if (this.#held.size < TRANSFERS_LIMIT) return;
    const idle = [...this.#held.values()].filter((held) => held.holders === 0);
    const oldest = idle.sort((a, b) => a.idleSince - b.idleSince)[0];
    if (!oldest)
      throw new SluiceError("too_many", `${TRANSFERS_LIMIT} contents are being played; stop one first`);
    this.#stop(oldest);
  }

  #stop(held: Held): void {
    held.cancelIdle();
    this.#held.delete(held.transfer.infohash);
    held.transfer.stop().catch((thrown) => {
      this.#parts.log.warn("a transfer did not stop cleanly", {
        infohash: held.transfer.infohash,
        reason: messageOf(thrown),
      });
    });
  }
}
