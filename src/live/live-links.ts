import { addressText, type PeerAddress } from "../base/address.ts";
import { DecodeError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after, earliest, type Instant } from "../base/time.ts";
import type { PeerNet } from "../net/contract.ts";
import type { LiveConnectionId, LiveInput, LiveOutput } from "../protocol/live/contract.ts";
import { BAN_MS, MAX_CHILD_BACKLOG_MS } from "../protocol/live/limits.ts";
import { isPlausibleAddress } from "../protocol/live/live-codec.ts";
import type { LiveAbout, LiveMessage } from "../protocol/live/messages.ts";
import { MAX_CONTROL_BYTES, SendQueue } from "../protocol/live/send-queue.ts";
import type { SwarmLimits } from "../protocol/swarm/contract.ts";
import { HolePunch } from "../protocol/swarm/holepunch.ts";
import { CONNECT_TIMEOUT_MS } from "../protocol/swarm/limits.ts";
import type { Clock, TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import type { ConnectionHolder } from "../transfer/connection-count.ts";
import type { PexPeer } from "../wire/peer/pex-message.ts";
import { DownloadLimit } from "./download-limit.ts";
import type { LiveAddresses } from "./live-addresses.ts";
import { LiveConnection } from "./live-connection.ts";
import type { LiveConnections } from "./live-connections.ts";
import { PeerLink, type PeerLinkSetup } from "./peer-link.ts";
import type { UploadLimit } from "./upload-limit.ts";

/** What the links of a live stream depend on. */
export interface LiveLinksDependencies {
  readonly clock: Clock;
  readonly net: Pick<PeerNet, "connect">;
  readonly log: Log;
  readonly setup: PeerLinkSetup;
  readonly connections: LiveConnections;
  readonly addresses: LiveAddresses;
  readonly limit: UploadLimit;
  readonly limits: SwarmLimits;
  /** Passes an input to the swarm. */
  input(input: LiveInput): void;
  /** Whether the swarm has a place for an incoming connection from this address. */
  mayAdmit(address: PeerAddress): boolean;
  /** Handles addresses received by peer exchange. */
  peersReceived(addresses: readonly PeerAddress[]): void;
  /** Sends what is queued. */
  flush(): void;
}

/** If the connection limit is reached, the swarm is notified after this delay; otherwise it would try the next address
 * at once. */
const LIMIT_RETRY_MS = 1_000;
const PEX_ROUND_MS = 5_000;
/** A new peer waits this long for its first PEX message, so that peers arriving together are in it. */
const PEX_SOON_MS = 100;
/** Live bytes that wait longer are reported to the swarm as a backlog. */
const BACKLOG_MS = 50;
/** After the swarm has dropped a stripe of a peer, its backlog is not reported for this long. */
const BACKLOG_MUTE_MS = 300;
/** Limit of data queued for one peer: this much of the stream, within these bounds in bytes. */
const MAX_WAITING_SECONDS = 4;
const MIN_WAITING_BYTES = 1024 * 1024;
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/** Connects sockets and the swarm: opens and accepts connections, reads messages, and queues outgoing ones. */
export class LiveLinks implements ConnectionHolder {
  readonly #dependencies: LiveLinksDependencies;
  readonly #holePunch: HolePunch<PeerLink>;
  readonly #downloadLimit: DownloadLimit;
  #nextIncoming: LiveConnectionId = 1;
  #pexAt: Instant;
  /** Received bytes are being read. Replies are sent together when that is done. */
  isReading = false;

  constructor(dependencies: LiveLinksDependencies) {
    this.#dependencies = dependencies;
    this.#downloadLimit = new DownloadLimit(dependencies.limits.download);
    this.#pexAt = dependencies.clock.now();
    const { setup, connections, limit } = dependencies;
    this.#holePunch = new HolePunch({
      isOn: () => setup.punches === true && setup.sharesPeers,
      peers: () => connections.ready().map(({ link }) => link),
      send(link, payload) {
        link.sendHolePunch(payload);
        const connection = connections.of(link);
        if (connection) limit.add(connection);
      },
      connect: (address, relay) => this.#connectPunched(address, relay),
    });
  }

  /** Takes over an incoming connection whose handshake `first` has been read; without `first`, this engine sends the first handshake.
   * Returns undefined if it is not wanted. */
  accept(socket: TcpSocket, first: Uint8Array | undefined): TcpHandlers | undefined {
    const { connections, addresses, clock, mayAdmit } = this.#dependencies;
    if (!connections.hasRoomFor(this) || !addresses.admits(socket.remote, clock.now())) return undefined;
    if (!mayAdmit(socket.remote)) return undefined;
    const excess = connections.excess();
    if (excess) this.#end(excess, "too many connections without an introduction");
    const connection = this.#add(this.#nextIncoming, socket.remote, true, socket.transport === "webrtc");
    this.#nextIncoming += 2;
    connections.attach(connection, socket);
    if (first) this.#received(connection, first);
    else this.#open(connection);
    return this.#handlers(connection, () => socket);
  }

  /** Sends the first handshake on a connection that has no address to connect to. */
  #open(connection: LiveConnection): void {
    const { clock, limit, flush } = this.#dependencies;
    connection.link.opened(clock.now());
    limit.add(connection);
    flush();
  }

  /** Connects to an address for the swarm. */
  connect(id: LiveConnectionId, address: PeerAddress): void {
    const { clock, connections, addresses, input } = this.#dependencies;
    if (!connections.hasRoomFor(this) || !addresses.mayConnect(address, clock.now())) {
      clock.at(after(clock.now(), LIMIT_RETRY_MS), () => input({ kind: "closed", connection: id }));
      return;
    }
    this.#connect(id, address, false);
  }

  /** Connects to a peer that connects to us at the same time (hole punching). The swarm learns of it when the link is
   * ready. */
  #connectPunched(address: PeerAddress, relay: PeerLink): void {
    const { clock, connections, addresses } = this.#dependencies;
    if (
      !connections.hasRoomFor(this) ||
      !addresses.mayConnect(address, clock.now()) ||
      !isPlausibleAddress(address, relay.remote)
    )
      return;
    const key = addressText(address);
    const isHere = ({ link }: LiveConnection) =>
      link.listenAddress && addressText(link.listenAddress) === key;
    if (connections.all().some(isHere)) return;
    this.#connect(this.#nextIncoming, address, true);
    this.#nextIncoming += 2;
  }

  #connect(id: LiveConnectionId, address: PeerAddress, isPunch: boolean): void {
    const { net, connections } = this.#dependencies;
    const connection = this.#add(id, address, false);
    let socket: TcpSocket | undefined;
    const handlers = this.#handlers(connection, () => socket);
    const options = { timeoutMs: CONNECT_TIMEOUT_MS, prefersEncryption: true, ...(isPunch && { isPunch }) };
    socket = net.connect(address, handlers, options);
    connections.attach(connection, socket);
  }

  /** Queues a message of the swarm. */
  send({ connection: id, message, priority, expiresAt }: Extract<LiveOutput, { kind: "send" }>): void {
    const { clock, connections, limit } = this.#dependencies;
    const connection = connections.get(id);
    if (!connection?.link.isReady) return;
    const now = clock.now();
    if (message.kind === "chunk" && !message.isLate) connection.lastSentAt = now;
    if (message.kind === "unsubscribe") connection.link.queue.unsubscribe(message.stripes);
    if (connection.link.send(message, priority, expiresAt, now)) limit.add(connection);
    else this.#end(connection, "accepts no data");
  }

  /** Closes a connection that the swarm no longer uses. */
  close(id: LiveConnectionId, reason: string): void {
    const { connections, limit } = this.#dependencies;
    const connection = connections.get(id);
    if (!connection || !connections.drop(connection, reason)) return;
    limit.remove(connection);
    this.#holePunch.peerLeft(connection.link);
  }

  /** Sets whether the stream has no player: then its connections yield to those of other transfers. */
  setIdle(isIdle: boolean): void {
    this.#dependencies.connections.setIdle(this, isIdle);
  }

  closeOne(): boolean {
    const last = this.#dependencies.connections.all().at(-1);
    this.#end(last, "another transfer needs the connection");
    return last !== undefined;
  }

  /** Maintains the connections. Call this about ten times a second. */
  round(now: Instant): void {
    const { connections, input } = this.#dependencies;
    for (const connection of connections.all()) {
      if (!connection.link.isFlooding(now)) this.#downloadLimit.round(connection, now);
      const timeoutReason = connection.isStalled(now)
        ? "accepts no data"
        : connection.link.timeoutReason(now);
      if (timeoutReason !== undefined) {
        this.#end(connection, timeoutReason);
        continue;
      }
      const waitMs = connection.waitMs(now);
      if (waitMs <= BACKLOG_MS || !connection.about || now < connection.backlogMutedUntil) continue;
      // The swarm drops a stripe; the effect is visible only after the queued bytes have left.
      if (waitMs > MAX_CHILD_BACKLOG_MS) connection.backlogMutedUntil = after(now, BACKLOG_MUTE_MS);
      input({
        kind: "backlog",
        connection: connection.id,
        waitMs,
        bytesPerSecond: connection.up.bytesPerSecond(now),
      });
    }
    if (now < this.#pexAt) return;
    this.#pexAt = after(now, PEX_ROUND_MS);
    this.#sharePeers(now);
  }

  #add(id: LiveConnectionId, remote: PeerAddress, isIncoming: boolean, isWebRtc = false): LiveConnection {
    const { clock, setup, addresses, connections, limits } = this.#dependencies;
    const now = clock.now();
    const waitingBytes = MAX_WAITING_SECONDS * setup.info.bytesPerSecond;
    const queue = new SendQueue({
      controlBytes: MAX_CONTROL_BYTES,
      dataBytes: Math.min(Math.max(waitingBytes, MIN_WAITING_BYTES), MAX_WAITING_BYTES),
    });
    const link = new PeerLink(setup, this.#events, queue, { isIncoming, remote }, now);
    const origin = isWebRtc ? "webrtc" : isIncoming ? "incoming" : addresses.originOf(remote);
    const isExempt = limits.isExempt(remote.host);
    const connection = new LiveConnection(id, link, { origin, isExempt }, now);
    connections.add(connection);
    return connection;
  }

  #handlers(connection: LiveConnection, socketOf: () => TcpSocket | undefined): TcpHandlers {
    const { clock, connections, addresses, limit, flush } = this.#dependencies;
    const isHere = () => connections.has(connection);
    let hasOpened = connection.link.isIncoming;
    return {
      opened: () => {
        hasOpened = true;
        if (!isHere()) return;
        addresses.markReachable(connection.link.remote);
        this.#open(connection);
      },
      received: (bytes) => {
        if (isHere()) this.#received(connection, bytes);
      },
      drained: () => {
        connection.drained(clock.now());
        if (!isHere()) connection.destroy();
        else {
          limit.add(connection);
          flush();
        }
      },
      closed: (reason) => {
        connections.ended(socketOf());
        if (!isHere()) return;
        if (!hasOpened) this.#connectFailed(connection);
        this.#end(connection, reason);
      },
    };
  }

  #connectFailed(connection: LiveConnection): void {
    const { clock, addresses, flush } = this.#dependencies;
    const { remote } = connection.link;
    addresses.markUnreachable(remote, clock.now());
    if (!connection.isRequested) return;
    this.#holePunch.failed(remote, clock.now());
    flush();
  }

  #received(connection: LiveConnection, bytes: Uint8Array): void {
    const { clock, limit, flush } = this.#dependencies;
    const now = clock.now();
    connection.down.add(bytes.length, now);
    this.#downloadLimit.received(connection, bytes.length, now);
    this.isReading = true;
    try {
      connection.link.received(bytes, now);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      this.#ban(connection, error.message);
    } finally {
      this.isReading = false;
    }
    if (connection.link.isFlooding(now)) this.#throttle(connection, now);
    limit.add(connection);
    flush();
  }

  /** A peer sends more messages than it may. If it delivers, or is the source, reading pauses until its allowance has refilled;
   * otherwise the connection is closed. */
  #throttle(connection: LiveConnection, now: Instant): void {
    if (connection.isParent(now) || connection.about?.role === "source") connection.pause();
    else this.#ban(connection, "too many messages", BAN_MS);
  }

  /** Bans a peer for what no correct program does: invalid bytes, or far too many messages. */
  #ban(connection: LiveConnection, reason: string, forMs?: number): void {
    const { clock, log, addresses, connections } = this.#dependencies;
    if (!connections.has(connection)) return;
    const { link } = connection;
    const address = link.listenAddress ?? link.remote;
    addresses.bans.add(address, clock.now(), forMs);
    log.info("peer banned", { peer: addressText(address), reason });
    this.#end(connection, reason);
  }

  readonly #events = {
    handshake: (link: PeerLink) => this.#handshakeReceived(link),
    ready: (link: PeerLink, about: LiveAbout, rttMs: number) => this.#becameReady(link, about, rttMs),
    proved: (link: PeerLink, role: "relay" | "source") => this.#proved(link, role),
    message: (link: PeerLink, message: LiveMessage) => this.#messageReceived(link, message),
    peers: (link: PeerLink, peers: readonly PexPeer[]) => {
      this.#holePunch.reported(link, peers);
      this.#dependencies.peersReceived(peers.map(({ address }) => address));
    },
    holePunch: (link: PeerLink, payload: Uint8Array) =>
      this.#holePunch.received(link, payload, this.#dependencies.clock.now()),
    rejected: (link: PeerLink, reason: string) => this.#end(this.#dependencies.connections.of(link), reason),
  };

  /** Returns why a link is rejected after its handshake; undefined to keep it. */
  #handshakeReceived(link: PeerLink): string | undefined {
    const { connections, addresses } = this.#dependencies;
    if (link.isOurselves) {
      if (!link.isIncoming) addresses.addOwn(link.remote);
      return "connected to ourselves";
    }
    for (const connection of connections.all()) {
      const other = connection.link;
      if (other === link || !other.isSamePeer(link)) continue;
      const isNewKept = other.isIncoming !== link.isIncoming && link.isKeptWhenCrossed;
      if (!isNewKept) return "connected twice";
      this.#end(connection, "connected twice");
    }
    return undefined;
  }

  #proved(link: PeerLink, role: "relay" | "source"): void {
    const connection = this.#dependencies.connections.of(link);
    if (!connection?.about) return;
    connection.about = { ...connection.about, role };
    this.#dependencies.input({ kind: "proved", connection: connection.id, role });
  }

  #becameReady(link: PeerLink, claims: LiveAbout, rttMs: number): void {
    const { clock, connections, addresses, input } = this.#dependencies;
    const connection = connections.of(link);
    if (!connection) return;
    const now = clock.now();
    const { listenAddress } = link;
    if (listenAddress && addresses.bans.has(listenAddress, now)) {
      this.#end(connection, "banned before");
      return;
    }
    // The role is a claim: only a relay that the source lists needs no proof.
    const isListed = claims.role === "relay" && addresses.isRelay(listenAddress ?? link.remote);
    const about = { ...claims, role: isListed ? ("relay" as const) : ("viewer" as const) };
    connection.about = about;
    this.#pexAt = earliest(this.#pexAt, after(now, PEX_SOON_MS))!;
    const opened = { connection: connection.id, about, rttMs };
    if (connection.isRequested) input({ kind: "opened", ...opened });
    else {
      const address = listenAddress ?? link.remote;
      const isCallable = link.isIncoming && listenAddress !== undefined;
      const isReachable = isCallable && addresses.isReachable(listenAddress, now);
      input({ kind: "accepted", ...opened, address, isReachable });
    }
  }

  #messageReceived(link: PeerLink, message: LiveMessage): void {
    const { clock, connections, input } = this.#dependencies;
    const connection = connections.of(link);
    if (!connection) return;
    if (message.kind === "chunk" && !message.isLate) connection.lastReceivedAt = clock.now();
    if (message.kind === "unsubscribe") link.queue.unsubscribe(message.stripes);
    if (message.kind === "cancel") {
      for (const { seq, stripe } of message.chunks) link.queue.cancel(message.epoch, seq, stripe);
    }
    input({ kind: "message", connection: connection.id, message });
  }

  /** Ends a connection that the swarm still has. */
  #end(connection: LiveConnection | undefined, reason: string): void {
    if (!connection || !this.#dependencies.connections.has(connection)) return;
    this.close(connection.id, reason);
    // The swarm does not know incoming or hole-punched connections that were never ready.
    if (connection.about || connection.isRequested) {
      this.#dependencies.input({ kind: "closed", connection: connection.id });
    }
  }

  #sharePeers(now: Instant): void {
    const { setup, connections, addresses, limit } = this.#dependencies;
    if (!setup.sharesPeers) return;
    const ready = connections.ready();
    const known = addresses.shareable(
      ready.map(({ link }) => link),
      now,
    );
    for (const connection of ready) {
      connection.link.sharePeers(known, now);
      limit.add(connection);
    }
  }
}
