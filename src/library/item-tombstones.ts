import { toHex } from "../base/bytes.ts";
import type { Sha1 } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { MAX_COMMIT_KEYS } from "../base/store-limits.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import { MAX_TOMBSTONES } from "./limits.ts";

/** All keys of tombstones begin so. */
export const TOMBSTONE_PREFIX = "gone/";
const KEY = /^gone\/([0-9]{10})\/([0-9a-f]{40})$/;

/**
 * What the user deleted for good while a source goes on listing it. CHOICE(deleted-for-good): it does not come back, until
 * the source has dropped it, or the external playlist is added anew.
 */
export class Tombstones {
  readonly #sha1: Sha1;
  readonly #log: Log;
  /** By external playlist: the hash of each source key, and whether this pass over the source has come by it. */
  readonly #playlists = new Map<number, Map<string, boolean>>();
  #count = 0;
  #isTold = false;

  constructor(sha1: Sha1, log: Log) {
    this.#sha1 = sha1;
    this.#log = log;
  }

  /** A key of the store, while it is opened. */
  load(key: string): void {
    const match = KEY.exec(key);
    if (match !== null) this.#set(Number(match[1]), match[2]!);
  }

  /** The key to be set when such an item goes for good; undefined where none is needed, or no more are kept. */
  keyFor(externalPlaylistId: number, sourceKey: string | null): string | undefined {
    if (externalPlaylistId < 0 || sourceKey === null) return undefined;
    if (this.#count >= MAX_TOMBSTONES) {
      if (!this.#isTold)
        this.#log.warn(
          "too many items were deleted for good while their sources list them: some will come back",
        );
      this.#isTold = true;
      return undefined;
    }
    return keyOf(externalPlaylistId, this.#hash(sourceKey));
  }

  /** The key has been set. */
  add(key: string): void {
    this.load(key);
  }

  /** Whether the user deleted it for good. Counts as being listed. */
  meets(externalPlaylistId: number, sourceKey: string): boolean {
    const playlist = this.#playlists.get(externalPlaylistId);
    if (playlist === undefined) return false;
    const hash = this.#hash(sourceKey);
    if (!playlist.has(hash)) return false;
    playlist.set(hash, true);
    return true;
  }

  /**
   * The keys of what this pass over the source did not come by, as many at a time as a commit takes; all of them where the
   * playlist goes. Each batch may be removed before the next is asked for.
   */
  *unlisted(externalPlaylistId: number, isGoing: boolean): Generator<readonly string[]> {
    const playlist = this.#playlists.get(externalPlaylistId) ?? new Map<string, boolean>();
    let keys: string[] = [];
    for (const [hash, isListed] of playlist) {
      if (isListed && !isGoing) continue;
      keys.push(keyOf(externalPlaylistId, hash));
      if (keys.length < MAX_COMMIT_KEYS) continue;
      yield keys;
      keys = [];
    }
    if (keys.length > 0) yield keys;
  }

  /** The keys have been deleted. */
  remove(keys: readonly string[]): void {
    for (const key of keys) {
      const [, id, hash] = KEY.exec(key)!;
      const playlist = this.#playlists.get(Number(id));
      if (!playlist?.delete(hash!)) continue;
      this.#count--;
      if (playlist.size === 0) this.#playlists.delete(Number(id));
    }
  }

  /** The pass is over. */
  endPass(externalPlaylistId: number): void {
    const playlist = this.#playlists.get(externalPlaylistId);
    for (const hash of playlist?.keys() ?? []) playlist!.set(hash, false);
  }

  #set(externalPlaylistId: number, hash: string): void {
    const playlist = this.#playlists.get(externalPlaylistId) ?? new Map<string, boolean>();
    if (!playlist.has(hash)) this.#count++;
    playlist.set(hash, false);
    this.#playlists.set(externalPlaylistId, playlist);
  }

  #hash(sourceKey: string): string {
    return toHex(this.#sha1(encodeUtf8(sourceKey)));
  }
}

function keyOf(externalPlaylistId: number, hash: string): string {
  return `${TOMBSTONE_PREFIX}${String(externalPlaylistId).padStart(10, "0")}/${hash}`;
}
