import { onAbort, orAborted } from "../async/abort.ts";
import { addressScope, canonicalAddress, type PeerAddress } from "../base/address.ts";
import { assert } from "../base/assert.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import { DhtNode } from "../protocol/dht/dht-node.ts";
import type { Files, Runtime } from "../runtime/contract.ts";
import { MAX_ITEM_BYTES, mutableTarget } from "../wire/dht/item.ts";
import type { DhtItem } from "../wire/dht/krpc.ts";
import {
  type DhtState,
  decodeDhtState,
  encodeDhtState,
  MAX_DHT_STATE_BYTES,
} from "../wire/dht/saved-nodes.ts";
import type { Dht, DhtFigures, MutableItem, PeerSearch, SharedUdp, SignedItem } from "./contract.ts";
import { DhtDriver, type TaskRequest } from "./dht-driver.ts";
import { DhtPeerSearch } from "./dht-peer-search.ts";
import { DhtPublisher } from "./dht-publisher.ts";
import { strongRandom } from "./strong-random.ts";

export interface DhtDependencies {
  readonly runtime: Pick<Runtime, "clock" | "files" | "lookup" | "randomBytes" | "sha1" | "ed25519Verifier">;
  readonly udp: Pick<SharedUdp, "port" | "send" | "listen">;
  readonly log: Log;
  /** `host:port` of bootstrap nodes. */
  readonly bootstrap: readonly string[];
  readonly dataDir: string;
  /** Returns the TCP port to announce; 0: none yet. */
  readonly port: () => number;
  /** True if announces use the source port of our datagrams (BEP 5 `implied_port`): uTP works at the port a NAT maps. */
  readonly isImpliedPort: boolean;
  /** True if queries of other nodes cannot arrive (BEP 43). */
  readonly isReadOnly: boolean;
}

/** Interval at which the nodes are saved for the next run. */
const SAVE_MS = 10 * 60_000;
/** Interval of bootstrap attempts while no node responds. */
const BOOTSTRAP_MS = 30_000;
/** With this many saved nodes, the bootstrap nodes are not needed at the start. */
const ENOUGH_SAVED = 20;

/** Starts the DHT node with the nodes that the last run saved. */
export async function startDht(dependencies: DhtDependencies): Promise<RunningDht> {
  const { runtime, log, dataDir } = dependencies;
  return new RunningDht(dependencies, await readState(runtime.files, statePath(dataDir), log));
}

/** The DHT node of this engine. */
export class RunningDht implements Dht {
  readonly #dependencies: DhtDependencies;
  readonly #node: DhtNode;
  readonly #driver: DhtDriver;
  readonly #search: DhtPeerSearch;
  readonly #publisher: DhtPublisher;
  readonly #closed = new AbortController();
  /** The bootstrap nodes that could not be resolved last time, separated by commas. */
  #unresolved = "";
  #cancelSave: () => void = () => {};
  #cancelBootstrap: () => void = () => {};

  constructor(dependencies: DhtDependencies, saved: DhtState | undefined) {
    const { runtime, udp, log, isReadOnly } = dependencies;
    const { clock, sha1 } = runtime;
    this.#dependencies = dependencies;
    const random = strongRandom(runtime.randomBytes);
    const options = {
      families: [4, 6] as const,
      sha1,
      verifierOf: runtime.ed25519Verifier,
      random,
      isReadOnly,
    };
    this.#node = new DhtNode({ ...options, ...(saved && { saved }) }, clock.now());
    const addressSeen = (host: string) => log.info("public address seen by DHT nodes", { address: host });
    this.#driver = new DhtDriver({ node: this.#node, udp, clock, addressSeen });
    this.#search = new DhtPeerSearch({
      driver: this.#driver,
      clock,
      log,
      announcement: () => this.#announcement(),
    });
    this.#publisher = new DhtPublisher({ driver: this.#driver, clock, log });
    const known = saved?.families.reduce((count, { nodes }) => count + nodes.length, 0) ?? 0;
    log.debug("DHT starts", { savedNodes: known });
    if (known < ENOUGH_SAVED) void this.#bootstrap();
    else this.#checkLater();
    this.#saveLater();
  }

  get port(): number {
    return this.#dependencies.udp.port;
  }

  join(search: PeerSearch): () => void {
    const { port } = this.#dependencies;
    // Lookups find our own announce; without the filter the swarm would keep connecting to itself.
    const isOther = (address: PeerAddress) => address.port !== port() || !this.#node.isSeenAt(address.host);
    const found: PeerSearch["found"] = (addresses, origin) => search.found(addresses.filter(isOther), origin);
    return this.#search.join({ ...search, found, peers: () => search.peers() });
  }

  async get(target: Uint8Array, signal?: AbortSignal): Promise<Uint8Array | undefined> {
    const item = await this.#find({ kind: "get", target, signedBy: undefined }, signal);
    return item?.value;
  }

  publish(value: Uint8Array): () => void {
    assert(value.length <= MAX_ITEM_BYTES, `an item of ${value.length} bytes exceeds the limit`);
    return this.#publisher.publish(() => ({ value }));
  }

  async getMutable(
    key: Uint8Array,
    salt: Uint8Array,
    signal?: AbortSignal,
  ): Promise<MutableItem | undefined> {
    const target = mutableTarget(key, salt, this.#dependencies.runtime.sha1);
    const item = await this.#find({ kind: "get", target, signedBy: { key, salt } }, signal);
    return item?.signed && { sequence: item.signed.sequence, value: item.value };
  }

  publishMutable(current: () => SignedItem): () => void {
    return this.#publisher.publish(() => {
      const { value, key, salt, sequence, signature } = current();
      return { value, signed: { key, salt, sequence, signature } };
    });
  }

  addNodes(addresses: readonly PeerAddress[]): void {
    this.#driver.addNodes(addresses);
  }

  addNames(nodes: readonly string[]): void {
    if (nodes.length === 0) return;
    const { runtime, log } = this.#dependencies;
    void resolveNodes(nodes, runtime.lookup).then(({ addresses, failure }) => {
      if (failure) log.debug("cannot resolve DHT nodes of a transport file", { ...failure });
      if (!this.#closed.signal.aborted)
        this.addNodes(addresses.filter(({ host }) => addressScope(host) === "global"));
    });
  }

  figures(): DhtFigures {
    const { nodes4, nodes6, lookups, bytesIn, bytesOut } = this.#node.figures();
    return { nodes4, nodes6, lookups, bytesIn, bytesOut };
  }

  /** Stops the node and saves its state. */
  async close(): Promise<void> {
    this.#closed.abort();
    this.#cancelSave();
    this.#cancelBootstrap();
    this.#driver.stop();
    await this.#save();
  }

  /** Resolves to the last item found when the lookup ends. A fired signal cancels the lookup. */
  async #find(request: TaskRequest, signal: AbortSignal | undefined): Promise<DhtItem | undefined> {
    signal?.throwIfAborted();
    if (this.#closed.signal.aborted) return undefined;
    let cancel = () => {};
    const ended = new Promise<DhtItem | undefined>((resolve) => {
      let latest: DhtItem | undefined;
      cancel = this.#driver.begin(request, {
        item(item) {
          latest = item;
        },
        done: () => resolve(latest),
      });
      onAbort(this.#closed.signal, () => resolve(latest));
    });
    try {
      return await orAborted(ended, signal);
    } finally {
      cancel();
    }
  }

  #announcement() {
    const { port, isImpliedPort, isReadOnly } = this.#dependencies;
    if (isReadOnly || port() === 0) return undefined;
    return { port: isImpliedPort ? 0 : port(), isSeed: false };
  }

  /** Adds the bootstrap nodes, then checks whether any node responds. */
  async #bootstrap(): Promise<void> {
    const { runtime, bootstrap, log } = this.#dependencies;
    const { addresses, failure } = await resolveNodes(bootstrap, runtime.lookup);
    if (this.#closed.signal.aborted) return;
    this.#reportUnresolved(failure, log);
    this.#driver.addNodes(addresses);
    this.#checkLater();
  }

  /** Logs changes only: while offline, the names are resolved every 30 s. */
  #reportUnresolved(failure: ResolvedNodes["failure"], log: Log): void {
    const nodes = failure?.nodes ?? "";
    if (nodes === this.#unresolved) return;
    this.#unresolved = nodes;
    if (failure) log.info("cannot resolve DHT bootstrap nodes; retrying", { ...failure });
    else log.info("all DHT bootstrap nodes are resolved");
  }

  #checkLater(): void {
    const { clock } = this.#dependencies.runtime;
    const { log } = this.#dependencies;
    this.#cancelBootstrap = clock.at(after(clock.now(), BOOTSTRAP_MS), () => {
      const { nodes4, nodes6 } = this.#node.figures();
      log.debug("DHT nodes that respond", { nodes4, nodes6 });
      if (nodes4 + nodes6 === 0) void this.#bootstrap();
    });
  }

  #saveLater(): void {
    const { clock } = this.#dependencies.runtime;
    this.#cancelSave = clock.at(after(clock.now(), SAVE_MS), () => {
      void this.#save();
      this.#saveLater();
    });
  }

  /** Does not overwrite the saved state before any node has responded. */
  async #save(): Promise<void> {
    const { nodes4, nodes6 } = this.#node.figures();
    if (nodes4 + nodes6 > 0) {
      const { runtime, dataDir, log } = this.#dependencies;
      await writeState(runtime.files, statePath(dataDir), this.#node.state(), log);
    }
  }
}

function statePath(dataDir: string): string {
  return `${dataDir}/dht.dat`;
}

/** Reads the state that the last run saved; undefined if there is no usable one. */
async function readState(files: Pick<Files, "read">, path: string, log: Log): Promise<DhtState | undefined> {
  try {
    const bytes = await files.read(path, MAX_DHT_STATE_BYTES);
    return bytes && decodeDhtState(bytes);
  } catch (thrown) {
    // The start only takes a little longer without it.
    log.warn("cannot read the saved DHT nodes", { path, reason: messageOf(thrown) });
    return undefined;
  }
}

async function writeState(
  files: Pick<Files, "replace">,
  path: string,
  state: DhtState,
  log: Log,
): Promise<void> {
  try {
    await files.replace(path, encodeDhtState(state));
  } catch (thrown) {
    log.warn("cannot save the DHT nodes", { path, reason: messageOf(thrown) });
  }
}

/** Result of {@link resolveNodes}. */
interface ResolvedNodes {
  readonly addresses: readonly PeerAddress[];
  /** The `host:port` texts whose names have no address, and the first error; undefined if all names were resolved. */
  readonly failure: { readonly nodes: string; readonly error: string } | undefined;
}

/** Resolves `host:port` texts to addresses. */
async function resolveNodes(
  nodes: readonly string[],
  lookup: (name: string) => Promise<string[]>,
): Promise<ResolvedNodes> {
  const failed: { readonly node: string; readonly error: string }[] = [];
  const found = await Promise.all(
    nodes.map(async (node) => {
      const { host, port } = splitNode(node);
      const literal = canonicalAddress(host);
      if (literal !== undefined) return [{ host: literal, port }];
      try {
        return (await lookup(host)).map((address) => ({ host: address, port }));
      } catch (thrown) {
        failed.push({ node, error: messageOf(thrown) });
        return [];
      }
    }),
  );
  const [first] = failed;
  const names = nodes.filter((node) => failed.some((each) => each.node === node));
  return { addresses: found.flat(), failure: first && { nodes: names.join(","), error: first.error } };
}

/** The settings schema guarantees that a port is present. */
function splitNode(text: string): PeerAddress {
  const colon = text.lastIndexOf(":");
  return { host: text.slice(0, colon).replace(/^\[|\]$/g, ""), port: Number(text.slice(colon + 1)) };
}
