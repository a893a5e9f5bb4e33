import { createHash } from "node:crypto";
import { SluiceError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import {
  type EditableMember,
  type Item,
  type ItemChange,
  type ItemDraft,
  type ItemFacts,
  type ItemFigures,
  type ItemOutline,
  type ItemPage,
  type ItemQuery,
  type ItemReader,
  type Items,
  NO_OWNER,
} from "../../src/library/contract.ts";

/** Content of a web server. */
export const WEB_CONTENT = {
  transport: "http",
  contentId: null,
  infohash: null,
  magnet: null,
  url: "http://x/",
} as const;

/** Items in memory. */
export class FakeItems implements Items {
  readonly #items = new Map<number, Item>();
  readonly #now: () => UnixSeconds;
  #next = 1;

  constructor(now: () => UnixSeconds) {
    this.#now = now;
  }

  async get(id: number): Promise<Item | undefined> {
    return this.#items.get(id);
  }

  async query(query: ItemQuery): Promise<ItemPage> {
    return this.#page(query);
  }

  #page(query: ItemQuery): ItemPage {
    const found = [...this.#items.values()].filter((item) => fits(item, query));
    if (query.sort !== "added") found.sort((a, b) => a.title.localeCompare(b.title));
    const { offset = 0, limit = found.length } = query;
    return { total: found.length, items: found.slice(offset, offset + limit) };
  }

  async outline(query: ItemQuery): Promise<ItemOutline[]> {
    return this.#page(query).items.map((item) => {
      const [channel, content] = hashesOf(item);
      const hasInfohash = item.content.infohash !== null;
      return { id: item.id, channel: channel.slice(0, 16), content: content.slice(0, 16), hasInfohash };
    });
  }

  contentHash(infohash: Infohash): string {
    const [item] = [...this.#items.values()].filter(({ content }) => content.infohash === infohash);
    return item ? hashesOf(item)[1] : infohash;
  }

  read(query: ItemQuery): ItemReader {
    let at = query.offset ?? 0;
    return {
      next: async () => {
        const left = (query.limit ?? Number.POSITIVE_INFINITY) - at + (query.offset ?? 0);
        const { items } = await this.query({ ...query, offset: at, limit: Math.min(100, left) });
        at += items.length;
        return items;
      },
    };
  }

  async add(draft: ItemDraft): Promise<Item> {
    const item: Item = {
      owner: NO_OWNER,
      displayTitle: null,
      description: "",
      poster: "",
      category: null,
      subcategory: "",
      tags: [],
      isLive: -1,
      autoSearch: false,
      fileCount: null,
      externalPlaylistId: -1,
      sourceKey: null,
      tvgId: "",
      tvgName: "",
      tvgLogo: "",
      tvgExtra: [],
      httpHeaders: [],
      languages: null,
      countries: null,
      logo: null,
      ...draft,
      id: this.#next++,
      isFavorite: false,
      isEnabled: true,
      isLocked: false,
      deletedAt: null,
      edited: [],
      createdAt: this.#now(),
      updatedAt: this.#now(),
    };
    this.#items.set(item.id, item);
    return item;
  }

  async update(id: number, change: ItemChange): Promise<Item> {
    const before = this.#known(id);
    const edited = [...new Set([...before.edited, ...(Object.keys(change) as EditableMember[])])];
    const item = { ...before, ...change, edited, updatedAt: this.#now() };
    this.#items.set(id, item);
    return item;
  }

  async updateMany(ids: readonly number[], change: ItemChange): Promise<number> {
    for (const id of ids) await this.update(id, change);
    return ids.length;
  }

  async learn(id: number, facts: ItemFacts): Promise<Item> {
    const before = this.#known(id);
    const { infohash = before.content.infohash, contentId = before.content.contentId, ...rest } = facts;
    const item = { ...before, ...rest, content: { ...before.content, infohash, contentId } };
    this.#items.set(id, item);
    return item;
  }

  async otherSources(id: number, limit: number): Promise<readonly Item[]> {
    const others = (await this.group(id)).slice(1).map((other) => this.#known(other));
    return others.filter((item) => item.isEnabled).slice(0, limit);
  }

  figures(item: Item): ItemFigures {
    const isMulti = (item.fileCount ?? 0) > 1;
    const isSwarm = item.content.transport === "bt";
    return {
      hash: hashesOf(item)[0],
      hashV2: hashesOf(item)[1],
      showAutosearch: item.autoSearch,
      isMultiVod: isMulti && item.isLive === 0,
      isMultiTfile: isMulti && isSwarm,
      isWrappedUrl: isSwarm ? 0 : 1,
      icons: [
        ...(item.logo === null ? [] : [{ type: "logo", imageId: item.logo } as const]),
        ...(item.tvgLogo === "" ? [] : [{ type: "logo", url: item.tvgLogo } as const]),
      ],
    };
  }

  async group(id: number): Promise<readonly number[]> {
    const { owner, title } = this.#known(id);
    const others = [...this.#items.values()].filter(
      (item) => item.id !== id && item.owner === owner && item.title === title && item.deletedAt === null,
    );
    return [id, ...others.map((item) => item.id)];
  }

  async delete(ids: readonly number[], owner?: string): Promise<number> {
    const going = ids
      .map((id) => this.#known(id))
      .filter((item) => owner === undefined || item.owner === owner);
    for (const item of going) this.#items.set(item.id, { ...item, deletedAt: this.#now() });
    return going.length;
  }

  async restore(id: number, owner: string): Promise<void> {
    const item = this.#known(id);
    if (item.owner !== owner || item.deletedAt === null)
      throw new SluiceError("unknown_item", `${id} is not in the trash of ${owner}`);
    this.#items.set(id, { ...item, deletedAt: null });
  }

  async clearTrash(owner?: string): Promise<void> {
    for (const item of this.#items.values()) {
      if (item.deletedAt !== null && (owner === undefined || item.owner === owner))
        this.#items.delete(item.id);
    }
  }

  async clear(owner: string): Promise<void> {
    for (const item of this.#items.values()) {
      if (item.owner === owner && item.deletedAt === null) this.#items.delete(item.id);
    }
  }

  #known(id: number): Item {
    const item = this.#items.get(id);
    if (!item) throw new SluiceError("unknown_item", String(id));
    return item;
  }
}

/** 40 hex digits that depend on the text. */
/** Hashes of channel and content. */
function hashesOf({ title, content }: Item): readonly [hash: string, hashV2: string] {
  return [hexOf(title), hexOf(content.infohash ?? content.url ?? "")];
}

function hexOf(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}

function fits(item: Item, query: ItemQuery): boolean {
  const { owner, ids, name, category, subcategory, label, isFavorite, isEnabled, externalPlaylistId, hash } =
    query;
  return (
    (item.deletedAt !== null) === (query.state === "trash") &&
    (owner === undefined || item.owner === owner) &&
    (ids === undefined || ids.includes(item.id)) &&
    (name === undefined || item.title.toLowerCase().includes(name.toLowerCase())) &&
    (category === undefined || item.category === category) &&
    (subcategory === undefined || item.subcategory === subcategory || item.tags.includes(subcategory)) &&
    (label === undefined ||
      [label].flat().some((text) => [item.category, item.subcategory, ...item.tags].includes(text))) &&
    (!query.isSwarm || (item.content.transport === "bt" && item.content.infohash !== null)) &&
    (hash === undefined || hashesOf(item).includes(hash)) &&
    (isFavorite === undefined || item.isFavorite === isFavorite) &&
    (isEnabled === undefined || item.isEnabled === isEnabled) &&
    (externalPlaylistId === undefined || item.externalPlaylistId === externalPlaylistId)
  );
}
