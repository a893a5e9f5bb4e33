import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { CachedContent } from "../storage/cache-contract.ts";
import { titleOf } from "../storage/known-file.ts";
import type { Transfers } from "../transfer/contract.ts";

/** One content of the disk cache. */
interface NamedContent extends CachedContent {
  /** Undefined if its transport file is not stored. */
  readonly name: string | undefined;
}

/** What the disk cache has. */
interface CacheList {
  /** `shared`: another process owns the cache, and only that one knows its content. */
  readonly state: "own" | "shared" | "off";
  /** The largest contents first. */
  readonly contents: readonly NamedContent[];
  /** The number of all contents, of which `contents` may be a part. */
  readonly count: number;
}

/** Lists and removes the content of the disk cache. */
export class CacheDesk {
  readonly #transfers: Pick<Transfers, "cache" | "get" | "knownTransportFile">;

  constructor(transfers: Pick<Transfers, "cache" | "get" | "knownTransportFile">) {
    this.#transfers = transfers;
  }

  /** Returns the `limit` largest contents. */
  async list(limit: number): Promise<CacheList> {
    const { cache } = this.#transfers;
    if (cache?.isOwner !== true)
      return { state: cache === undefined ? "off" : "shared", contents: [], count: 0 };
    const all = cache.contents();
    const contents: NamedContent[] = [];
    for (const content of all.toSorted((a, b) => b.bytes - a.bytes).slice(0, limit))
      contents.push({ ...content, name: await this.#nameOf(content.infohash) });
    return { state: "own", contents, count: all.length };
  }

  /** Returns the verified bytes of each content; undefined if another process owns the cache. */
  sizes(): ReadonlyMap<Infohash, number> | undefined {
    const { cache } = this.#transfers;
    if (cache?.isOwner === false) return undefined;
    return new Map(cache?.contents().map(({ infohash, bytes }) => [infohash, bytes]));
  }

  /** Removes one content. Resolves to the number of freed bytes. Rejects with `bad_parameter` if the content is open or not in the
   * cache, with `bad_configuration` if another process owns the cache. */
  async delete(infohash: Infohash): Promise<number> {
    const found = this.#contents().find((each) => each.infohash === infohash);
    if (found === undefined)
      throw new SluiceError("bad_parameter", "infohash: the disk cache has no such content");
    if (found.isOpen)
      throw new SluiceError("bad_parameter", "infohash: this content is open; stop its transfer first");
    if (found.isKept)
      throw new SluiceError("bad_parameter", "infohash: this content is a download; delete that");
    return this.#remove([found]);
  }

  /** Removes all content that is neither open nor kept. Resolves to the number of freed bytes. Rejects with `bad_configuration` if another process
   * owns the cache. */
  async clear(): Promise<number> {
    return this.#remove(this.#contents().filter(({ isOpen, isKept }) => !isOpen && !isKept));
  }

  #contents(): readonly CachedContent[] {
    const { cache } = this.#transfers;
    if (cache?.isOwner === false)
      throw new SluiceError("bad_configuration", "another engine uses this disk cache; delete content there");
    return cache?.contents() ?? [];
  }

  async #remove(contents: readonly CachedContent[]): Promise<number> {
    return (await this.#transfers.cache?.removeContents(contents.map(({ infohash }) => infohash))) ?? 0;
  }

  async #nameOf(infohash: Infohash): Promise<string | undefined> {
    const open = this.#transfers.get(infohash);
    if (open !== undefined) return open.name;
    const known = await this.#transfers.knownTransportFile(infohash);
    return known && titleOf(known);
  }
}
