import { orAborted } from "../async/abort.ts";
import { deferred } from "../async/deferred.ts";
import { toHex } from "../base/bytes.ts";
import { DecodeError, SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { ItemName } from "../base/item-name.ts";
import { after } from "../base/time.ts";
import type { Dht } from "../net/contract.ts";
import type { Clock } from "../runtime/contract.ts";
import { decodeMutableTorrent } from "../wire/dht/head-record.ts";

interface Dependencies {
  readonly clock: Clock;
  /** Undefined: the DHT is off. */
  readonly dht?: Pick<Dht, "getMutable">;
}

/** Shorter than the time-out of players, which is about 10 s. */
const SEARCH_MS = 8_000;
/** Delay before the next attempt: a DHT node that has just started knows few others. */
const RETRY_MS = 1_000;
/** Every client that may play can start searches. */
const MAX_SEARCHES = 4;

/**
 * Resolves a public key to an infohash (BEP 46). The owner of the key signs a mutable DHT item that contains the
 * infohash, so the link stays valid when the infohash of the content changes.
 */
export class KeySearch {
  readonly #deps: Dependencies;
  readonly #running = new Map<string, Promise<Infohash>>();
  readonly #closed = new AbortController();

  constructor(deps: Dependencies) {
    this.#deps = deps;
  }

  /** Returns the infohash. Rejects with `content_id_unknown` if the DHT is off or returns no item within 8 s, with
   * `too_many`, or with the reason of `signal`. */
  async find(name: ItemName, signal?: AbortSignal): Promise<Infohash> {
    signal?.throwIfAborted();
    const { dht } = this.#deps;
    if (!dht)
      throw unknown(
        "this magnet link contains a public key, which only the DHT can resolve: turn on --dht, or use a link with xt=urn:btih:",
      );
    const id = `${toHex(name.key)} ${toHex(name.salt)}`;
    let search = this.#running.get(id);
    if (!search) {
      if (this.#running.size >= MAX_SEARCHES)
        throw new SluiceError(
          "too_many",
          `limit of parallel key searches reached (${MAX_SEARCHES}); try again in a few seconds`,
        );
      search = this.#search(dht, name).finally(() => this.#running.delete(id));
      this.#running.set(id, search);
    }
    return orAborted(search, signal);
  }

  /** Ends all searches: they reject with `cancelled`. */
  async close(): Promise<void> {
    this.#closed.abort(new SluiceError("cancelled", "the engine is stopping"));
    await Promise.allSettled(this.#running.values());
  }

  async #search(dht: Pick<Dht, "getMutable">, name: ItemName): Promise<Infohash> {
    const { clock } = this.#deps;
    const late = new AbortController();
    const timeout = unknown(
      `the DHT returned no item for the key ${toHex(name.key)} within ${SEARCH_MS / 1000} s: its owner may be offline; try again, or check the key and the salt (s=, for a live stream 6c697665)`,
    );
    const cancel = clock.at(after(clock.now(), SEARCH_MS), () => late.abort(timeout));
    try {
      return infohashIn(await this.#ask(dht, name, AbortSignal.any([late.signal, this.#closed.signal])));
    } finally {
      cancel();
    }
  }

  async #ask(
    dht: Pick<Dht, "getMutable">,
    { key, salt }: ItemName,
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    const { clock } = this.#deps;
    for (;;) {
      const item = await orAborted(dht.getMutable(key, salt, signal), signal);
      if (item) return item.value;
      const pause = deferred<void>();
      const cancel = clock.at(after(clock.now(), RETRY_MS), pause.resolve);
      await orAborted(pause.promise, signal).finally(cancel);
    }
  }
}

function infohashIn(value: Uint8Array): Infohash {
  try {
    return decodeMutableTorrent(value);
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    const message = `the DHT item of this key contains no infohash (${thrown.message})`;
    throw new SluiceError("content_id_unknown", message, { cause: thrown });
  }
}

function unknown(message: string): SluiceError {
  return new SluiceError("content_id_unknown", message);
}
