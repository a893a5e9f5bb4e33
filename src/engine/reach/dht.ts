import { addressScope, type PeerAddress } from "../../base/address.ts";
import { assert } from "../../base/assert.ts";
import type { Log } from "../../base/log.ts";
import { after } from "../../base/time.ts";
import type { Runtime } from "../../runtime/contract.ts";
import { DhtNode } from "../../swarm/dht/dht-node.ts";
import { MAX_ITEM_BYTES, mutableTarget } from "../../wire/dht-item.ts";
import type { DhtItem } from "../../wire/krpc.ts";
import { orAborted } from "../segment-cache.ts";
import type { Dht, DhtFigures, MutableItem, PeerWish, SharedUdp, SignedItem } from "./contract.ts";
import { resolveNodes } from "./dht-bootstrap.ts";
import { DhtDriver } from "./dht-driver.ts";
import { DhtFile } from "./dht-file.ts";
import { DhtJoins } from "./dht-joins.ts";
import { DhtKeeps } from "./dht-keeps.ts";
import { strongRandom } from "./strong-random.ts";

/** What a DHT node of this machine is made of. */
export interface DhtParts {
  readonly runtime: Pick<Runtime, "clock" | "files" | "lookup" | "randomBytes" | "sha1" | "ed25519Verifier">;
  readonly udp: Pick<SharedUdp, "port" | "send" | "listen">;
  readonly log: Log;
  /** `host:port` of nodes by which a first start finds the others. */
  readonly bootstrap: readonly string[];
  readonly dataDir: string;
  /** The TCP port that others are told; 0: none yet. */
  readonly port: () => number;
  /** Peers may call us at the port that our datagrams come from (uTP): whatever a router makes of it. */
  readonly isImpliedPort: boolean;
  /** Others cannot ask us: their datagrams do not get here. */
  readonly isReadOnly: boolean;
}

/** How often the nodes are kept for the next run. */
const SAVE_MS = 10 * 60_000;
/** How often those of the configuration are asked while nobody answers. */
const BOOTSTRAP_MS = 30_000;
/** With so many nodes of the last run the configured ones are not needed at once. */
const ENOUGH_SAVED = 20;

/** Starts our node of the DHT; resolves when it has read what the last run left. */
export async function startDht(parts: DhtParts): Promise<RunningDht> {
  const { runtime, log, dataDir } = parts;
  const file = new DhtFile(dataDir, runtime.files, log);
  return new RunningDht(parts, file, await file.read());
}

/** Our node of the DHT, as the engine uses it. */
export class RunningDht implements Dht {
  readonly #parts: DhtParts;
  readonly #file: DhtFile;
  readonly #node: DhtNode;
  readonly #driver: DhtDriver;
  readonly #joins: DhtJoins;
  readonly #keeps: DhtKeeps;
  readonly #closed = new AbortController();
  #cancelSave: () => void = () => {};
  #cancelBootstrap: () => void = () => {};

  constructor(parts: DhtParts, file: DhtFile, saved: Awaited<ReturnType<DhtFile["read"]>>) {
    const { runtime, udp, log, isReadOnly } = parts;
    const { clock, sha1 } = runtime;
    this.#parts = parts;
    this.#file = file;
    const random = strongRandom(runtime.randomBytes);
    const setup = {
      families: [4, 6] as const,
      sha1,
      verifierOf: runtime.ed25519Verifier,
      random,
      isReadOnly,
    };
    this.#node = new DhtNode({ ...setup, ...(saved && { saved }) }, clock.now());
    const addressSeen = (host: string) => log.info("others see this machine at", { address: host });
    this.#driver = new DhtDriver({ node: this.#node, udp, clock, addressSeen });
    this.#joins = new DhtJoins({
      driver: this.#driver,
      clock,
      log,
      announcement: () => this.#announcement(),
    });
    this.#keeps = new DhtKeeps({ driver: this.#driver, clock, log });
    const known = saved?.families.reduce((count, { nodes }) => count + nodes.length, 0) ?? 0;
    log.debug("the DHT begins", { known });
    if (known < ENOUGH_SAVED) void this.#bootstrap();
    else this.#lookAround();
    this.#saveLater();
  }

  get port(): number {
    return this.#parts.udp.port;
  }

  join(wish: PeerWish): () => void {
    const { port } = this.#parts;
    // Who has announced himself finds himself: most of those would be called again and again.
    const isOther = (address: PeerAddress) => address.port !== port() || !this.#node.isSeenAt(address.host);
    const found: PeerWish["found"] = (addresses, origin) => wish.found(addresses.filter(isOther), origin);
    return this.#joins.join({ ...wish, found, peers: () => wish.peers() });
  }

  async get(target: Uint8Array, signal?: AbortSignal): Promise<Uint8Array | undefined> {
    const item = await this.#find({ kind: "get", target, signedBy: undefined }, signal);
    return item?.value;
  }

  keep(value: Uint8Array): () => void {
    assert(value.length <= MAX_ITEM_BYTES, `an item of ${value.length} bytes`);
    return this.#keeps.keep(() => ({ value }));
  }

  async getMutable(
    key: Uint8Array,
    salt: Uint8Array,
    signal?: AbortSignal,
  ): Promise<MutableItem | undefined> {
    const target = mutableTarget(key, salt, this.#parts.runtime.sha1);
    const item = await this.#find({ kind: "get", target, signedBy: { key, salt } }, signal);
    return item?.signed && { sequence: item.signed.sequence, value: item.value };
  }

  keepMutable(current: () => SignedItem): () => void {
    return this.#keeps.keep(() => {
      const { value, key, salt, sequence, signature } = current();
      return { value, signed: { key, salt, sequence, signature } };
    });
  }

  addNodes(addresses: readonly PeerAddress[]): void {
    this.#driver.addNodes(addresses);
  }

  addNames(nodes: readonly string[]): void {
    if (nodes.length === 0) return;
    const { runtime, log } = this.#parts;
    void resolveNodes(nodes, runtime.lookup, log).then((addresses) => {
      if (!this.#closed.signal.aborted)
        this.addNodes(addresses.filter(({ host }) => addressScope(host) === "global"));
    });
  }

  figures(): DhtFigures {
    const { nodes4, nodes6, lookups, bytesIn, bytesOut } = this.#node.figures();
    return { nodes4, nodes6, lookups, bytesIn, bytesOut };
  }

  /** Keeps what the next run shall begin with, and says no more. */
  async close(): Promise<void> {
    this.#closed.abort();
    this.#cancelSave();
    this.#cancelBootstrap();
    this.#driver.stop();
    await this.#save();
  }

  /** The last item that comes, when all have; whoever gives up ends the search. */
  async #find(
    wish: Parameters<DhtDriver["begin"]>[0],
    signal: AbortSignal | undefined,
  ): Promise<DhtItem | undefined> {
    signal?.throwIfAborted();
    if (this.#closed.signal.aborted) return undefined;
    let cancel = () => {};
    const ended = new Promise<DhtItem | undefined>((resolve) => {
      let latest: DhtItem | undefined;
      cancel = this.#driver.begin(wish, {
        item(item) {
          latest = item;
        },
        done: () => resolve(latest),
      });
      this.#closed.signal.addEventListener("abort", () => resolve(latest), { once: true });
    });
    try {
      return await (signal ? orAborted(ended, signal) : ended);
    } finally {
      cancel();
    }
  }

  #announcement() {
    const { port, isImpliedPort, isReadOnly } = this.#parts;
    if (isReadOnly || port() === 0) return undefined;
    return { port: isImpliedPort ? 0 : port(), isSeed: false };
  }

  /** Asks the configured nodes, then sees whether anybody answered. */
  async #bootstrap(): Promise<void> {
    const { runtime, bootstrap, log } = this.#parts;
    const addresses = await resolveNodes(bootstrap, runtime.lookup, log);
    if (this.#closed.signal.aborted) return;
    this.#driver.addNodes(addresses);
    this.#lookAround();
  }

  #lookAround(): void {
    const { clock } = this.#parts.runtime;
    const { log } = this.#parts;
    this.#cancelBootstrap = clock.at(after(clock.now(), BOOTSTRAP_MS), () => {
      const { nodes4, nodes6 } = this.#node.figures();
      log.debug("nodes of the DHT that answer", { nodes4, nodes6 });
      if (nodes4 + nodes6 === 0) void this.#bootstrap();
    });
  }

  #saveLater(): void {
    const { clock } = this.#parts.runtime;
    this.#cancelSave = clock.at(after(clock.now(), SAVE_MS), () => {
      void this.#save();
      this.#saveLater();
    });
  }

  /** What nobody answered is not written over what was known before. */
  async #save(): Promise<void> {
    const { nodes4, nodes6 } = this.#node.figures();
    if (nodes4 + nodes6 > 0) await this.#file.write(this.#node.state());
  }
}
