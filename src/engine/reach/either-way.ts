import { addressText, type PeerAddress } from "../../base/address.ts";
import { after, type Instant } from "../../base/time.ts";
import type { Clock, TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import type { PeerNet } from "./contract.ts";
import type { Utp } from "./utp.ts";

/** TCP has so long a start over uTP (RFC 8305 5): it costs less, and most peers that can be called answer by then. */
const HEAD_START_MS = 250;
/** Who has not answered over uTP by then has lost three calls, or does not speak it. */
const UTP_TIMEOUT_MS = 4_000;
/** As many addresses are remembered that answered over uTP alone as swarms hold candidates; for half an hour, as routers and
 * firewalls change. */
const MAX_REMEMBERED = 3_000;
const REMEMBERED_MS = 1_800_000;

type Way = "tcp" | "utp";

/** Peers called over TCP and uTP, whichever answers first, and let in over both. */
export function eitherWay(tcp: PeerNet, utp: Utp, clock: Clock): PeerNet {
  const remembered = new UtpPeers(clock);
  return {
    connect(address, handlers, { timeoutMs, isPunch }) {
      if (isPunch) return utp.connect(address, handlers, { timeoutMs });
      return new EitherCall({ tcp, utp, clock, remembered }, address, handlers, timeoutMs);
    },
    async listen(address, accept) {
      const listener = await tcp.listen(address, accept);
      utp.listen(accept);
      return listener;
    },
  };
}

/** Addresses that answered over uTP and not over TCP: they are called over uTP first. */
class UtpPeers {
  readonly #clock: Clock;
  readonly #since = new Map<string, Instant>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(address: PeerAddress): boolean {
    const since = this.#since.get(addressText(address));
    return since !== undefined && this.#clock.now() - since < REMEMBERED_MS;
  }

  answered(address: PeerAddress, way: Way): void {
    const key = addressText(address);
    this.#since.delete(key);
    if (way === "tcp") return;
    this.#since.set(key, this.#clock.now());
    const [oldest] = this.#since.keys();
    if (oldest !== undefined && this.#since.size > MAX_REMEMBERED) this.#since.delete(oldest);
  }
}

interface House {
  readonly tcp: Pick<PeerNet, "connect">;
  readonly utp: Utp;
  readonly clock: Clock;
  readonly remembered: UtpPeers;
}

/** One call that goes both ways until one has answered. Whoever made it sees one connection. */
class EitherCall implements TcpSocket {
  readonly remote: PeerAddress;
  readonly #house: House;
  readonly #handlers: TcpHandlers;
  readonly #endsAt: Instant;
  readonly #attempts = new Map<Way, TcpSocket>();
  /** The way that has not been tried yet. */
  #spare: Way | undefined;
  #winner: TcpSocket | undefined;
  #cancelSpare: () => void;
  #isClosed = false;
  #hasReceived = false;
  /** Why the first attempt that failed did: that is the one to be told. */
  #problem: string | undefined;

  constructor(house: House, address: PeerAddress, handlers: TcpHandlers, timeoutMs: number) {
    const { clock, remembered } = house;
    this.#house = house;
    this.remote = address;
    this.#handlers = handlers;
    const now = clock.now();
    this.#endsAt = after(now, timeoutMs);
    const first = remembered.has(address) ? "utp" : "tcp";
    this.#spare = other(first);
    this.#cancelSpare = clock.at(after(now, HEAD_START_MS), () => this.#trySpare());
    this.#try(first);
  }

  get bufferedBytes(): number {
    return this.#winner?.bufferedBytes ?? 0;
  }

  write(bytes: Uint8Array): boolean {
    return this.#winner?.write(bytes) ?? true;
  }

  pause(): void {
    this.#winner?.pause();
  }

  resume(): void {
    this.#winner?.resume();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#settle();
    this.#problem ??= "closed by us";
    for (const socket of this.#attempts.values()) socket.close();
  }

  #try(way: Way): void {
    const { tcp, utp, clock } = this.#house;
    const leftMs = Math.max(1, this.#endsAt - clock.now());
    const handlers = {
      opened: () => this.#opened(way),
      received: (bytes: Uint8Array) => {
        this.#hasReceived = true;
        this.#handlers.received(bytes);
      },
      drained: () => this.#handlers.drained(),
      closed: (reason: string) => this.#closed(way, reason),
    };
    const timeoutMs = way === "utp" ? Math.min(leftMs, UTP_TIMEOUT_MS) : leftMs;
    const net = way === "utp" ? utp : tcp;
    this.#attempts.set(way, net.connect(this.remote, handlers, { timeoutMs }));
  }

  #trySpare(): void {
    const way = this.#spare;
    this.#settle();
    if (way) this.#try(way);
  }

  /** Nothing else will be tried. */
  #settle(): void {
    this.#spare = undefined;
    this.#cancelSpare();
  }

  #opened(way: Way): void {
    const socket = this.#attempts.get(way);
    if (!socket || this.#isClosed) return;
    this.#settle();
    this.#winner = socket;
    this.#house.remembered.answered(this.remote, way);
    const loser = this.#attempts.get(other(way));
    this.#attempts.delete(other(way));
    loser?.close();
    this.#handlers.opened?.();
  }

  #closed(way: Way, reason: string): void {
    // Of one that lost nobody wants to hear.
    if (!this.#attempts.delete(way)) return;
    if (this.#winner) {
      // Some accept over TCP only to hang up: they may mean it over uTP.
      if (!this.#hasReceived && !this.#isClosed) this.#house.remembered.answered(this.remote, other(way));
      this.#handlers.closed(reason);
      return;
    }
    this.#problem ??= reason;
    if (this.#spare) this.#trySpare();
    else if (this.#attempts.size === 0) this.#handlers.closed(this.#problem);
  }
}

function other(way: Way): Way {
  return way === "tcp" ? "utp" : "tcp";
}
