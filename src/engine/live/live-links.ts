import { addressText, type PeerAddress } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { after, earliest, type Instant } from "../../base/time.ts";
import type { Clock, TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import type { SwarmLimits } from "../../swarm/contract.ts";
import { HolePunch } from "../../swarm/holepunch.ts";
import { CONNECT_TIMEOUT_MS } from "../../swarm/limits.ts";
import type { LiveConnectionId, LiveInput, LiveOutput } from "../../swarm/live/contract.ts";
import { MAX_CHILD_BACKLOG_MS } from "../../swarm/live/limits.ts";
import type { LiveAbout, LiveWord } from "../../swarm/live/messages.ts";
import type { PexPeer } from "../../wire/pex-message.ts";
import type { PeerNet } from "../reach/contract.ts";
import { DownloadLimit } from "./download-limit.ts";
import { LiveConnection } from "./live-connection.ts";
import type { LiveConnections } from "./live-connections.ts";
import type { LivePlaces } from "./live-places.ts";
import { isBelievable } from "./live-words.ts";
import { PeerLink, type PeerLinkSetup } from "./peer-link.ts";
import { MAX_CONTROL_BYTES, SendQueue } from "./send-queue.ts";
import type { UploadLimit } from "./upload-limit.ts";

/** What the links of a live stream are made of. */
export interface LiveLinksParts {
  readonly clock: Clock;
  readonly net: Pick<PeerNet, "connect">;
  readonly log: Log;
  readonly setup: PeerLinkSetup;
  readonly connections: LiveConnections;
  readonly places: LivePlaces;
  readonly limit: UploadLimit;
  readonly limits: SwarmLimits;
  /** Something for the swarm to hear. */
  input(input: LiveInput): void;
  /** Peers tell of these. */
  told(addresses: readonly PeerAddress[]): void;
  /** There may be something to send. */
  settle(): void;
}

/** Where no connection is to be had, the swarm hears so after a while: it would try the next address at once. */
const NO_CONNECTION_MS = 1_000;
const PEX_ROUND_MS = 5_000;
/** A newcomer is told of others together with those who come with it. */
const PEX_SOON_MS = 100;
/** The swarm is told of live bytes that wait longer. */
const BACKLOG_MS = 50;
/** After the swarm has dropped a stripe of a peer it hears no more of that peer's backlog for so long. */
const RELIEF_MS = 300;
/** What waits for one peer: so much of the stream, or its bounds, in bytes. */
const MAX_WAITING_SECONDS = 4;
const MIN_WAITING_BYTES = 1024 * 1024;
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/** Between sockets and the swarm: calls and lets in, reads what peers say, and queues what the swarm says to them. */
export class LiveLinks {
  readonly #parts: LiveLinksParts;
  readonly #holePunch: HolePunch<PeerLink>;
  readonly #downloadLimit: DownloadLimit;
  #nextIncoming: LiveConnectionId = 1;
  #pexAt: Instant;
  /** Bytes are being read: what they make us say goes out together, when they are. */
  isReading = false;

  constructor(parts: LiveLinksParts) {
    this.#parts = parts;
    this.#downloadLimit = new DownloadLimit(parts.limits.download);
    this.#pexAt = parts.clock.now();
    const { setup, connections, limit } = parts;
    this.#holePunch = new HolePunch({
      isOn: () => setup.punches === true && setup.sharesPeers,
      peers: () => connections.ready().map(({ link }) => link),
      send(link, payload) {
        link.punch(payload);
        const connection = connections.of(link);
        if (connection) limit.add(connection);
      },
      call: (address, relay) => this.#meet(address, relay),
    });
  }

  /** Takes over an incoming connection whose handshake `first` has been read; undefined where it is not wanted. */
  accept(socket: TcpSocket, first: Uint8Array): TcpHandlers | undefined {
    const { connections, places, clock } = this.#parts;
    if (connections.isFull || !places.admits(socket.remote, clock.now())) return undefined;
    const surplus = connections.surplus();
    if (surplus) this.#end(surplus, "slower than others to say what it is");
    const connection = this.#add(this.#nextIncoming, socket.remote, true);
    this.#nextIncoming += 2;
    connections.attach(connection, socket);
    this.#received(connection, first);
    return this.#handlers(connection, () => socket);
  }

  /** Calls an address. */
  call(id: LiveConnectionId, address: PeerAddress): void {
    const { clock, connections, places, input } = this.#parts;
    if (connections.isFull || !places.mayCall(address, clock.now())) {
      clock.at(after(clock.now(), NO_CONNECTION_MS), () => input({ kind: "closed", connection: id }));
      return;
    }
    this.#dial(id, address, false);
  }

  /** Calls an address that calls us at the same moment. Of that the swarm hears when both have said what they are. */
  #meet(address: PeerAddress, relay: PeerLink): void {
    const { clock, connections, places } = this.#parts;
    if (connections.isFull || !places.mayCall(address, clock.now()) || !isBelievable(address, relay.remote))
      return;
    const key = addressText(address);
    const isHere = ({ link }: LiveConnection) =>
      link.listenAddress && addressText(link.listenAddress) === key;
    if (connections.all().some(isHere)) return;
    this.#dial(this.#nextIncoming, address, true);
    this.#nextIncoming += 2;
  }

  #dial(id: LiveConnectionId, address: PeerAddress, isPunch: boolean): void {
    const { net, connections } = this.#parts;
    const connection = this.#add(id, address, false);
    let socket: TcpSocket | undefined;
    const handlers = this.#handlers(connection, () => socket);
    const options = { timeoutMs: CONNECT_TIMEOUT_MS, ...(isPunch && { isPunch }) };
    socket = net.connect(address, handlers, options);
    connections.attach(connection, socket);
  }

  /** Queues what the swarm says. */
  send({ connection: id, message, priority, expiresAt }: Extract<LiveOutput, { kind: "send" }>): void {
    const { clock, connections, limit } = this.#parts;
    const connection = connections.get(id);
    if (!connection?.link.isReady) return;
    const now = clock.now();
    if (message.kind === "chunk" && !message.isLate) connection.gotAt = now;
    if (message.kind === "unsubscribe") connection.link.queue.unsubscribe(message.stripes);
    if (connection.link.send(message, priority, expiresAt, now)) limit.add(connection);
    else this.#end(connection, "takes nothing from us");
  }

  /** Closes what the swarm has done with. */
  close(id: LiveConnectionId, reason: string): void {
    const { connections, limit } = this.#parts;
    const connection = connections.get(id);
    if (!connection || !connections.drop(connection, reason)) return;
    limit.remove(connection);
    this.#holePunch.left(connection.link);
  }

  /** Looks after the connections; to be called about ten times a second. */
  round(now: Instant): void {
    const { connections, input } = this.#parts;
    for (const connection of connections.all()) {
      this.#downloadLimit.round(connection, now);
      const overdue = connection.isStalled(now) ? "takes nothing from us" : connection.link.overdue(now);
      if (overdue !== undefined) {
        this.#end(connection, overdue);
        continue;
      }
      const waitMs = connection.waitMs(now);
      if (waitMs <= BACKLOG_MS || !connection.about || now < connection.quietUntil) continue;
      // The swarm drops a stripe: what that is worth shows when the rest has gone.
      if (waitMs > MAX_CHILD_BACKLOG_MS) connection.quietUntil = after(now, RELIEF_MS);
      input({ kind: "backlog", connection: connection.id, waitMs });
    }
    if (now < this.#pexAt) return;
    this.#pexAt = after(now, PEX_ROUND_MS);
    this.#tellPeers(now);
  }

  #add(id: LiveConnectionId, remote: PeerAddress, isIncoming: boolean): LiveConnection {
    const { clock, setup, places, connections, limits } = this.#parts;
    const now = clock.now();
    const waitingBytes = MAX_WAITING_SECONDS * setup.info.bytesPerSecond;
    const queue = new SendQueue({
      controlBytes: MAX_CONTROL_BYTES,
      dataBytes: Math.min(Math.max(waitingBytes, MIN_WAITING_BYTES), MAX_WAITING_BYTES),
    });
    const link = new PeerLink(setup, this.#events, queue, { isIncoming, remote }, now);
    const origin = isIncoming ? "incoming" : places.originOf(remote);
    const isExempt = limits.isExempt(remote.host);
    const connection = new LiveConnection(id, link, { origin, isExempt }, now);
    connections.add(connection);
    return connection;
  }

  #handlers(connection: LiveConnection, socketOf: () => TcpSocket | undefined): TcpHandlers {
    const { clock, connections, places, limit, settle } = this.#parts;
    const isHere = () => connections.has(connection);
    let hasOpened = connection.link.isIncoming;
    return {
      opened: () => {
        hasOpened = true;
        if (!isHere()) return;
        places.answered(connection.link.remote);
        connection.link.opened(clock.now());
        limit.add(connection);
        settle();
      },
      received: (bytes) => {
        if (isHere()) this.#received(connection, bytes);
      },
      drained: () => {
        connection.drained(clock.now());
        if (!isHere()) connection.destroy();
        else {
          limit.add(connection);
          settle();
        }
      },
      closed: (reason) => {
        connections.ended(socketOf());
        if (!isHere()) return;
        if (!hasOpened) this.#notReached(connection);
        this.#end(connection, reason);
      },
    };
  }

  #notReached(connection: LiveConnection): void {
    const { clock, places, settle } = this.#parts;
    const { remote } = connection.link;
    places.failed(remote, clock.now());
    if (!connection.isAsked) return;
    this.#holePunch.failed(remote, clock.now());
    settle();
  }

  #received(connection: LiveConnection, bytes: Uint8Array): void {
    const { clock, limit, settle } = this.#parts;
    const now = clock.now();
    connection.down.add(bytes.length, now);
    this.#downloadLimit.received(connection, bytes.length, now);
    this.isReading = true;
    try {
      connection.link.received(bytes, now);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      this.#fault(connection, error);
    } finally {
      this.isReading = false;
    }
    limit.add(connection);
    settle();
  }

  /** It broke the format, which no program does that means well. */
  #fault(connection: LiveConnection, error: DecodeError): void {
    const { clock, log, places } = this.#parts;
    const { link } = connection;
    const address = link.listenAddress ?? link.remote;
    places.bans.add(address, clock.now());
    log.info("peer banned", { peer: addressText(address), reason: error.message });
    this.#end(connection, error.message);
  }

  readonly #events = {
    greeted: (link: PeerLink) => this.#greeted(link),
    ready: (link: PeerLink, about: LiveAbout, rttMs: number) => this.#becameReady(link, about, rttMs),
    heard: (link: PeerLink, word: LiveWord) => this.#heard(link, word),
    told: (link: PeerLink, peers: readonly PexPeer[]) => {
      this.#holePunch.told(link, peers);
      this.#parts.told(peers.map(({ address }) => address));
    },
    punched: (link: PeerLink, payload: Uint8Array) =>
      this.#holePunch.received(link, payload, this.#parts.clock.now()),
    unfit: (link: PeerLink, reason: string) => this.#end(this.#parts.connections.of(link), reason),
  };

  /** Why a link is not wanted whose handshake has come. */
  #greeted(link: PeerLink): string | undefined {
    const { connections, places } = this.#parts;
    if (link.isOurselves) {
      if (!link.isIncoming) places.isOurs(link.remote);
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

  #becameReady(link: PeerLink, about: LiveAbout, rttMs: number): void {
    const { clock, connections, places, input } = this.#parts;
    const connection = connections.of(link);
    if (!connection) return;
    const now = clock.now();
    const { listenAddress } = link;
    if (listenAddress && places.bans.has(listenAddress, now)) {
      this.#end(connection, "banned before");
      return;
    }
    connection.about = about;
    this.#pexAt = earliest(this.#pexAt, after(now, PEX_SOON_MS))!;
    const opened = { connection: connection.id, about, rttMs };
    if (connection.isAsked) input({ kind: "opened", ...opened });
    else {
      const address = listenAddress ?? link.remote;
      const isCallable = link.isIncoming && listenAddress !== undefined;
      const isReachable = isCallable && places.isReachable(listenAddress, now);
      input({ kind: "accepted", ...opened, address, isReachable });
    }
  }

  #heard(link: PeerLink, message: LiveWord): void {
    const { clock, connections, input } = this.#parts;
    const connection = connections.of(link);
    if (!connection) return;
    if (message.kind === "chunk" && !message.isLate) connection.gaveAt = clock.now();
    if (message.kind === "unsubscribe") link.queue.unsubscribe(message.stripes);
    if (message.kind === "cancel") {
      for (const { seq, stripe } of message.chunks) link.queue.cancel(message.epoch, seq, stripe);
    }
    input({ kind: "message", connection: connection.id, message });
  }

  /** The connection is over, and the swarm does not know it yet. */
  #end(connection: LiveConnection | undefined, reason: string): void {
    if (!connection || !this.#parts.connections.has(connection)) return;
    this.close(connection.id, reason);
    // Of one who called us, or whom we met halfway, and was never ready the swarm has not heard.
    if (connection.about || connection.isAsked) {
      this.#parts.input({ kind: "closed", connection: connection.id });
    }
  }

  #tellPeers(now: Instant): void {
    const { setup, connections, places, limit } = this.#parts;
    if (!setup.sharesPeers) return;
    const ready = connections.ready();
    const known = places.tellable(
      ready.map(({ link }) => link),
      now,
    );
    for (const connection of ready) {
      connection.link.tellPeers(known, now);
      limit.add(connection);
    }
  }
}
