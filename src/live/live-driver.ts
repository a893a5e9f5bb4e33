import { WakeTimer } from "../async/wake-timer.ts";
import { addressScope, addressText, type PeerAddress } from "../base/address.ts";
import { after, earliest, type Instant } from "../base/time.ts";
import type { LiveFigures, LiveInput, LiveOutput } from "../protocol/live/contract.ts";
import { isPlausibleAddress } from "../protocol/live/live-codec.ts";
import { LiveSwarm } from "../protocol/live/live-swarm.ts";
import type { SignedHeader, SignedStat } from "../protocol/live/messages.ts";
import type { SwarmFigures, TrackerFigures } from "../protocol/swarm/contract.ts";
import { NO_FIGURES } from "../protocol/swarm/figures.ts";
import type { TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import type { UploadAllowance } from "../transfer/piece-segments.ts";
import type { PieceSink } from "./contract.ts";
import { LiveAddresses } from "./live-addresses.ts";
import { LiveAnnounces } from "./live-announces.ts";
import type { LiveConnection } from "./live-connection.ts";
import { LiveConnections } from "./live-connections.ts";
import { LiveLinks } from "./live-links.ts";
import { type DrivenLiveSwarm, type LiveDriverOptions, linkSetup, liveSetup } from "./live-setup.ts";
import { UploadLimit } from "./upload-limit.ts";
import type { LiveFallback } from "./web-fallback/web-fallback.ts";

/** Interval of the maintenance of connections. */
const ROUND_MS = 100;
/** The history: what viewers of shared HLS may still need when another engine has served them until now. One peer does not send more
 * at once (`STREAM_BURST_MS`), and drops the oldest pieces of those that it keeps while they are requested. */
const HISTORY_SEGMENTS = 3.5;
const HISTORY_MS = 7_000;
const KEEP_MARGIN_MS = 2_000;
/** Limit of inputs that wait until the swarm is ready. */
const MAX_PENDING = 10_000;

/** Drives one live swarm with sockets and a clock, as {@link Driver} does for files: received bytes become inputs of
 * the swarm, and its outputs become bytes that are sent by priority. */
export class LiveDriver {
  readonly #options: LiveDriverOptions;
  readonly #swarm: DrivenLiveSwarm;
  readonly #links: LiveLinks;
  readonly #announces: LiveAnnounces | undefined;
  readonly #addresses: LiveAddresses;
  readonly #pieces: OrderedPieces;
  readonly #uploadLimit: UploadLimit;
  readonly #connections: LiveConnections;
  readonly #fallback: LiveFallback | undefined;
  readonly #pending: LiveInput[] = [];
  #state: "new" | "running" | "stopped" = "new";
  /** The swarm is handling an input, or its outputs are being executed. */
  #isBusy = false;
  #roundAt: Instant;
  readonly #timer: WakeTimer;

  constructor(options: LiveDriverOptions) {
    this.#options = options;
    const { clock } = options.runtime;
    this.#timer = new WakeTimer(clock, () => this.#wake());
    this.#addresses = new LiveAddresses(options.only, options.relays);
    const setup = liveSetup(options, this.#addresses);
    const make = options.makeSwarm ?? ((...given) => new LiveSwarm(...given));
    this.#swarm = make(setup, clock.now());
    const { runtime, log, only } = options;
    this.#connections = new LiveConnections(options.connections, clock, log);
    this.#pieces = new OrderedPieces(options.sink);
    this.#uploadLimit = new UploadLimit(options.uploadLimit, options.limits.upload);
    this.#links = new LiveLinks({
      ...{ clock, net: runtime.net, log, setup: linkSetup(options, setup.about) },
      ...{
        connections: this.#connections,
        addresses: this.#addresses,
        limit: this.#uploadLimit,
        limits: options.limits,
      },
      input: (input) => this.#input(input),
      mayAdmit: (address) => this.#swarm.mayAdmit(address),
      peersReceived: (addresses) => this.#found(addresses, "pex"),
      flush: () => this.#flush(),
    });
    // A private source knows its peers already, and must not be announced.
    if (!only) {
      const found = (addresses: readonly PeerAddress[]) => this.#found(addresses, "tracker");
      this.#announces = new LiveAnnounces({ ...options, clock, found });
    }
    this.#fallback = options.fallback?.({
      late: () => this.#swarm.late(clock.now()),
      give: (found) => this.#input({ kind: "fetched", found }),
    });
    this.#roundAt = clock.now();
  }

  /** Returns the limits of what is sent to `host` outside its connection; undefined if none apply. */
  uploadAllowance(host: string): UploadAllowance | undefined {
    return this.#options.limits.isExempt(host) ? undefined : this.#uploadLimit;
  }

  /** Starts. Before that, no connection is made or accepted. */
  start(): void {
    if (this.#state !== "new") return;
    this.#state = "running";
    const { only } = this.#options;
    if (only) this.#found(only, "magnet");
    for (const input of this.#pending.splice(0)) this.#run(input);
    this.#wake();
  }

  /** Takes over an incoming connection whose handshake `first` has been read. */
  accept(socket: TcpSocket, first: Uint8Array | undefined): TcpHandlers {
    const handlers = this.#state === "running" ? this.#links.accept(socket, first) : undefined;
    if (handlers) return handlers;
    socket.close();
    return { received() {}, drained() {}, closed() {} };
  }

  /** Adds addresses of possible peers. */
  found(addresses: readonly PeerAddress[]): void {
    this.#found(addresses, "magnet");
  }

  /** From the next start on, playback begins some segments before the head, if peers have them. */
  fetchHistory(): void {
    const { info, keepMs } = this.#options;
    const ms = Math.min(HISTORY_SEGMENTS * info.segmentMs, HISTORY_MS, keepMs - KEEP_MARGIN_MS);
    this.#input({ kind: "history", ms });
  }

  addTrackers(tiers: readonly (readonly string[])[]): void {
    this.#announces?.add(tiers);
  }

  /** Sends a piece that the source has made and signed. */
  produce(header: SignedHeader, chunks: readonly Uint8Array[]): void {
    this.#input({ kind: "produced", header, chunks });
  }

  /** Sends a STAT of the source. */
  tell(stat: SignedStat): void {
    this.#input({ kind: "stat", stat });
  }

  /** Handles a successor record that was found outside the swarm. */
  succeed(record: Uint8Array): void {
    this.#input({ kind: "successor", record });
  }

  /** Sets whether the stream has no player: then it keeps connections for a quick return, and receives nothing. */
  setIdle(isIdle: boolean): void {
    if (this.#state === "stopped") return;
    this.#links.setIdle(isIdle);
    this.#input({ kind: "idle", isIdle });
  }

  /** Sets the upload that is offered to peers from now on, in bytes per second; 0 ends the service of all children. */
  offer(uploadBytesPerSecond: number): void {
    this.#input({ kind: "offer", uploadBytesPerSecond });
  }

  figures(): LiveFigures {
    return this.#swarm.figures(this.#options.runtime.clock.now());
  }

  /** Returns the figures for `stat` and the page. */
  swarmFigures(): SwarmFigures {
    const now = this.#options.runtime.clock.now();
    const { bans, known } = this.#addresses;
    const totals = {
      ...this.#connections.traffic(),
      ...{ known, banned: bans.size },
      trackers: this.#announces?.figures(),
      live: this.#swarm.figures(now),
      limitedToBytesPerSecond: this.#options.limits.download.limitedToBytesPerSecond(now),
    };
    return liveSwarmFigures(this.#connections.ready(), totals, now);
  }

  /** Returns the addresses of connected peers that accept connections, those that we connected to first. */
  reachablePeers(): PeerAddress[] {
    const now = this.#options.runtime.clock.now();
    const links = this.#connections
      .ready()
      .map(({ link }) => link)
      .sort((a, b) => Number(a.isIncoming) - Number(b.isIncoming));
    return links.flatMap(({ listenAddress }) =>
      listenAddress && this.#addresses.isReachable(listenAddress, now) ? [listenAddress] : [],
    );
  }

  /**
   * Closes the swarm; resolves when peers and trackers have been notified, within seconds. With `isSucceeded`,
   * another swarm follows at this address, and trackers are not notified: unreachable ones would delay it, others
   * might drop its entry.
   */
  async stop(isSucceeded = false): Promise<void> {
    if (this.#state === "stopped") return;
    const wasRunning = this.#state === "running";
    if (wasRunning) this.#input({ kind: "stop" });
    this.#state = "stopped";
    this.#links.setIdle(false);
    this.#timer.stop();
    this.#fallback?.stop();
    const traffic = this.#connections.traffic();
    const isAnnounced = wasRunning && !isSucceeded;
    await Promise.all([this.#connections.close(), isAnnounced ? this.#announces?.stop(traffic) : undefined]);
  }

  #found(addresses: readonly PeerAddress[], origin: "tracker" | "magnet" | "pex"): void {
    const allowed = this.#addresses.found(addresses, origin, this.#options.runtime.clock.now());
    if (allowed.length > 0) this.#input({ kind: "found", addresses: allowed });
  }

  /** Passes one input to the swarm and executes all outputs; messages to peers are sent at the end. */
  #input(input: LiveInput): void {
    if (this.#state === "stopped") return;
    if (this.#isBusy || this.#state === "new") {
      if (this.#pending.length < MAX_PENDING) this.#pending.push(input);
      return;
    }
    this.#run(input);
    this.#flush();
  }

  #run(input?: LiveInput): void {
    const { clock } = this.#options.runtime;
    this.#isBusy = true;
    try {
      if (input) this.#swarm.handle(input, clock.now());
      else this.#wakeIfDue();
      for (;;) {
        for (let output = this.#swarm.poll(); output; output = this.#swarm.poll()) this.#execute(output);
        const next = this.#pending.shift();
        if (next === undefined) break;
        this.#swarm.handle(next, clock.now());
      }
    } finally {
      this.#isBusy = false;
    }
  }

  #execute(output: LiveOutput): void {
    const { log, role, forked, runtime } = this.#options;
    switch (output.kind) {
      case "send":
        this.#links.send(output);
        break;
      case "connect":
        this.#links.connect(output.connection, output.address);
        break;
      case "close":
        this.#links.close(output.connection, output.reason);
        break;
      case "find":
        this.#announces?.requestPeers(runtime.clock.now());
        break;
      case "piece":
        if (role !== "source") this.#pieces.piece(output.header, output.chunks);
        break;
      case "skip":
        if (role !== "source") this.#pieces.skip(output.seq);
        break;
      case "stat":
        this.#addresses.listRelays(output.stat.relays);
        this.#found(this.#plausible(output.stat.relays), "magnet");
        this.addTrackers(output.stat.trackers.map((url) => [url]));
        this.#fallback?.learn(output.stat.manifests ?? []);
        this.#options.stated?.(output.stat);
        break;
      case "moved":
        this.#options.moved?.(output.successor);
        break;
      case "banned":
        this.#addresses.bans.add(output.address, runtime.clock.now(), output.forMs);
        log.info("peer banned", { peer: addressText(output.address), reason: output.reason });
        break;
      case "forked":
        forked(output.seq, output.header);
        break;
    }
  }

  /** Removes local addresses, unless a peer of the same network is connected: an unknown source must not make this
   * machine connect to local hosts. */
  #plausible(addresses: readonly PeerAddress[]): readonly PeerAddress[] {
    const ready = this.#connections.ready();
    return addresses.filter(
      (address) =>
        addressScope(address.host) === "global" ||
        ready.some(({ link }) => isPlausibleAddress(address, link.remote)),
    );
  }

  /** Sends what the limits allow, and schedules the next wake-up. */
  #flush(): void {
    if (this.#isBusy || this.#links.isReading || this.#state !== "running") return;
    const limitAt = this.#uploadLimit.share(this.#options.runtime.clock.now());
    this.#timer.want(earliest(earliest(this.#swarm.nextWake(), limitAt), this.#roundAt));
  }

  #wake(): void {
    if (this.#state !== "running") return;
    this.#run();
    const now = this.#options.runtime.clock.now();
    if (now >= this.#roundAt) {
      this.#roundAt = after(now, ROUND_MS);
      this.#links.round(now);
      this.#announces?.round(this.#connections.traffic(), now);
      this.#fallback?.round(now);
    }
    this.#flush();
  }

  #wakeIfDue(): void {
    const now = this.#options.runtime.clock.now();
    const due = this.#swarm.nextWake();
    if (due !== undefined && due <= now) this.#swarm.wake(now);
  }
}

/** Totals besides the connections, in bytes. */
interface LiveSwarmTotals {
  readonly downloaded: number;
  readonly uploaded: number;
  /** The number of known, and of banned addresses. */
  readonly known: number;
  readonly banned: number;
  /** Undefined if the stream has no trackers. */
  readonly trackers: TrackerFigures | undefined;
  readonly live: LiveFigures;
  /** See {@link SwarmFigures}. */
  readonly limitedToBytesPerSecond: number;
}

/** Returns the figures of a live swarm, with its ready peers, in the common form of all swarms. */
function liveSwarmFigures(
  ready: readonly LiveConnection[],
  totals: LiveSwarmTotals,
  now: Instant,
): SwarmFigures {
  const peers = ready.map((connection) => connection.figures(now));
  const { live, known, banned, trackers } = totals;
  return {
    ...NO_FIGURES,
    connectedPeers: peers.length,
    knownCandidates: known,
    unchokedByPeers: live.parents,
    seeds: ready.filter(({ about }) => about && about.role !== "viewer").length,
    bytesPerSecondDown: peers.reduce((sum, peer) => sum + peer.bytesPerSecondDown, 0),
    bytesPerSecondUp: peers.reduce((sum, peer) => sum + peer.bytesPerSecondUp, 0),
    downloaded: totals.downloaded,
    uploaded: totals.uploaded,
    wasted: live.duplicateBytes,
    hasMetadata: true,
    limitedToBytesPerSecond: totals.limitedToBytesPerSecond,
    bannedPeers: banned,
    trackers: trackers ?? NO_FIGURES.trackers,
    peers,
  };
}

/** Orders the pieces of the swarm for a sink: each number once, ascending, with a connect when the source restarts or
 * numbers are skipped. The swarm itself may start again at another place. */
export class OrderedPieces {
  readonly #sink: PieceSink;
  #epoch: number | undefined;
  #nextSeq = 0;

  constructor(sink: PieceSink) {
    this.#sink = sink;
  }

  piece({ value, bytes }: SignedHeader, chunks: readonly Uint8Array[]): void {
    const { epoch, seq } = value;
    const isFirst = epoch !== this.#epoch;
    if (isFirst && this.#epoch !== undefined) this.#sink.restarted();
    this.#epoch = epoch;
    if (!isFirst && seq < this.#nextSeq) return;
    // One connect for all of them: after a long outage there may be thousands.
    if (!isFirst && seq > this.#nextSeq) this.#sink.skip(seq - 1);
    this.#nextSeq = seq + 1;
    this.#sink.piece(value, chunks, bytes);
  }

  /** Reports a missing piece. Before the first piece, none can be missing. */
  skip(seq: number): void {
    if (this.#epoch === undefined || seq < this.#nextSeq) return;
    this.#nextSeq = seq + 1;
    this.#sink.skip(seq);
  }
}
