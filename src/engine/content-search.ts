import type { PeerAddress } from "../base/address.ts";
import { DecodeError, SluiceError } from "../base/errors.ts";
import { type ContentId, type Infohash, infohashBytes } from "../base/ids.ts";
import { NO_LIMIT } from "../base/rate-limit.ts";
import { after } from "../base/time.ts";
import type { Candidate } from "../swarm/contract.ts";
import { viewBencode } from "../wire/bencode-view.ts";
import { MAX_INFO_BYTES, MAX_TRANSPORT_FILE_BYTES, makeTransportFile } from "../wire/metainfo.ts";
import { makePeerId } from "../wire/peer-id.ts";
import { deferred } from "./deferred.ts";
import { Driver } from "./driver.ts";
import { HeldGoodbyes } from "./held-goodbyes.ts";
import { HomeTrackers } from "./home-trackers.ts";
import { type FileChecks, type KnownFile, readKnownFile } from "./known-file.ts";
import { orAborted } from "./segment-cache.ts";
import type { TransferHouse } from "./transfer-house.ts";

/** A transport file that peers had, and who they are: they have the content, too. */
export interface FoundContent {
  readonly known: KnownFile;
  readonly peers: readonly PeerAddress[];
}

/** What searching takes. */
export interface ContentSearchParts
  extends Pick<
    TransferHouse,
    "runtime" | "announcer" | "finder" | "dht" | "connections" | "random" | "p2pPort" | "makeSwarm" | "log"
  > {
  /** Announce URLs of those trackers that are asked; the owner of this engine named them. */
  readonly trackers: readonly string[];
  /** Whether the finder can find anybody, so that a search is worth its while without trackers too. */
  readonly hasFinder: boolean;
}

/** A player gives up after about 10 s, and wants an answer before. */
const SEARCH_MS = 8_000;
/** Anybody who may play can make us search. */
const MAX_SEARCHES = 4;
/** Finds whose goodbyes are kept until the end; of older ones trackers forget us by themselves, within the hour. */
const MAX_FOUND = 64;

/**
 * Asks peers for the transport file of a content id (live protocol: Identities): who holds it is in the swarm whose infohash
 * is the content id, and whose metadata (BEP 9) is the whole file. Its SHA-1 is the content id, so it cannot be forged.
 */
export class ContentSearch {
  readonly #parts: ContentSearchParts;
  readonly #running = new Map<ContentId, Promise<FoundContent | undefined>>();
  readonly #closed = new AbortController();
  /** What the swarms of those that were found still owe their trackers, oldest first. */
  readonly #owed = new Set<HeldGoodbyes>();

  constructor(parts: ContentSearchParts) {
    this.#parts = parts;
  }

  /** The transport file; undefined where nobody can be asked, or nobody had it in 8 s. An id that is an infohash leads to
   * that content: the metadata is then its info dictionary. Rejects with `too_many`, or as the signal says. */
  async find(contentId: ContentId, signal?: AbortSignal): Promise<FoundContent | undefined> {
    signal?.throwIfAborted();
    const { trackers, hasFinder } = this.#parts;
    if ((trackers.length === 0 && !hasFinder) || this.#closed.signal.aborted) return undefined;
    let search = this.#running.get(contentId);
    if (!search) {
      if (this.#running.size >= MAX_SEARCHES)
        throw new SluiceError("too_many", `${MAX_SEARCHES} content ids are being searched; try again soon`);
      search = this.#search(contentId).finally(() => this.#running.delete(contentId));
      this.#running.set(contentId, search);
    }
    return signal ? orAborted(search, signal) : search;
  }

  /** Ends all searches; resolves when trackers have been told, within seconds. */
  async close(): Promise<void> {
    this.#closed.abort();
    await Promise.all(this.#running.values());
    await Promise.all([...this.#owed].map((goodbyes) => goodbyes.say()));
    this.#owed.clear();
  }

  async #search(contentId: ContentId): Promise<FoundContent | undefined> {
    const { trackers, runtime, finder, log } = this.#parts;
    const { clock } = runtime;
    const ended = deferred<readonly Candidate[]>();
    let file: Uint8Array | undefined;
    const goodbyes = new HeldGoodbyes(this.#parts.announcer, clock);
    const take = (bytes: Uint8Array) => {
      file ??= bytes;
      // Whoever asked opens what was found, and is then in this swarm at the same address and port, as one who gives it.
      goodbyes.hold();
      this.#owe(goodbyes);
    };
    const driver = this.#drive(contentId as string as Infohash, goodbyes, {
      metadata: take,
      ended: (peers) => ended.resolve(peers),
    });
    const end = () => ended.resolve([]);
    const cancel = clock.at(after(clock.now(), SEARCH_MS), end);
    this.#closed.signal.addEventListener("abort", end, { once: true });
    driver.start();
    const leave = finder.join({
      infohash: contentId as string as Infohash,
      announces: false,
      peers: () => driver.figures().connectedPeers,
      found: (addresses, origin) => driver.input({ kind: "found", addresses, origin }),
    });
    const found = new AbortController();
    void this.#askDht(contentId, found.signal).then((item) => {
      if (!item || file) return;
      take(item);
      end();
    });
    const peers = await ended.promise;
    found.abort();
    leave();
    cancel();
    this.#closed.signal.removeEventListener("abort", end);
    const stopped = driver.stop();
    // Its trackers need not be waited for, but when all of us ends.
    if (this.#closed.signal.aborted) await stopped;
    if (!file) return undefined;
    try {
      const known = readFound(file, trackers, runtime);
      return { known, peers: peers.map(({ address }) => address) };
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      log.info("what this content id leads to is of no use", { contentId, reason: thrown.message });
      this.#owed.delete(goodbyes);
      await goodbyes.say();
      return undefined;
    }
  }

  /** The file as an item of the DHT, where it is short enough to be one. Its SHA-1 has been checked. */
  async #askDht(contentId: ContentId, signal: AbortSignal): Promise<Uint8Array | undefined> {
    try {
      return await this.#parts.dht?.get(infohashBytes(contentId as string as Infohash), signal);
    } catch (thrown) {
      if (signal.aborted) return undefined;
      throw thrown;
    }
  }

  #owe(goodbyes: HeldGoodbyes): void {
    this.#owed.add(goodbyes);
    const [oldest] = this.#owed;
    if (oldest && this.#owed.size > MAX_FOUND) this.#owed.delete(oldest);
  }

  /** A swarm that wants the metadata and nothing else: it ends itself as soon as it is there. */
  #drive(
    infohash: Infohash,
    goodbyes: HeldGoodbyes,
    hooks: { metadata(bytes: Uint8Array): void; ended(peers: readonly Candidate[]): void },
  ): Driver {
    const { trackers, runtime, connections, random, p2pPort, makeSwarm, log } = this.#parts;
    const home = new HomeTrackers(goodbyes);
    home.add(trackers);
    const swarm = makeSwarm(
      {
        infohash,
        peerId: makePeerId(runtime.randomBytes(20)),
        readInfo(bytes) {
          hooks.metadata(bytes);
          throw new DecodeError("content id", 0, "all that was wanted");
        },
        trackers: trackers.map((url) => [url]),
        listenPort: p2pPort,
        sha1: runtime.sha1,
        sha256: runtime.sha256,
        random,
        limits: { upload: NO_LIMIT, download: NO_LIMIT, isExempt: () => false },
        buffers: { take: () => undefined, give() {} },
      },
      runtime.clock.now(),
    );
    return new Driver({
      infohash,
      swarm,
      clock: runtime.clock,
      net: runtime.net,
      announcer: home,
      connections,
      log: log.named(infohash.slice(0, 8)),
      hooks: {
        piece() {},
        block: () => undefined,
        metadata() {},
        failed: (_reason, peers) => hooks.ended(peers),
        banned() {},
      },
    });
  }
}

/** A transport file as it is, or one around an info dictionary. Throws `DecodeError`. */
function readFound(bytes: Uint8Array, trackers: readonly string[], checks: FileChecks): KnownFile {
  if (viewBencode(bytes).get("info")) return readKnownFile(bytes, checks);
  const tiers = trackers.map((url) => [url]);
  return readKnownFile(makeTransportFile(bytes, tiers), checks, MAX_TRANSPORT_FILE_BYTES + MAX_INFO_BYTES);
}
