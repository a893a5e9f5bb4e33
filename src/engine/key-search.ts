import { toHex } from "../base/bytes.ts";
import { DecodeError, SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { ItemName } from "../base/item-name.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import { decodeMutableTorrent } from "../wire/mutable-torrent.ts";
import { deferred } from "./deferred.ts";
import type { Dht } from "./reach/contract.ts";
import { orAborted } from "./segment-cache.ts";

/** What searching takes. */
export interface KeySearchParts {
  readonly clock: Clock;
  /** Undefined: it is off. */
  readonly dht?: Pick<Dht, "getMutable">;
}

/** A player gives up after about 10 s, and wants an answer before. */
const SEARCH_MS = 8_000;
/** What nobody had is asked for again after this: a node that has just begun knows nobody yet. */
const AGAIN_MS = 1_000;
/** Anybody who may play can make us search. */
const MAX_SEARCHES = 4;

/**
 * Asks the DHT where a key leads at present (BEP 46): whoever has it signs an item that says the infohash. A link of that
 * kind stays as it is when the content gets another infohash.
 */
export class KeySearch {
  readonly #parts: KeySearchParts;
  readonly #running = new Map<string, Promise<Infohash>>();
  readonly #closed = new AbortController();

  constructor(parts: KeySearchParts) {
    this.#parts = parts;
  }

  /** The infohash. Rejects with `content_id_unknown` where nobody knows it within 8 s or the DHT is off, with `too_many`, or as
   * the signal says. */
  async find(name: ItemName, signal?: AbortSignal): Promise<Infohash> {
    signal?.throwIfAborted();
    const { dht } = this.#parts;
    if (!dht)
      throw unknown(
        "this magnet names a key, and only the DHT knows where it leads: turn --dht on, or use a link with xt=urn:btih:",
      );
    const id = `${toHex(name.key)} ${toHex(name.salt)}`;
    let search = this.#running.get(id);
    if (!search) {
      if (this.#running.size >= MAX_SEARCHES)
        throw new SluiceError("too_many", `${MAX_SEARCHES} keys are being searched; try again soon`);
      search = this.#search(dht, name).finally(() => this.#running.delete(id));
      this.#running.set(id, search);
    }
    return signal ? orAborted(search, signal) : search;
  }

  /** Ends all searches: they reject with `cancelled`. */
  async close(): Promise<void> {
    this.#closed.abort(new SluiceError("cancelled", "the engine ends"));
    await Promise.allSettled(this.#running.values());
  }

  async #search(dht: Pick<Dht, "getMutable">, name: ItemName): Promise<Infohash> {
    const { clock } = this.#parts;
    const late = new AbortController();
    const nobody = unknown(
      `nobody in the DHT could say within ${SEARCH_MS / 1000} s where the key ${toHex(name.key)} leads: its owner may be gone; try again, or check key and salt (s=, for a live stream 6c697665)`,
    );
    const cancel = clock.at(after(clock.now(), SEARCH_MS), () => late.abort(nobody));
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
    const { clock } = this.#parts;
    for (;;) {
      const item = await orAborted(dht.getMutable(key, salt, signal), signal);
      if (item) return item.value;
      const pause = deferred<void>();
      const cancel = clock.at(after(clock.now(), AGAIN_MS), pause.resolve);
      await orAborted(pause.promise, signal).finally(cancel);
    }
  }
}

function infohashIn(value: Uint8Array): Infohash {
  try {
    return decodeMutableTorrent(value);
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    const message = `what the owner of this key keeps in the DHT names no content (${thrown.message})`;
    throw new SluiceError("content_id_unknown", message, { cause: thrown });
  }
}

function unknown(message: string): SluiceError {
  return new SluiceError("content_id_unknown", message);
}
