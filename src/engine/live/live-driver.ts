import { addressText, type PeerAddress } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Machine } from "../../base/machine.ts";
import type { Random } from "../../base/random.ts";
import { after, earliest, type Instant } from "../../base/time.ts";
import type { Runtime, TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import type { SwarmFigures } from "../../swarm/contract.ts";
import { CONNECT_TIMEOUT_MS } from "../../swarm/limits.ts";
import type {
  LiveConnectionId,
  LiveFigures,
  LiveInput,
  LiveOutput,
  LiveSetup,
} from "../../swarm/live/contract.ts";
import { LiveSwarm } from "../../swarm/live/live-swarm.ts";
import type { LiveAbout, LiveWord, SignedHeader } from "../../swarm/live/messages.ts";
import type { LiveRole } from "../../wire/live-hello.ts";
import type { LiveInfo } from "../../wire/live-info.ts";
import type { ConnectionCount, DriverAnnouncer } from "../driver.ts";
import type { PieceSink } from "./contract.ts";
import { LiveAnnounces } from "./live-announces.ts";
import { LiveConnection } from "./live-connection.ts";
import { LivePlaces } from "./live-places.ts";
import { liveSetup } from "./live-setup.ts";
import { liveSwarmFigures } from "./live-swarm-figures.ts";
import { OrderedPieces } from "./ordered-pieces.ts";
import { PeerLink, type PeerLinkSetup } from "./peer-link.ts";
import { MAX_CONTROL_BYTES, SendQueue } from "./send-queue.ts";
import { UploadLimit } from "./upload-limit.ts";

/** A live swarm as the driver knows it. */
export interface DrivenLiveSwarm extends Machine<LiveInput, LiveOutput> {
  figures(now: Instant): LiveFigures;
}

/** What a live driver is made of. */
export interface LiveDriverParts {
  readonly infohash: Infohash;
  readonly info: LiveInfo;
  readonly infoBytes: Uint8Array;
  readonly role: LiveRole;
  /** 20 bytes. */
  readonly peerId: Uint8Array;
  readonly runtime: Pick<Runtime, "clock" | "net" | "sha256" | "ed25519Verifier">;
  readonly random: Random;
  readonly announcer: DriverAnnouncer;
  /** Announce URLs by tier. */
  readonly trackers: readonly (readonly string[])[];
  /** 0: nobody can call us. */
  readonly listenPort: number;
  /** What is offered to others. */
  readonly uploadBytesPerSecond: number;
  /** What is sent at most, to all peers together, in bytes a second; 0 for no limit. */
  readonly uploadLimit: number;
  readonly lagMs: number;
  readonly keepMs: number;
  /** Whom alone a private source talks to. Everybody where it is absent. */
  readonly only?: readonly PeerAddress[];
  readonly connections: ConnectionCount;
  readonly log: Log;
  /** Gets the pieces that come; what a source makes does not come back to it. */
  readonly sink: PieceSink;
  /** The source has signed two pieces of one number. */
  forked(seq: number): void;
  readonly makeSwarm?: (setup: LiveSetup, now: Instant) => DrivenLiveSwarm;
}

/** Where no connection is to be had, the swarm hears so after a while: it would try the next address at once. */
const NO_CONNECTION_MS = 1_000;
/** Goodbyes to peers may take so long. */
const FAREWELL_MS = 1_000;
/** How often connections are looked after. */
const ROUND_MS = 100;
const PEX_ROUND_MS = 5_000;
/** The swarm is told of live bytes that wait longer. */
const BACKLOG_MS = 50;
/** Connections that have not said yet what they are to the stream; with more the oldest goes. */
const MAX_UNREADY = 64;
/** Inputs that wait for the swarm to be done, or to begin. */
const MAX_LATER = 10_000;
/** What waits for one peer: so much of the stream, or its bounds, in bytes. */
const MAX_WAITING_SECONDS = 4;
const MIN_WAITING_BYTES = 1024 * 1024;
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/**
 * Drives one live swarm with real sockets and a real clock, as {@link Driver} does for files. What peers say becomes
 * words, what the swarm says becomes bytes, and those go out by urgency.
 */
export class LiveDriver {
  readonly #parts: LiveDriverParts;
  readonly #swarm: DrivenLiveSwarm;
  readonly #linkSetup: PeerLinkSetup;
  readonly #announces: LiveAnnounces | undefined;
  readonly #places: LivePlaces;
  readonly #pieces: OrderedPieces;
  readonly #limit: UploadLimit;
  readonly #connections = new Map<LiveConnectionId, LiveConnection>();
  readonly #byLink = new Map<PeerLink, LiveConnection>();
  /** Sockets whose end has not come yet. */
  readonly #sockets = new Set<TcpSocket>();
  readonly #later: LiveInput[] = [];
  /** What connections that are over have moved. */
  readonly #gone = { downloaded: 0, uploaded: 0 };
  #allClosed: () => void = () => {};
  #state: "new" | "running" | "stopped" = "new";
  /** The swarm is in the middle of an input, or its outputs are being carried out. */
  #isBusy = false;
  /** Bytes are being read: what they make us say goes out together. */
  #isReading = false;
  #nextIncoming: LiveConnectionId = 1;
  #roundAt: Instant;
  #pexAt: Instant;
  #wakeAt: Instant | undefined;
  #cancelWake: () => void = () => {};

  constructor(parts: LiveDriverParts) {
    this.#parts = parts;
    const { clock } = parts.runtime;
    const setup = liveSetup(parts);
    const make = parts.makeSwarm ?? ((...given) => new LiveSwarm(...given));
    this.#swarm = make(setup, clock.now());
    const { infohash, info, infoBytes, peerId, listenPort, runtime, only } = parts;
    this.#linkSetup = {
      ...{ infohash, info, infoBytes, peerId, listenPort },
      about: setup.about,
      sharesPeers: !info.isPrivate && !only,
      sha256: runtime.sha256,
    };
    this.#places = new LivePlaces(only);
    this.#pieces = new OrderedPieces(parts.sink);
    this.#limit = new UploadLimit(parts.uploadLimit);
    // Whom a private source talks to it knows already, and nobody else is to know of it.
    if (!only) {
      const found = (addresses: readonly PeerAddress[]) => this.#found(addresses, "tracker");
      this.#announces = new LiveAnnounces({ ...parts, clock, found });
    }
    this.#roundAt = this.#pexAt = clock.now();
  }

  /** Begins: until then nobody is called, and nobody is let in. */
  start(): void {
    if (this.#state !== "new") return;
    this.#state = "running";
    const { only } = this.#parts;
    if (only) this.#found(only, "magnet");
    for (const input of this.#later.splice(0)) this.#run(input);
    this.#wake();
  }

  /** Takes over an incoming connection whose handshake `first` has been read. */
  accept(socket: TcpSocket, first: Uint8Array): TcpHandlers {
    const { connections, runtime } = this.#parts;
    const now = runtime.clock.now();
    const isFull = connections.open >= connections.limit;
    if (this.#state !== "running" || isFull || !this.#places.admits(socket.remote, now)) {
      socket.close();
      return { received() {}, drained() {}, closed() {} };
    }
    this.#makeRoom();
    const connection = this.#add(this.#nextIncoming, socket.remote, true);
    this.#nextIncoming += 2;
    this.#attach(connection, socket);
    this.#received(connection, first);
    return this.#handlers(connection, () => socket);
  }

  /** Addresses of possible peers. */
  found(addresses: readonly PeerAddress[]): void {
    this.#found(addresses, "magnet");
  }

  addTrackers(tiers: readonly (readonly string[])[]): void {
    this.#announces?.add(tiers);
  }

  /** Sends a piece that the source has made and signed. */
  produce(header: SignedHeader, chunks: readonly Uint8Array[]): void {
    this.#input({ kind: "produced", header, chunks });
  }

  figures(): LiveFigures {
    return this.#swarm.figures(this.#parts.runtime.clock.now());
  }

  /** What `stat` and the page show. */
  swarmFigures(): SwarmFigures {
    const now = this.#parts.runtime.clock.now();
    const { bans, known } = this.#places;
    const totals = {
      ...this.#traffic(),
      ...{ known, banned: bans.size },
      trackers: this.#announces?.figures(),
      live: this.#swarm.figures(now),
    };
    return liveSwarmFigures(this.#ready(), totals, now);
  }

  /** Addresses of connected peers that can be called, those that we have called ourselves first. */
  reachablePeers(): PeerAddress[] {
    const now = this.#parts.runtime.clock.now();
    const links = this.#ready()
      .map(({ link }) => link)
      .sort((a, b) => Number(a.isIncoming) - Number(b.isIncoming));
    return links.flatMap(({ listenAddress }) =>
      listenAddress && this.#places.isReachable(listenAddress, now) ? [listenAddress] : [],
    );
  }

  /** Says goodbye to peers and trackers; resolves when that is done, within seconds. */
  async stop(): Promise<void> {
    if (this.#state === "stopped") return;
    const wasRunning = this.#state === "running";
    if (wasRunning) this.#input({ kind: "stop" });
    this.#state = "stopped";
    this.#cancelWake();
    const { clock } = this.#parts.runtime;
    for (const connection of this.#connections.values()) connection.close(clock.now());
    this.#connections.clear();
    this.#byLink.clear();
    const closed = new Promise<void>((resolve) => {
      this.#allClosed = resolve;
      if (this.#sockets.size === 0) resolve();
    });
    const cancel = clock.at(after(clock.now(), FAREWELL_MS), () => {
      for (const socket of this.#sockets) socket.close();
      this.#allClosed();
    });
    await Promise.all([closed, wasRunning ? this.#announces?.stop(this.#traffic()) : undefined]);
    cancel();
  }

  #found(addresses: readonly PeerAddress[], origin: "tracker" | "magnet" | "pex"): void {
    const callable = this.#places.found(addresses, origin, this.#parts.runtime.clock.now());
    if (callable.length > 0) this.#input({ kind: "found", addresses: callable });
  }

  /** Hands one input to the swarm, with all that follows from it; what is said to peers goes out at the end. */
  #input(input: LiveInput): void {
    if (this.#state === "stopped") return;
    if (this.#isBusy || this.#state === "new") {
      if (this.#later.length < MAX_LATER) this.#later.push(input);
      return;
    }
    this.#run(input);
    this.#settle();
  }

  #run(input?: LiveInput): void {
    const { clock } = this.#parts.runtime;
    this.#isBusy = true;
    try {
      if (input) this.#swarm.handle(input, clock.now());
      else this.#wakeIfDue();
      for (;;) {
        for (let output = this.#swarm.poll(); output; output = this.#swarm.poll()) this.#carryOut(output);
        const next = this.#later.shift();
        if (next === undefined) break;
        this.#swarm.handle(next, clock.now());
      }
    } finally {
      this.#isBusy = false;
    }
  }

  #carryOut(output: LiveOutput): void {
    const { log, role, forked, runtime } = this.#parts;
    switch (output.kind) {
      case "send":
        this.#send(output);
        break;
      case "connect":
        this.#connect(output.connection, output.address);
        break;
      case "close":
        this.#drop(this.#connections.get(output.connection), output.reason);
        break;
      case "find":
        this.#announces?.wish(runtime.clock.now());
        break;
      case "piece":
        if (role !== "source") this.#pieces.piece(output.header.value, output.chunks);
        break;
      case "skip":
        if (role !== "source") this.#pieces.skip(output.seq);
        break;
      case "stat":
        this.#found(output.stat.relays, "magnet");
        this.addTrackers(output.stat.trackers.map((url) => [url]));
        break;
      case "banned":
        this.#places.bans.add(output.address, runtime.clock.now());
        log.info("peer banned", { peer: addressText(output.address), reason: output.reason });
        break;
      case "forked":
        forked(output.seq);
        break;
    }
  }

  #send({ connection: id, message, priority, expiresAt }: Extract<LiveOutput, { kind: "send" }>): void {
    const connection = this.#connections.get(id);
    if (!connection?.link.isReady) return;
    const now = this.#parts.runtime.clock.now();
    if (message.kind === "chunk" && !message.isLate) connection.gotAt = now;
    if (connection.link.send(message, priority, expiresAt, now)) this.#limit.add(connection);
    else this.#end(connection, "takes nothing from us");
  }

  #connect(id: LiveConnectionId, address: PeerAddress): void {
    const { connections, runtime } = this.#parts;
    const { clock, net } = runtime;
    if (connections.open >= connections.limit || !this.#places.mayCall(address, clock.now())) {
      clock.at(after(clock.now(), NO_CONNECTION_MS), () => {
        this.#input({ kind: "closed", connection: id });
      });
      return;
    }
    const connection = this.#add(id, address, false);
    let socket: TcpSocket | undefined;
    const handlers = this.#handlers(connection, () => socket);
    socket = net.connect(address, handlers, { timeoutMs: CONNECT_TIMEOUT_MS });
    this.#attach(connection, socket);
  }

  #add(id: LiveConnectionId, remote: PeerAddress, isIncoming: boolean): LiveConnection {
    const { info, runtime, connections } = this.#parts;
    const now = runtime.clock.now();
    const waitingBytes = MAX_WAITING_SECONDS * info.bytesPerSecond;
    const queue = new SendQueue({
      controlBytes: MAX_CONTROL_BYTES,
      dataBytes: Math.min(Math.max(waitingBytes, MIN_WAITING_BYTES), MAX_WAITING_BYTES),
    });
    const link = new PeerLink(this.#linkSetup, this.#events, queue, { isIncoming, remote }, now);
    const origin = isIncoming ? "incoming" : this.#places.originOf(remote);
    const connection = new LiveConnection(id, link, origin, now);
    this.#connections.set(id, connection);
    this.#byLink.set(link, connection);
    connections.open++;
    return connection;
  }

  #attach(connection: LiveConnection, socket: TcpSocket): void {
    this.#sockets.add(socket);
    connection.attach(socket);
  }

  #handlers(connection: LiveConnection, socketOf: () => TcpSocket | undefined): TcpHandlers {
    const { clock } = this.#parts.runtime;
    const isHere = () => this.#connections.get(connection.id) === connection;
    let hasOpened = connection.link.isIncoming;
    return {
      opened: () => {
        hasOpened = true;
        if (!isHere()) return;
        this.#places.answered(connection.link.remote);
        connection.link.opened(clock.now());
        this.#limit.add(connection);
        this.#settle();
      },
      received: (bytes) => {
        if (isHere()) this.#received(connection, bytes);
      },
      drained: () => {
        connection.drained(clock.now());
        if (!isHere()) connection.destroy();
        else {
          this.#limit.add(connection);
          this.#settle();
        }
      },
      closed: (reason) => {
        const socket = socketOf();
        if (socket) this.#sockets.delete(socket);
        this.#parts.connections.open--;
        if (this.#sockets.size === 0) this.#allClosed();
        if (!hasOpened) this.#places.failed(connection.link.remote, clock.now());
        if (isHere()) this.#end(connection, reason);
      },
    };
  }

  #received(connection: LiveConnection, bytes: Uint8Array): void {
    const now = this.#parts.runtime.clock.now();
    connection.down.add(bytes.length, now);
    this.#isReading = true;
    try {
      connection.link.received(bytes, now);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      this.#fault(connection, error);
    } finally {
      this.#isReading = false;
    }
    this.#limit.add(connection);
    this.#settle();
  }

  /** It broke the format, which no program does that means well. */
  #fault(connection: LiveConnection, error: DecodeError): void {
    const { log, runtime } = this.#parts;
    const { link } = connection;
    const address = link.listenAddress ?? link.remote;
    this.#places.bans.add(address, runtime.clock.now());
    log.info("peer banned", { peer: addressText(address), reason: error.message });
    this.#end(connection, error.message);
  }

  readonly #events = {
    greeted: (link: PeerLink) => this.#greeted(link),
    ready: (link: PeerLink, about: LiveAbout, rttMs: number) => this.#becameReady(link, about, rttMs),
    heard: (link: PeerLink, message: LiveWord) => this.#heard(link, message),
    told: (_: PeerLink, addresses: readonly PeerAddress[]) => this.#found(addresses, "pex"),
    unfit: (link: PeerLink, reason: string) => this.#end(this.#byLink.get(link), reason),
  };

  /** Why a link is not wanted whose handshake has come. */
  #greeted(link: PeerLink): string | undefined {
    if (link.isOurselves) {
      if (!link.isIncoming) this.#places.isOurs(link.remote);
      return "connected to ourselves";
    }
    for (const [other, connection] of this.#byLink) {
      if (other === link || !other.isSamePeer(link)) continue;
      const isNewKept = other.isIncoming !== link.isIncoming && link.isKeptWhenCrossed;
      if (!isNewKept) return "connected twice";
      this.#end(connection, "connected twice");
    }
    return undefined;
  }

  #becameReady(link: PeerLink, about: LiveAbout, rttMs: number): void {
    const connection = this.#byLink.get(link);
    const now = this.#parts.runtime.clock.now();
    if (!connection) return;
    const { listenAddress } = link;
    if (listenAddress && this.#places.bans.has(listenAddress, now)) {
      this.#end(connection, "banned before");
      return;
    }
    connection.about = about;
    this.#pexAt = earliest(this.#pexAt, after(now, ROUND_MS))!;
    const opened = { connection: connection.id, about, rttMs };
    if (!link.isIncoming) this.#input({ kind: "opened", ...opened });
    else {
      const address = listenAddress ?? link.remote;
      const isReachable = listenAddress !== undefined && this.#places.isReachable(listenAddress, now);
      this.#input({ kind: "accepted", ...opened, address, isReachable });
    }
  }

  #heard(link: PeerLink, message: LiveWord): void {
    const connection = this.#byLink.get(link);
    if (!connection) return;
    if (message.kind === "chunk" && !message.isLate) connection.gaveAt = this.#parts.runtime.clock.now();
    if (message.kind === "cancel") {
      for (const { seq, stripe } of message.chunks) link.queue.cancel(message.epoch, seq, stripe);
    }
    this.#input({ kind: "message", connection: connection.id, message });
  }

  /** The connection is over, and the swarm does not know it yet. */
  #end(connection: LiveConnection | undefined, reason: string): void {
    if (!connection) return;
    this.#drop(connection, reason);
    // Of one who called us and was never ready the swarm has not heard.
    if (connection.about || !connection.link.isIncoming)
      this.#input({ kind: "closed", connection: connection.id });
  }

  #drop(connection: LiveConnection | undefined, reason: string): void {
    if (!connection || !this.#connections.delete(connection.id)) return;
    const { link } = connection;
    this.#parts.log.debug("connection closed", { peer: addressText(link.remote), reason });
    this.#byLink.delete(link);
    this.#limit.remove(connection);
    const { clock } = this.#parts.runtime;
    connection.close(clock.now());
    this.#gone.downloaded += connection.down.total;
    this.#gone.uploaded += connection.up.total;
    clock.at(after(clock.now(), FAREWELL_MS), () => connection.destroy());
  }

  /** Who has said nothing yet keeps nobody out. */
  #makeRoom(): void {
    const unready = [...this.#connections.values()].filter(({ link, about }) => link.isIncoming && !about);
    if (unready.length >= MAX_UNREADY) this.#drop(unready[0], "slower than others to say what it is");
  }

  #ready(): LiveConnection[] {
    return [...this.#connections.values()].filter(({ about }) => about !== undefined);
  }

  #traffic() {
    const traffic = { ...this.#gone, peers: this.#ready().length };
    for (const { down, up } of this.#connections.values()) {
      traffic.downloaded += down.total;
      traffic.uploaded += up.total;
    }
    return traffic;
  }

  /** Sends what may be sent, and sees to it that we are called again. */
  #settle(): void {
    if (this.#isBusy || this.#isReading || this.#state !== "running") return;
    const limitAt = this.#limit.share(this.#parts.runtime.clock.now());
    this.#schedule(limitAt);
  }

  #schedule(limitAt: Instant | undefined): void {
    const { clock } = this.#parts.runtime;
    const next = earliest(earliest(this.#swarm.nextWake(), limitAt), this.#roundAt)!;
    // A timer that comes too early finds that out by itself: only an earlier wish costs a new one.
    if (this.#wakeAt !== undefined && this.#wakeAt <= next) return;
    this.#cancelWake();
    this.#wakeAt = next;
    this.#cancelWake = clock.at(next, () => this.#wake());
  }

  #wake(): void {
    this.#wakeAt = undefined;
    if (this.#state !== "running") return;
    this.#run();
    const now = this.#parts.runtime.clock.now();
    if (now >= this.#roundAt) {
      this.#roundAt = after(now, ROUND_MS);
      this.#round(now);
    }
    this.#settle();
  }

  #wakeIfDue(): void {
    const now = this.#parts.runtime.clock.now();
    const due = this.#swarm.nextWake();
    if (due !== undefined && due <= now) this.#swarm.wake(now);
  }

  /** Looks after the connections. */
  #round(now: Instant): void {
    for (const connection of [...this.#connections.values()]) {
      const overdue = connection.isStalled(now) ? "takes nothing from us" : connection.link.overdue(now);
      if (overdue !== undefined) {
        this.#end(connection, overdue);
        continue;
      }
      const waitMs = connection.waitMs(now);
      if (waitMs > BACKLOG_MS) this.#run({ kind: "backlog", connection: connection.id, waitMs });
    }
    if (now >= this.#pexAt) {
      this.#pexAt = after(now, PEX_ROUND_MS);
      this.#tellPeers(now);
    }
    this.#announces?.round(this.#traffic(), now);
  }

  #tellPeers(now: Instant): void {
    if (!this.#linkSetup.sharesPeers) return;
    const ready = this.#ready();
    const known = this.#places.tellable(
      ready.map(({ link }) => link),
      now,
    );
    for (const connection of ready) {
      connection.link.tellPeers(known, now);
      this.#limit.add(connection);
    }
  }
}
