import { addressText, type PeerAddress } from "../../src/base/address.ts";
import { concatBytes } from "../../src/base/bytes.ts";
import type { Random } from "../../src/base/random.ts";
import type { EventQueue } from "./event-queue.ts";

/** How a host is connected to the network. Rates in bytes a second. */
export interface HostLine {
  readonly up: number;
  readonly down: number;
  /** Delay from this host to the middle of the network. */
  readonly latencyMs: number;
  readonly jitterMs?: number;
  /** Share of lost packets; TCP turns it into delay and a lower rate of each connection. */
  readonly loss?: number;
  /** Additional limit of each connection's sending rate. */
  readonly connectionRate?: number;
}

/** Callbacks of a host for one connection. */
export interface SocketHandlers {
  opened?(): void;
  received(bytes: Uint8Array): void;
  drained?(): void;
  closed(reason: string): void;
}

/** The payload of a packet, of a flight of packets that move together, of TCP's window, and of the kernel's
 * send buffer, in bytes. */
const PACKET_BYTES = 1460;
const FLIGHT_BYTES = 16 * 1024;
const WINDOW_BYTES = 1024 * 1024;
const SEND_BUFFER_BYTES = 128 * 1024;
/** A connection to an absent host fails after this time; a host that is up refuses at once. */
const CONNECT_TIMEOUT_MS = 7_000;

/** A machine on the simulated network: a line that its connections share fairly. */
export class Host {
  readonly address: PeerAddress;
  readonly sockets = new Set<SimulatedSocket>();
  line: HostLine;
  isUp = true;
  /** Stays connected and sends nothing. */
  isFrozen = false;
  accept: ((socket: SimulatedSocket) => SocketHandlers) | undefined;
  sentBytes = 0;
  receivedBytes = 0;
  readonly #net: SimulatedNet;
  readonly #ready: SimulatedSocket[] = [];
  #isSending = false;
  #downFreeAt = 0;

  constructor(net: SimulatedNet, address: PeerAddress, line: HostLine) {
    this.#net = net;
    this.address = address;
    this.line = line;
  }

  /** Opens a connection; the handlers receive the result. */
  connect(address: PeerAddress, handlers: SocketHandlers): SimulatedSocket {
    return this.#net.connect(this, address, handlers);
  }

  /** Stops or resumes sending. */
  freeze(isFrozen: boolean): void {
    this.isFrozen = isFrozen;
    this.pump();
  }

  /** Leaves the network: connections are closed, or become silent. */
  leave(isPolite = true): void {
    this.isUp = false;
    for (const socket of [...this.sockets]) {
      if (isPolite) socket.close();
      else socket.vanish();
    }
  }

  /** A connection has data to send. */
  offer(socket: SimulatedSocket): void {
    if (!socket.isOffered) {
      socket.isOffered = true;
      this.#ready.push(socket);
    }
    this.pump();
  }

  pump(): void {
    if (this.#isSending || this.isFrozen || !this.isUp) return;
    const socket = this.#ready.shift();
    if (!socket) return;
    socket.isOffered = false;
    const bytes = socket.takeFlight();
    if (!bytes) {
      this.pump();
      return;
    }
    this.#isSending = true;
    this.sentBytes += bytes.length;
    this.#net.events.after((bytes.length / this.line.up) * 1000, () => {
      this.#isSending = false;
      socket.depart(bytes);
      this.pump();
    });
  }

  /** When bytes that arrive at this host's line now have passed through it. */
  comesThrough(bytes: number): number {
    this.receivedBytes += bytes;
    this.#downFreeAt = Math.max(this.#downFreeAt, this.#net.events.now) + (bytes / this.line.down) * 1000;
    return this.#downFreeAt;
  }
}

/** One end of a simulated TCP connection. */
export class SimulatedSocket {
  readonly local: Host;
  readonly remote: PeerAddress;
  readonly far: Host | undefined;
  handlers: SocketHandlers;
  peer: SimulatedSocket | undefined;
  isOffered = false;
  isOpen = false;
  #isOver = false;
  readonly #net: SimulatedNet;
  readonly #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #inFlightBytes = 0;
  #mayAt = 0;
  #lastArrival = 0;
  #owesDrained = false;

  constructor(
    net: SimulatedNet,
    local: Host,
    far: Host | undefined,
    remote: PeerAddress,
    handlers: SocketHandlers,
  ) {
    this.#net = net;
    this.local = local;
    this.far = far;
    this.remote = remote;
    this.handlers = handlers;
    local.sockets.add(this);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Queues `bytes`, which belong to the network from then on. */
  write(bytes: Uint8Array): void {
    if (this.#isOver || bytes.length === 0) return;
    this.#queue.push(bytes);
    this.#queuedBytes += bytes.length;
    this.#owesDrained = true;
    this.#tellDrained();
    this.local.offer(this);
  }

  /** Closes the connection at once. The other end is notified after the data that was already sent. */
  close(reason = "closed here"): void {
    if (this.#isOver) return;
    const { peer } = this;
    const at = Math.max(this.#lastArrival, this.#net.events.now + this.#latency());
    this.#end(reason);
    if (peer) this.#net.events.at(at, () => peer.#end("closed by peer"));
  }

  /** Closes without notifying the other end. */
  vanish(): void {
    this.#end("gone");
  }

  /** The next bytes to send, or undefined if the window, the rate or an empty queue prevents it. */
  takeFlight(): Uint8Array | undefined {
    if (this.#isOver || this.#queue.length === 0 || this.#inFlightBytes >= WINDOW_BYTES) return undefined;
    const { now } = this.#net.events;
    if (now < this.#mayAt) return undefined;
    const rate = this.#rate();
    const bytes = this.#take(Math.max(1, Math.min(FLIGHT_BYTES, rate * 0.05)));
    this.#inFlightBytes += bytes.length;
    if (rate !== Number.POSITIVE_INFINITY) {
      this.#mayAt = now + (bytes.length / rate) * 1000;
      this.#net.events.at(this.#mayAt, () => this.local.offer(this));
    }
    return bytes;
  }

  /** A flight has passed through our line and arrives after the latency, in order. */
  depart(bytes: Uint8Array): void {
    if (this.#isOver) return;
    this.#tellDrained();
    if (this.#queue.length > 0) this.local.offer(this);
    const at = Math.max(
      this.#lastArrival,
      this.#net.events.now + this.#latency() + this.#lossDelay(bytes.length),
    );
    this.#lastArrival = at;
    this.#net.events.at(at, () => {
      const { peer } = this;
      if (!peer || peer.#isOver || !peer.local.isUp) return;
      this.#net.events.at(peer.local.comesThrough(bytes.length), () => this.#deliver(peer, bytes));
    });
  }

  #deliver(peer: SimulatedSocket, bytes: Uint8Array): void {
    this.#inFlightBytes -= bytes.length;
    if (this.#queue.length > 0) this.local.offer(this);
    if (peer.#isOver) return;
    peer.handlers.received(bytes);
    // The view is valid during the call only; overwriting it reveals receivers that keep it.
    bytes.fill(0xee);
  }

  #end(reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#queue.length = 0;
    this.local.sockets.delete(this);
    this.#net.events.after(0, () => this.handlers.closed(reason));
  }

  #take(limit: number): Uint8Array {
    const parts: Uint8Array[] = [];
    let left = Math.floor(limit);
    while (left > 0 && this.#queue.length > 0) {
      const head = this.#queue[0]!;
      if (head.length <= left) {
        parts.push(head);
        this.#queue.shift();
        left -= head.length;
      } else {
        parts.push(head.subarray(0, left));
        this.#queue[0] = head.subarray(left);
        left = 0;
      }
    }
    const bytes = parts.length === 1 ? parts[0]! : concatBytes(parts);
    this.#queuedBytes -= bytes.length;
    return bytes;
  }

  #tellDrained(): void {
    if (!this.#owesDrained || this.#queuedBytes > SEND_BUFFER_BYTES) return;
    this.#owesDrained = false;
    this.#net.events.after(0, () => {
      if (!this.#isOver) this.handlers.drained?.();
    });
  }

  #latency(): number {
    const jitter = (this.local.line.jitterMs ?? 0) + (this.far?.line.jitterMs ?? 0);
    return this.local.line.latencyMs + (this.far?.line.latencyMs ?? 0) + jitter * this.#net.random();
  }

  #loss(): number {
    return 1 - (1 - (this.local.line.loss ?? 0)) * (1 - (this.far?.line.loss ?? 0));
  }

  /** The rate of TCP under loss: 1.22 · MSS / (RTT · √p) (Mathis et al., 1997), and the limit of the line. */
  #rate(): number {
    const cap = this.local.line.connectionRate ?? Number.POSITIVE_INFINITY;
    const loss = this.#loss();
    if (loss === 0) return cap;
    const rtt = (2 * (this.local.line.latencyMs + (this.far?.line.latencyMs ?? 0))) / 1000;
    return Math.min(cap, (1.22 * PACKET_BYTES) / (Math.max(rtt, 0.001) * Math.sqrt(loss)));
  }

  /** A lost packet delays all packets behind it by a round trip; one in ten causes a retransmission timeout
   * instead. */
  #lossDelay(bytes: number): number {
    const loss = this.#loss();
    if (loss === 0) return 0;
    const isHit = this.#net.random() < 1 - (1 - loss) ** Math.ceil(bytes / PACKET_BYTES);
    if (!isHit) return 0;
    return this.#net.random() < 0.1 ? 200 + 2 * this.#latency() : 2 * this.#latency();
  }
}

/** Hosts and their connections in simulated time, deterministic for a random source. */
export class SimulatedNet {
  readonly events: EventQueue;
  readonly random: Random;
  readonly #hosts = new Map<string, Host>();
  #nextPort = 20_000;

  constructor(events: EventQueue, random: Random) {
    this.events = events;
    this.random = random;
  }

  /** Adds a host; connections to `address` reach its `accept`. */
  host(address: PeerAddress, line: HostLine): Host {
    const host = new Host(this, address, line);
    this.#hosts.set(addressText(address), host);
    return host;
  }

  connect(from: Host, address: PeerAddress, handlers: SocketHandlers): SimulatedSocket {
    const far = this.#hosts.get(addressText(address));
    const near = new SimulatedSocket(this, from, far, address, handlers);
    if (!far?.isUp) {
      this.events.after(CONNECT_TIMEOUT_MS, () => near.close("time-out"));
      return near;
    }
    const oneWay = from.line.latencyMs + far.line.latencyMs;
    this.events.after(oneWay, () => {
      if (near.isOver) return;
      if (!far.isUp || !far.accept) {
        this.events.after(oneWay, () => near.close("refused"));
        return;
      }
      const remote = { host: from.address.host, port: this.#nextPort++ };
      const end = new SimulatedSocket(this, far, from, remote, { received() {}, closed() {} });
      near.peer = end;
      end.peer = near;
      end.isOpen = true;
      end.handlers = far.accept(end);
      this.events.after(oneWay, () => {
        if (near.isOver) return;
        near.isOpen = true;
        near.handlers.opened?.();
      });
    });
    return near;
  }
}
