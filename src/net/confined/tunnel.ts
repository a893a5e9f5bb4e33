import type { PeerAddress } from "../../base/address.ts";
import { messageOf } from "../../base/errors.ts";
import { after, type Instant } from "../../base/time.ts";
import type { Clock, Net, TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import type { SocksAddress } from "../../wire/socks5.ts";
import type { ProxyServer } from "./proxy.ts";
import type { ProxyAddress } from "./proxy-address.ts";
import {
  type ProxyHandshake,
  ProxyRefusal,
  type ProxyRequest,
  startProxyHandshake,
} from "./proxy-handshake.ts";
import type { ProxyHealth } from "./proxy-health.ts";

export interface ProxyDependencies {
  readonly proxy: ProxyServer;
  readonly net: Pick<Net, "connect">;
  readonly clock: Clock;
  readonly health: ProxyHealth;
  readonly address: ProxyAddress;
}

/** Events of a tunnel. */
export interface TunnelHandlers extends Omit<TcpHandlers, "opened"> {
  /** The proxy accepted the request. `bound` is the address it reports; `proxy` is the address of the proxy itself. */
  opened?(bound: SocksAddress | undefined, proxy: PeerAddress): void;
  /** The proxy refused the request; `closed` follows. */
  refused?(refusal: ProxyRefusal): void;
}

/** Backpressure: `write` returns false at this many bytes while the handshake runs. */
const HIGH_WATER_BYTES = 64 * 1024;

/** Opens a connection through the proxy that behaves like any other socket. `remote` is its reported peer address; only the
 * proxy's address is connected to. */
export function openTunnel(
  dependencies: ProxyDependencies,
  request: ProxyRequest,
  remote: PeerAddress,
  handlers: TunnelHandlers,
  timeoutMs: number,
): TcpSocket {
  const tunnel = new Tunnel(dependencies, remote, handlers, timeoutMs);
  void tunnel.start(request);
  return tunnel;
}

class Tunnel implements TcpSocket {
  readonly remote: PeerAddress;
  readonly #dependencies: ProxyDependencies;
  readonly #handlers: TunnelHandlers;
  readonly #due: Instant;
  readonly #cancelTimer: () => void;
  #inner: TcpSocket | undefined;
  #handshake: ProxyHandshake | undefined;
  #phase: "handshake" | "open" | "closed" = "handshake";
  /** True once the connection to the proxy is open. */
  #isConnected = false;
  /** True once the proxy has sent a byte. */
  #hasReceived = false;
  #isPaused = false;
  /** Reason of the close if this side caused it. */
  #closeReason: string | undefined;
  #unsent: Uint8Array[] = [];
  #unsentBytes = 0;

  constructor(
    dependencies: ProxyDependencies,
    remote: PeerAddress,
    handlers: TunnelHandlers,
    timeoutMs: number,
  ) {
    this.#dependencies = dependencies;
    this.remote = remote;
    this.#handlers = handlers;
    this.#due = after(dependencies.clock.now(), timeoutMs);
    this.#cancelTimer = dependencies.clock.at(this.#due, () => this.#end(`no connection in ${timeoutMs} ms`));
  }

  async start(request: ProxyRequest): Promise<void> {
    const { proxy, address, clock, health } = this.#dependencies;
    // The caller gets the socket before the first event.
    await undefined;
    if (this.#closeReason !== undefined) return;
    const problem = health.problem(clock.now());
    if (problem !== undefined) return this.#end(problem);
    try {
      this.#handshake = startProxyHandshake(proxy, request);
      const host = await address.current();
      if (this.#closeReason === undefined) this.#dial({ host, port: proxy.port });
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
    if (this.#phase === "closed") return true;
    if (this.#phase === "open") return this.#inner!.write(bytes);
    this.#unsent.push(bytes);
    this.#unsentBytes += bytes.length;
    return this.#unsentBytes < HIGH_WATER_BYTES;
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
    const { net, clock, proxy } = this.#dependencies;
    const handlers: TcpHandlers = {
      opened: () => {
        this.#isConnected = true;
        if (this.#phase === "handshake") this.#inner!.write(this.#handshake!.first);
      },
      received: (bytes) => {
        if (this.#phase === "open") this.#handlers.received(bytes);
        else if (this.#phase === "handshake") this.#handshakeReceived(bytes, address);
      },
      drained: () => {
        if (this.#phase === "open") this.#handlers.drained();
      },
      closed: (reason) => {
        const cause = this.#phase === "handshake" ? `${proxy.text}: ${this.#closeReason ?? reason}` : reason;
        if (this.#phase === "handshake") this.#reportFailure(cause);
        this.#closed(this.#closeReason ?? cause);
      },
    };
    this.#inner = net.connect(address, handlers, { timeoutMs: Math.max(1, this.#due - clock.now()) });
  }

  /** Handles a close before the handshake was complete. A close from this side is no failure of the proxy, unless the timeout
   * expired without a response: a SOCKS5 proxy responds before it connects to the destination. */
  #reportFailure(cause: string): void {
    const { clock, health, address, proxy } = this.#dependencies;
    const isLate =
      clock.now() >= this.#due && (proxy.kind === "http" ? !this.#isConnected : !this.#hasReceived);
    if (this.#closeReason !== undefined && !isLate) return;
    address.failed();
    health.failed(cause, clock.now());
  }

  /** Processes bytes of the handshake. */
  #handshakeReceived(bytes: Uint8Array, address: PeerAddress): void {
    const { health, clock, proxy } = this.#dependencies;
    this.#hasReceived = true;
    try {
      const step = this.#handshake!.received(bytes);
      if (step.kind === "send") this.#inner!.write(step.bytes);
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

  #open(bound: SocksAddress | undefined, proxy: PeerAddress, rest: Uint8Array): void {
    this.#phase = "open";
    this.#cancelTimer();
    const inner = this.#inner!;
    for (const bytes of this.#unsent.splice(0)) inner.write(bytes);
    this.#unsentBytes = 0;
    if (this.#isPaused) inner.pause();
    this.#handlers.opened?.(bound, proxy);
    if (rest.length > 0 && !this.#isClosed()) this.#handlers.received(rest);
  }

  #isClosed(): boolean {
    return this.#phase === "closed";
  }

  /** Closes the tunnel from this side; `closed` is reported later, as with any socket. */
  #end(reason: string): void {
    if (this.#isClosed() || this.#closeReason !== undefined) return;
    this.#closeReason = reason;
    this.#cancelTimer();
    if (this.#inner) this.#inner.close();
    else queueMicrotask(() => this.#closed(reason));
  }

  #closed(reason: string): void {
    if (this.#isClosed()) return;
    this.#phase = "closed";
    this.#cancelTimer();
    this.#unsent = [];
    this.#unsentBytes = 0;
    this.#handlers.closed(reason);
  }
}
