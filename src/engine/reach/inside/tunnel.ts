import type { PeerAddress } from "../../../base/address.ts";
import { messageOf } from "../../../base/errors.ts";
import { after, type Instant } from "../../../base/time.ts";
import type { Clock, Net, TcpHandlers, TcpSocket } from "../../../runtime/contract.ts";
import type { SocksPlace } from "../../../wire/socks5.ts";
import type { ProxyServer } from "./proxy.ts";
import type { ProxyHealth } from "./proxy-health.ts";
import type { ProxyPlace } from "./proxy-place.ts";
import { ProxyRefusal, type ProxyTalk, type ProxyWish, talkTo } from "./proxy-talk.ts";

/** What a way through the proxy is made of. */
export interface DoorParts {
  readonly proxy: ProxyServer;
  readonly net: Pick<Net, "connect">;
  readonly clock: Clock;
  readonly health: ProxyHealth;
  readonly place: ProxyPlace;
}

/** What becomes of a wish, besides what a connection tells. */
export interface TunnelHandlers extends Omit<TcpHandlers, "opened"> {
  /** The proxy did what was wished; `bound` is what it says that it opened, at the proxy's address `proxy`. */
  opened?(bound: SocksPlace | undefined, proxy: PeerAddress): void;
  /** The proxy said no, and why; `closed` follows. */
  refused?(refusal: ProxyRefusal): void;
}

/** What may wait for the proxy's yes before a writer is told to wait too. */
const WAITING_MARK_BYTES = 64 * 1024;

/**
 * A connection through the proxy, which is one like any other for whoever has it. `remote` is whom it leads to. The proxy's
 * address is the only one that is dialled.
 */
export function openTunnel(
  parts: DoorParts,
  wish: ProxyWish,
  remote: PeerAddress,
  handlers: TunnelHandlers,
  timeoutMs: number,
): TcpSocket {
  const tunnel = new Tunnel(parts, remote, handlers, timeoutMs);
  void tunnel.start(wish);
  return tunnel;
}

class Tunnel implements TcpSocket {
  readonly remote: PeerAddress;
  readonly #parts: DoorParts;
  readonly #handlers: TunnelHandlers;
  readonly #due: Instant;
  readonly #cancelTimer: () => void;
  #inner: TcpSocket | undefined;
  #talk: ProxyTalk | undefined;
  #phase: "asking" | "open" | "over" = "asking";
  /** The proxy is there, and has said something. */
  #stands = false;
  #hasHeard = false;
  #isPaused = false;
  /** Why it ends, where we know better than the socket. */
  #why: string | undefined;
  #unsent: Uint8Array[] = [];
  #unsentBytes = 0;

  constructor(parts: DoorParts, remote: PeerAddress, handlers: TunnelHandlers, timeoutMs: number) {
    this.#parts = parts;
    this.remote = remote;
    this.#handlers = handlers;
    this.#due = after(parts.clock.now(), timeoutMs);
    this.#cancelTimer = parts.clock.at(this.#due, () => this.#end(`no connection in ${timeoutMs} ms`));
  }

  async start(wish: ProxyWish): Promise<void> {
    const { proxy, place, clock, health } = this.#parts;
    // Whoever asked has the socket before it hears of anything.
    await undefined;
    if (this.#why !== undefined) return;
    const problem = health.problem(clock.now());
    if (problem !== undefined) return this.#end(problem);
    try {
      this.#talk = talkTo(proxy, wish);
      const host = await place.address();
      if (this.#why === undefined) this.#dial({ host, port: proxy.port });
    } catch (thrown) {
      if (thrown instanceof ProxyRefusal) this.#handlers.refused?.(thrown);
      else health.failed(messageOf(thrown), clock.now());
      this.#end(messageOf(thrown));
    }
  }

  get bufferedBytes(): number {
    return this.#unsentBytes + (this.#phase === "open" ? this.#inner!.bufferedBytes : 0);
  }

  write(bytes: Uint8Array): boolean {
    if (this.#phase === "over") return true;
    if (this.#phase === "open") return this.#inner!.write(bytes);
    this.#unsent.push(bytes);
    this.#unsentBytes += bytes.length;
    return this.#unsentBytes < WAITING_MARK_BYTES;
  }

  pause(): void {
    this.#isPaused = true;
    if (this.#phase === "open") this.#inner!.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#phase === "open") this.#inner!.resume();
  }

  close(): void {
    this.#end("closed by us");
  }

  #dial(address: PeerAddress): void {
    const { net, clock, proxy } = this.#parts;
    const handlers: TcpHandlers = {
      opened: () => {
        this.#stands = true;
        if (this.#phase === "asking") this.#inner!.write(this.#talk!.first);
      },
      received: (bytes) => {
        if (this.#phase === "open") this.#handlers.received(bytes);
        else if (this.#phase === "asking") this.#heard(bytes, address);
      },
      drained: () => {
        if (this.#phase === "open") this.#handlers.drained();
      },
      closed: (reason) => {
        const why = this.#phase === "asking" ? `${proxy.text}: ${this.#why ?? reason}` : reason;
        if (this.#phase === "asking") this.#blame(why);
        this.#over(this.#why ?? why);
      },
    };
    this.#inner = net.connect(address, handlers, { timeoutMs: Math.max(1, this.#due - clock.now()) });
  }

  /** It ended before the proxy had answered. Who gave up says nothing about the proxy, unless it was time that ran out
   * without a word: of a SOCKS5 proxy, which has a first one before it asks the other side. */
  #blame(why: string): void {
    const { clock, health, place, proxy } = this.#parts;
    const isLate = clock.now() >= this.#due && (proxy.kind === "http" ? !this.#stands : !this.#hasHeard);
    if (this.#why !== undefined && !isLate) return;
    place.failed();
    health.failed(why, clock.now());
  }

  /** What the proxy says before the connection is ours. */
  #heard(bytes: Uint8Array, address: PeerAddress): void {
    const { health, clock, proxy } = this.#parts;
    this.#hasHeard = true;
    try {
      const step = this.#talk!.received(bytes);
      if (step.kind === "say") this.#inner!.write(step.bytes);
      if (step.kind !== "done") return;
      health.worked();
      this.#open(step.bound, address, step.rest);
    } catch (thrown) {
      const reason = `${proxy.text}: ${messageOf(thrown)}`;
      const refusal = thrown instanceof ProxyRefusal ? thrown : undefined;
      if (refusal === undefined || refusal.kind === "login") health.failed(reason, clock.now());
      else health.worked();
      if (refusal) this.#handlers.refused?.(refusal);
      this.#end(reason);
    }
  }

  #open(bound: SocksPlace | undefined, proxy: PeerAddress, rest: Uint8Array): void {
    this.#phase = "open";
    this.#cancelTimer();
    const inner = this.#inner!;
    for (const bytes of this.#unsent.splice(0)) inner.write(bytes);
    this.#unsentBytes = 0;
    if (this.#isPaused) inner.pause();
    this.#handlers.opened?.(bound, proxy);
    if (rest.length > 0 && !this.#isOver()) this.#handlers.received(rest);
  }

  #isOver(): boolean {
    return this.#phase === "over";
  }

  /** Ends it from here; `closed` comes later, as with any socket. */
  #end(why: string): void {
    if (this.#isOver() || this.#why !== undefined) return;
    this.#why = why;
    this.#cancelTimer();
    if (this.#inner) this.#inner.close();
    else queueMicrotask(() => this.#over(why));
  }

  #over(reason: string): void {
    if (this.#isOver()) return;
    this.#phase = "over";
    this.#cancelTimer();
    this.#unsent = [];
    this.#unsentBytes = 0;
    this.#handlers.closed(reason);
  }
}
