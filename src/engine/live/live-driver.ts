import { addressScope, addressText, type PeerAddress } from "../../base/address.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Machine } from "../../base/machine.ts";
import type { Random } from "../../base/random.ts";
import { after, earliest, type Instant } from "../../base/time.ts";
import type { Runtime, TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import type { SwarmFigures, SwarmLimits } from "../../swarm/contract.ts";
import type { LiveFigures, LiveInput, LiveOutput, LiveSetup } from "../../swarm/live/contract.ts";
import type { LateMedia } from "../../swarm/live/fetched.ts";
import { LiveSwarm } from "../../swarm/live/live-swarm.ts";
import type { SignedHeader, SignedStat } from "../../swarm/live/messages.ts";
import type { PieceHeader } from "../../wire/live-header.ts";
import type { LiveRole } from "../../wire/live-hello.ts";
import type { LiveInfo } from "../../wire/live-info.ts";
import type { ConnectionCount } from "../driver.ts";
import type { DriverAnnouncer } from "../running-announces.ts";
import { WakeTimer } from "../wake-timer.ts";
import type { PieceSink } from "./contract.ts";
import { LiveAnnounces } from "./live-announces.ts";
import { LiveConnections } from "./live-connections.ts";
import { LiveLinks } from "./live-links.ts";
import { LivePlaces } from "./live-places.ts";
import { linkSetup, liveSetup } from "./live-setup.ts";
import { liveSwarmFigures } from "./live-swarm-figures.ts";
import { isBelievable } from "./live-words.ts";
import { OrderedPieces } from "./ordered-pieces.ts";
import { UploadLimit } from "./upload-limit.ts";
import type { LateSwarm, LiveFallback } from "./web-fallback.ts";

/** A live swarm as the driver knows it. */
export interface DrivenLiveSwarm extends Machine<LiveInput, LiveOutput> {
  figures(now: Instant): LiveFigures;
  late(now: Instant): LateMedia;
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
  /** Whether uTP is spoken, over which viewers that nobody can call are met halfway. */
  readonly punches?: boolean;
  /** What is offered to others. */
  readonly uploadBytesPerSecond: number;
  /** What of this stream is sent at most, to all peers together, in bytes a second; 0 for no limit. */
  readonly uploadLimit: number;
  /** What it has of the limits of the engine. */
  readonly limits: SwarmLimits;
  readonly lagMs: number;
  readonly keepMs: number;
  /** Whom alone a private source talks to. Everybody where it is absent. */
  readonly only?: readonly PeerAddress[];
  /** The relays that the source lists, where it is known to have listed them: others that call themselves relays then count
   * as viewers. Where there are none, whoever says so is one. */
  readonly relays?: readonly PeerAddress[];
  /** As the source: another may have begun in the same moment, with the same key and epoch. */
  readonly mayHaveTwin?: boolean;
  readonly connections: ConnectionCount;
  readonly log: Log;
  /** Gets the pieces that come; what a source makes does not come back to it. */
  readonly sink: PieceSink;
  /** The source has signed two pieces of one number; or, where we are the source, another has signed this one. */
  forked(seq: number, header: PieceHeader): void;
  /** A genuine piece is so far ahead of our clock that nothing of it is played; 0 for one that is not. */
  ahead?(minutes: number): void;
  /** Finds elsewhere what peers bring too late. */
  readonly fallback?: (swarm: LateSwarm) => LiveFallback;
  readonly makeSwarm?: (setup: LiveSetup, now: Instant) => DrivenLiveSwarm;
}

/** How often connections are looked after. */
const ROUND_MS = 100;
/** Inputs that wait for the swarm to be done, or to begin. */
const MAX_LATER = 10_000;

/**
 * Drives one live swarm with real sockets and a real clock, as {@link Driver} does for files. What peers say becomes
 * words, what the swarm says becomes bytes, and those go out by urgency.
 */
export class LiveDriver {
  readonly #parts: LiveDriverParts;
  readonly #swarm: DrivenLiveSwarm;
  readonly #links: LiveLinks;
  readonly #announces: LiveAnnounces | undefined;
  readonly #places: LivePlaces;
  readonly #pieces: OrderedPieces;
  readonly #limit: UploadLimit;
  readonly #connections: LiveConnections;
  readonly #fallback: LiveFallback | undefined;
  readonly #later: LiveInput[] = [];
  #state: "new" | "running" | "stopped" = "new";
  /** The swarm is in the middle of an input, or its outputs are being carried out. */
  #isBusy = false;
  #roundAt: Instant;
  readonly #timer: WakeTimer;

  constructor(parts: LiveDriverParts) {
    this.#parts = parts;
    const { clock } = parts.runtime;
    this.#timer = new WakeTimer(clock, () => this.#wake());
    this.#places = new LivePlaces(parts.only, parts.relays);
    const setup = liveSetup(parts, this.#places);
    const make = parts.makeSwarm ?? ((...given) => new LiveSwarm(...given));
    this.#swarm = make(setup, clock.now());
    const { runtime, log, only } = parts;
    this.#connections = new LiveConnections(parts.connections, clock, log);
    this.#pieces = new OrderedPieces(parts.sink);
    this.#limit = new UploadLimit(parts.uploadLimit, parts.limits.upload);
    this.#links = new LiveLinks({
      ...{ clock, net: runtime.net, log, setup: linkSetup(parts, setup.about) },
      ...{ connections: this.#connections, places: this.#places, limit: this.#limit, limits: parts.limits },
      input: (input) => this.#input(input),
      told: (addresses) => this.#found(addresses, "pex"),
      settle: () => this.#settle(),
    });
    // Whom a private source talks to it knows already, and nobody else is to know of it.
    if (!only) {
      const found = (addresses: readonly PeerAddress[]) => this.#found(addresses, "tracker");
      this.#announces = new LiveAnnounces({ ...parts, clock, found });
    }
    this.#fallback = parts.fallback?.({
      late: () => this.#swarm.late(clock.now()),
      give: (found) => this.#input({ kind: "fetched", found }),
    });
    this.#roundAt = clock.now();
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
    const handlers = this.#state === "running" ? this.#links.accept(socket, first) : undefined;
    if (handlers) return handlers;
    socket.close();
    return { received() {}, drained() {}, closed() {} };
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

  /** Sends what the source says besides its pieces. */
  tell(stat: SignedStat): void {
    this.#input({ kind: "stat", stat });
  }

  figures(): LiveFigures {
    return this.#swarm.figures(this.#parts.runtime.clock.now());
  }

  /** What `stat` and the page show. */
  swarmFigures(): SwarmFigures {
    const now = this.#parts.runtime.clock.now();
    const { bans, known } = this.#places;
    const totals = {
      ...this.#connections.traffic(),
      ...{ known, banned: bans.size },
      trackers: this.#announces?.figures(),
      live: this.#swarm.figures(now),
      heldToBytesPerSecond: this.#parts.limits.download.heldToBytesPerSecond(now),
    };
    return liveSwarmFigures(this.#connections.ready(), totals, now);
  }

  /** Addresses of connected peers that can be called, those that we have called ourselves first. */
  reachablePeers(): PeerAddress[] {
    const now = this.#parts.runtime.clock.now();
    const links = this.#connections
      .ready()
      .map(({ link }) => link)
      .sort((a, b) => Number(a.isIncoming) - Number(b.isIncoming));
    return links.flatMap(({ listenAddress }) =>
      listenAddress && this.#places.isReachable(listenAddress, now) ? [listenAddress] : [],
    );
  }

  /**
   * Says goodbye to peers and trackers; resolves when that is done, within seconds. Trackers are told nothing where another swarm
   * follows at this address: those that are away would hold it up, and others might forget that one.
   */
  async stop(isSucceeded = false): Promise<void> {
    if (this.#state === "stopped") return;
    const wasRunning = this.#state === "running";
    if (wasRunning) this.#input({ kind: "stop" });
    this.#state = "stopped";
    this.#timer.stop();
    this.#fallback?.stop();
    const traffic = this.#connections.traffic();
    const says = wasRunning && !isSucceeded;
    await Promise.all([this.#connections.close(), says ? this.#announces?.stop(traffic) : undefined]);
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
        this.#links.send(output);
        break;
      case "connect":
        this.#links.call(output.connection, output.address);
        break;
      case "close":
        this.#links.close(output.connection, output.reason);
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
        this.#places.listRelays(output.stat.relays);
        this.#found(this.#outside(output.stat.relays), "magnet");
        this.addTrackers(output.stat.trackers.map((url) => [url]));
        this.#fallback?.learn(output.stat.manifests ?? []);
        break;
      case "banned":
        this.#places.bans.add(output.address, runtime.clock.now());
        log.info("peer banned", { peer: addressText(output.address), reason: output.reason });
        break;
      case "forked":
        forked(output.seq, output.header);
        break;
    }
  }

  /** A source that is a stranger must not make us knock at doors of our network; who is near may name who else is. */
  #outside(addresses: readonly PeerAddress[]): readonly PeerAddress[] {
    const ready = this.#connections.ready();
    return addresses.filter(
      (address) =>
        addressScope(address.host) === "global" ||
        ready.some(({ link }) => isBelievable(address, link.remote)),
    );
  }

  /** Sends what may be sent, and sees to it that we are called again. */
  #settle(): void {
    if (this.#isBusy || this.#links.isReading || this.#state !== "running") return;
    const limitAt = this.#limit.share(this.#parts.runtime.clock.now());
    this.#timer.want(earliest(earliest(this.#swarm.nextWake(), limitAt), this.#roundAt));
  }

  #wake(): void {
    if (this.#state !== "running") return;
    this.#run();
    const now = this.#parts.runtime.clock.now();
    if (now >= this.#roundAt) {
      this.#roundAt = after(now, ROUND_MS);
      this.#links.round(now);
      this.#announces?.round(this.#connections.traffic(), now);
      this.#fallback?.round(now);
    }
    this.#settle();
  }

  #wakeIfDue(): void {
    const now = this.#parts.runtime.clock.now();
    const due = this.#swarm.nextWake();
    if (due !== undefined && due <= now) this.#swarm.wake(now);
  }
}
