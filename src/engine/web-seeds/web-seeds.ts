import type { PeerAddress } from "../../base/address.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { after } from "../../base/time.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Runtime, TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import type { TransportFile } from "../../wire/metainfo.ts";
import { webSeedPaths } from "../../wire/web-seed-paths.ts";
import { MAX_WEB_SEEDS, type WebSeed } from "../../wire/web-seeds.ts";
import type { SeedFault } from "./seed-fault.ts";
import { SeedMap, type SeedPaths } from "./seed-map.ts";
import { SeedPeer } from "./seed-peer.ts";
import { SeedSource } from "./seed-source.ts";
import type { ServerSlots } from "./server-slots.ts";

/** Web seeds of one content in its swarm at once: each takes a place and connections, and two already fill a line. */
const MAX_JOINED = 4;
/** After the n-th failure in a row a server rests 1 s · 2^n, at most ten minutes: a player waits, and there may be no peers. */
const REST_MS = 1_000;
const MAX_REST_MS = 600_000;
/** Failures in a row, without a block between them, after which a server is given up. */
const MAX_FAILURES = 10;

/** What the web seeds of one content are made of. */
export interface WebSeedsParts {
  readonly infohash: Infohash;
  readonly runtime: Pick<Runtime, "clock" | "randomBytes">;
  readonly outbound: Pick<Outbound, "open">;
  /** Shared by all content. */
  readonly slots: ServerSlots;
  readonly log: Log;
  /** Gives a connection to the swarm, under the name that figures show. */
  readonly accept: (socket: TcpSocket, first: Uint8Array, name: string) => TcpHandlers;
}

/** What is known of one server. */
interface Entry {
  readonly seed: WebSeed;
  readonly mayLeadHome: boolean;
  /** For figures and the log: no path, no credentials. */
  readonly host: string;
  /** Stands for it within the swarm: no real address is like this. */
  readonly address: PeerAddress;
  readonly map: SeedMap;
  readonly source: SeedSource;
  state: "ready" | "joined" | "resting" | "given up";
  failures: number;
  peer: SeedPeer | undefined;
  cancelRest: () => void;
}

/** The web servers that have one content (BEP 17, 19): which of them are in its swarm, which rest, which are of no use. */
export class WebSeeds {
  readonly #parts: WebSeedsParts;
  /** By URL. */
  readonly #entries = new Map<string, Entry>();
  /** Those of links, until it is known what the content is. */
  #early: { readonly seed: WebSeed; readonly mayLeadHome: boolean }[] = [];
  #file: TransportFile | undefined;
  /** Made once there is a web seed. */
  #paths: SeedPaths | undefined;
  #isStopped = false;
  /** Why the last one failed, in words. */
  problem: string | undefined;

  constructor(parts: WebSeedsParts) {
    this.#parts = parts;
  }

  /** More servers; `homeUrls` are those that may be at loopback or private addresses. */
  add(seeds: readonly WebSeed[], homeUrls: readonly string[] = []): void {
    const more = seeds.map((seed) => ({ seed, mayLeadHome: homeUrls.includes(seed.url) }));
    if (this.#file) for (const { seed, mayLeadHome } of more) this.#enter(this.#file, seed, mayLeadHome);
    else this.#early = [...this.#early, ...more].slice(0, MAX_WEB_SEEDS);
    this.#fill();
  }

  /** The content is known, and its swarm runs. */
  begin(file: TransportFile): void {
    this.#file = file;
    for (const { seed, mayLeadHome } of this.#early.splice(0)) this.#enter(file, seed, mayLeadHome);
    for (const seed of file.webSeeds) this.#enter(file, seed, false);
    this.#fill();
  }

  /** The swarm was sent wrong bytes from this address. */
  banned(address: PeerAddress): void {
    for (const entry of this.#entries.values())
      if (entry.address.host === address.host && entry.address.port === address.port)
        this.#giveUp(entry, "it sent bytes that fail verification");
  }

  stop(): void {
    this.#isStopped = true;
    for (const entry of this.#entries.values()) {
      entry.cancelRest();
      entry.peer?.leave(undefined);
    }
  }

  #enter(file: TransportFile, seed: WebSeed, mayLeadHome: boolean): void {
    const known = this.#entries.get(seed.url);
    // Who may ask at home names it again: what was refused then is asked now.
    const isFreed = known !== undefined && known.state === "given up" && mayLeadHome && !known.mayLeadHome;
    if (!isFreed && (known || this.#entries.size >= MAX_WEB_SEEDS)) return;
    const { outbound, slots } = this.#parts;
    this.#paths ??= webSeedPaths(file.infoBytes);
    const map = new SeedMap(file, seed, this.#paths);
    this.#entries.set(seed.url, {
      seed,
      mayLeadHome,
      host: new URL(seed.url).host,
      address: known?.address ?? { host: "0.0.0.0", port: this.#entries.size + 1 },
      map,
      source: new SeedSource({ outbound, slots, map, mayLeadHome }),
      state: "ready",
      failures: 0,
      peer: undefined,
      cancelRest: () => {},
    });
  }

  /** Lets the best join while there is room. */
  #fill(): void {
    if (this.#isStopped || !this.#file) return;
    const entries = [...this.#entries.values()];
    let room = MAX_JOINED - entries.filter(({ state }) => state === "joined").length;
    const ready = entries.filter(({ state }) => state === "ready");
    for (const entry of ready.sort((a, b) => a.failures - b.failures)) if (room-- > 0) this.#join(entry);
  }

  #join(entry: Entry): void {
    const { infohash, runtime, accept } = this.#parts;
    if (entry.map.pieces().count === 0) {
      this.#giveUp(entry, "it has none of the files");
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
      accept: (socket, first) => accept(socket, first, `web seed ${entry.host}`),
      gave: () => {
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
    if (entry.state !== "given up") this.#judge(entry, fault);
    // Never within a call of the swarm, which may have closed the connection just now.
    void Promise.resolve().then(() => this.#fill());
  }

  #judge(entry: Entry, fault: SeedFault | undefined): void {
    const reason = fault?.message ?? "it did not send what it was asked for";
    this.problem = `${entry.host}: ${reason}`;
    entry.failures++;
    if (fault?.fate === "never" || entry.failures > MAX_FAILURES) this.#giveUp(entry, reason);
    else if (fault?.fate === "missing") {
      this.#parts.log.info("a web seed lacks a file", { server: entry.host });
      entry.state = "ready";
    } else this.#rest(entry, fault?.retryMs);
  }

  #rest(entry: Entry, wishMs: number | undefined): void {
    const { clock } = this.#parts.runtime;
    const restMs = Math.max(wishMs ?? 0, Math.min(MAX_REST_MS, REST_MS * 2 ** entry.failures));
    this.#parts.log.info("a web seed rests", { reason: this.problem ?? "", seconds: restMs / 1000 });
    entry.state = "resting";
    entry.cancelRest = clock.at(after(clock.now(), restMs), () => {
      entry.state = "ready";
      this.#fill();
    });
  }

  #giveUp(entry: Entry, reason: string): void {
    if (entry.state === "given up") return;
    entry.state = "given up";
    this.problem = `${entry.host}: ${reason}`;
    this.#parts.log.warn("a web seed is of no use", { server: entry.host, reason });
  }
}
