import type { PeerAddress } from "../../base/address.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { after } from "../../base/time.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Runtime, TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import type { TransportFile } from "../../wire/torrent/metainfo.ts";
import { webSeedPaths } from "../../wire/torrent/web-seed-paths.ts";
import { MAX_WEB_SEEDS, type WebSeed } from "../../wire/torrent/web-seeds.ts";
import type { SeedFault } from "./seed-fault.ts";
import { type SeedLayout, SeedMap, type SeedPaths } from "./seed-map.ts";
import { SeedPeer } from "./seed-peer.ts";
import { SeedSource, type SignUrl } from "./seed-source.ts";
import type { ServerSlots } from "./server-slots.ts";

/** Web seeds of one content in its swarm at a time: each uses a peer slot and connections, and two usually saturate the line. */
const MAX_JOINED = 4;
/** After the n-th consecutive failure a server is not used for 1 s · 2^n, at most ten minutes: short, because a player may wait. */
const BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 600_000;
/** Consecutive failures without a delivered block after which a server is not used any more. */
const MAX_FAILURES = 10;

/** Dependencies of {@link WebSeeds}. */
export interface WebSeedsDependencies {
  readonly infohash: Infohash;
  readonly runtime: Pick<Runtime, "clock" | "randomBytes">;
  readonly outbound: Pick<Outbound, "open">;
  /** Shared by all content. */
  readonly slots: ServerSlots;
  readonly log: Log;
  /** Passes a connection to the swarm, under the name that figures show. */
  readonly accept: (socket: TcpSocket, first: Uint8Array, name: string) => TcpHandlers;
}

/** The state of one server. */
interface Entry {
  readonly kind: "web seed" | "bucket";
  readonly allowPrivate: boolean;
  /** For figures and the log: without path and credentials. */
  readonly host: string;
  /** Represents it within the swarm; not a real address. */
  readonly address: PeerAddress;
  readonly map: SeedLayout;
  readonly source: SeedSource;
  state: "ready" | "joined" | "waiting" | "dropped";
  failures: number;
  peer: SeedPeer | undefined;
  cancelWait: () => void;
}

/** The web seeds of one content (BEP 17, 19): chooses which of them are in its swarm and retries failed ones. */
export class WebSeeds {
  readonly #dependencies: WebSeedsDependencies;
  /** By URL; the bucket by its kind. */
  readonly #entries = new Map<string, Entry>();
  /** Web seeds of links, until the content is known. */
  #pending: { readonly seed: WebSeed; readonly allowPrivate: boolean }[] = [];
  #file: TransportFile | undefined;
  /** Computed for the first web seed. */
  #paths: SeedPaths | undefined;
  #isStopped = false;
  /** Host and reason of the last failure. */
  problem: string | undefined;

  constructor(dependencies: WebSeedsDependencies) {
    this.#dependencies = dependencies;
  }

  /** Adds web seeds; those with `localUrls` may have loopback or private addresses. */
  add(seeds: readonly WebSeed[], localUrls: readonly string[] = []): void {
    const more = seeds.map((seed) => ({ seed, allowPrivate: localUrls.includes(seed.url) }));
    if (this.#file) for (const { seed, allowPrivate } of more) this.#addEntry(this.#file, seed, allowPrivate);
    else this.#pending = [...this.#pending, ...more].slice(0, MAX_WEB_SEEDS);
    this.#joinReady();
  }

  /** Starts to use the web seeds: the content is known and its swarm runs. */
  begin(file: TransportFile): void {
    this.#file = file;
    for (const { seed, allowPrivate } of this.#pending.splice(0)) this.#addEntry(file, seed, allowPrivate);
    for (const seed of file.webSeeds) this.#addEntry(file, seed, false);
    this.#joinReady();
  }

  /** Uses a bucket with single pieces as another web seed; `sign` authenticates its requests. */
  addBucket(map: SeedLayout, sign: SignUrl): void {
    this.#setEntry("bucket", map, true, sign);
    this.#joinReady();
  }

  /** The bucket has one more piece. */
  bucketHas(piece: number): void {
    for (const { kind, peer } of this.#entries.values()) if (kind === "bucket") peer?.have(piece);
    this.#joinReady();
  }

  /** Drops the web seed with this address, because it sent corrupt data. */
  banned(address: PeerAddress): void {
    for (const entry of this.#entries.values()) {
      if (entry.address.host !== address.host || entry.address.port !== address.port) continue;
      this.#drop(entry, "it sent corrupt data");
      // Pieces of peers replace its objects.
      if (entry.kind === "bucket")
        for (let piece = 0; piece < this.#file!.info.pieceCount; piece++) entry.map.markMissing(piece);
    }
  }

  stop(): void {
    this.#isStopped = true;
    for (const entry of this.#entries.values()) {
      entry.cancelWait();
      entry.peer?.leave(undefined);
    }
  }

  #addEntry(file: TransportFile, seed: WebSeed, allowPrivate: boolean): void {
    const known = this.#entries.get(seed.url);
    // A client on this host names it again: private addresses are allowed now.
    const isNowAllowed =
      known !== undefined && known.state === "dropped" && allowPrivate && !known.allowPrivate;
    if (!isNowAllowed && (known || this.#entries.size >= MAX_WEB_SEEDS)) return;
    this.#paths ??= webSeedPaths(file.infoBytes);
    this.#setEntry("web seed", new SeedMap(file, seed, this.#paths), allowPrivate);
  }

  #setEntry(kind: Entry["kind"], map: SeedLayout, allowPrivate: boolean, sign?: SignUrl): void {
    const { outbound, slots } = this.#dependencies;
    const { url } = map.seed;
    // Not the URL, which a transport file can name too.
    const key = kind === "bucket" ? kind : url;
    this.#entries.set(key, {
      kind,
      allowPrivate,
      host: new URL(url).host,
      address: this.#entries.get(key)?.address ?? { host: "0.0.0.0", port: this.#entries.size + 1 },
      map,
      source: new SeedSource({ outbound, slots, map, allowPrivate, sign }),
      state: "ready",
      failures: 0,
      peer: undefined,
      cancelWait: () => {},
    });
  }

  /** Lets the servers with the fewest failures join, up to the limit. */
  #joinReady(): void {
    if (this.#isStopped || !this.#file) return;
    const entries = [...this.#entries.values()];
    let free = MAX_JOINED - entries.filter(({ state }) => state === "joined").length;
    const ready = entries.filter(({ state }) => state === "ready");
    for (const entry of ready.sort((a, b) => a.failures - b.failures)) if (free-- > 0) this.#join(entry);
  }

  #join(entry: Entry): void {
    const { infohash, runtime, accept } = this.#dependencies;
    if (entry.map.pieces().count === 0) {
      if (entry.kind === "web seed") this.#drop(entry, "it has none of the files");
      return;
    }
    entry.state = "joined";
    const peer = new SeedPeer({
      infohash,
      peerId: runtime.randomBytes(20),
      address: entry.address,
      clock: runtime.clock,
      map: entry.map,
      source: entry.source,
      accept: (socket, first) => accept(socket, first, `${entry.kind} ${entry.host}`),
      delivered: () => {
        entry.failures = 0;
      },
      left: (fault) => this.#left(entry, fault),
    });
    entry.peer = peer;
    peer.join();
  }

  #left(entry: Entry, fault: SeedFault | undefined): void {
    entry.peer = undefined;
    if (this.#isStopped) return;
    if (entry.state !== "dropped") this.#handleFailure(entry, fault);
    // Not during a call of the swarm, which may be closing this connection.
    void Promise.resolve().then(() => this.#joinReady());
  }

  #handleFailure(entry: Entry, fault: SeedFault | undefined): void {
    const reason = fault?.message ?? "it did not send the requested data";
    this.problem = `${entry.host}: ${reason}`;
    entry.failures++;
    if (fault?.retry === "never" || entry.failures > MAX_FAILURES) this.#drop(entry, reason);
    else if (fault?.retry === "missing") {
      this.#dependencies.log.info(`${entry.kind} lacks a file`, { server: entry.host });
      entry.state = "ready";
    } else this.#wait(entry, fault?.retryMs);
  }

  #wait(entry: Entry, requestedMs: number | undefined): void {
    const { clock } = this.#dependencies.runtime;
    const waitMs = Math.max(requestedMs ?? 0, Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** entry.failures));
    this.#dependencies.log.info(`${entry.kind} failed; it is tried again later`, {
      reason: this.problem ?? "",
      seconds: waitMs / 1000,
    });
    entry.state = "waiting";
    entry.cancelWait = clock.at(after(clock.now(), waitMs), () => {
      entry.state = "ready";
      this.#joinReady();
    });
  }

  #drop(entry: Entry, reason: string): void {
    if (entry.state === "dropped") return;
    entry.state = "dropped";
    this.problem = `${entry.host}: ${reason}`;
    this.#dependencies.log.warn(`${entry.kind} is not used any more`, { server: entry.host, reason });
  }
}
