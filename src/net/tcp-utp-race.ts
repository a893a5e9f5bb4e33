import { addressText, type PeerAddress } from "../base/address.ts";
import { after, type Instant } from "../base/time.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import type { Clock, TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import type { PeerNet } from "./contract.ts";
import type { Utp } from "./utp.ts";

/** Head start of TCP over uTP (RFC 8305 section 5): TCP uses less CPU, and most reachable peers respond within this time. */
const HEAD_START_MS = 250;
/** After this time three SYN packets were lost, or the peer does not support uTP. */
const UTP_TIMEOUT_MS = 4_000;
/** Remembered addresses that respond over uTP only: the number of candidates of a swarm. They expire, because routers and
 * firewalls change. */
const MAX_REMEMBERED = 3_000;
const REMEMBERED_MS = 1_800_000;

type Transport = "tcp" | "utp";

/** Connects over TCP and uTP, using the first that succeeds, and accepts connections over both. */
export function tcpAndUtp(tcp: PeerNet, utp: Utp, clock: Clock): PeerNet {
  const remembered = new UtpPeers(clock);
  return {
    connect(address, handlers, { timeoutMs, isPunch }) {
      if (isPunch) return utp.connect(address, handlers, { timeoutMs });
      return new RacedConnection({ tcp, utp, clock, remembered }, address, handlers, timeoutMs);
    },
    async listen(address, accept) {
      const listener = await tcp.listen(address, accept);
      utp.listen(accept);
      return listener;
    },
  };
}

/** Addresses that responded over uTP and not over TCP. The next connection tries uTP first. */
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

  responded(address: PeerAddress, transport: Transport): void {
    const key = addressText(address);
    this.#since.delete(key);
    if (transport === "tcp") return;
    this.#since.set(key, this.#clock.now());
    trimOldest(this.#since, MAX_REMEMBERED);
  }
}

interface RaceDependencies {
  readonly tcp: Pick<PeerNet, "connect">;
  readonly utp: Utp;
  readonly clock: Clock;
  readonly remembered: UtpPeers;
}

/** A connection attempt over both transports. The caller sees one connection. */
class RacedConnection implements TcpSocket {
  readonly remote: PeerAddress;
  readonly #dependencies: RaceDependencies;
  readonly #handlers: TcpHandlers;
  readonly #endsAt: Instant;
  readonly #attempts = new Map<Transport, TcpSocket>();
  /** The transport that was not tried yet. */
  #spare: Transport | undefined;
  #winner: TcpSocket | undefined;
  #cancelSpare: () => void;
  #isClosed = false;
  #hasReceived = false;
  /** Error of the first failed attempt, reported if all fail. */
  #problem: string | undefined;

  constructor(
    dependencies: RaceDependencies,
    address: PeerAddress,
    handlers: TcpHandlers,
    timeoutMs: number,
  ) {
    const { clock, remembered } = dependencies;
    this.#dependencies = dependencies;
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

  #try(transport: Transport): void {
    const { tcp, utp, clock } = this.#dependencies;
    const leftMs = Math.max(1, this.#endsAt - clock.now());
    const handlers = {
      opened: () => this.#opened(transport),
      received: (bytes: Uint8Array) => {
        this.#hasReceived = true;
        this.#handlers.received(bytes);
      },
      drained: () => this.#handlers.drained(),
      closed: (reason: string) => this.#closed(transport, reason),
    };
    const timeoutMs = transport === "utp" ? Math.min(leftMs, UTP_TIMEOUT_MS) : leftMs;
    const net = transport === "utp" ? utp : tcp;
    this.#attempts.set(transport, net.connect(this.remote, handlers, { timeoutMs }));
  }

  #trySpare(): void {
    const transport = this.#spare;
    this.#settle();
    if (transport) this.#try(transport);
  }

  /** Cancels the attempt over the other transport. */
  #settle(): void {
    this.#spare = undefined;
    this.#cancelSpare();
  }

  #opened(transport: Transport): void {
    const socket = this.#attempts.get(transport);
    if (!socket || this.#isClosed) return;
    this.#settle();
    this.#winner = socket;
    this.#dependencies.remembered.responded(this.remote, transport);
    const loser = this.#attempts.get(other(transport));
    this.#attempts.delete(other(transport));
    loser?.close();
    this.#handlers.opened?.();
  }

  #closed(transport: Transport, reason: string): void {
    // The losing attempt was already removed.
    if (!this.#attempts.delete(transport)) return;
    if (this.#winner) {
      // Some peers accept over TCP and close immediately, but work over uTP.
      if (!this.#hasReceived && !this.#isClosed)
        this.#dependencies.remembered.responded(this.remote, other(transport));
      this.#handlers.closed(reason);
      return;
    }
    this.#problem ??= reason;
    if (this.#spare) this.#trySpare();
    else if (this.#attempts.size === 0) this.#handlers.closed(this.#problem);
  }
}

function other(transport: Transport): Transport {
  return transport === "tcp" ? "utp" : "tcp";
}
