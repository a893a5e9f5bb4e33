import { toHex } from "../base/bytes.ts";
import type { Sha1 } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { MAX_COMMIT_KEYS } from "../base/store-limits.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import { MAX_TOMBSTONES } from "./limits.ts";

/** The key prefix of tombstones. */
export const TOMBSTONE_PREFIX = "gone/";
const KEY = /^gone\/([0-9]{10})\/([0-9a-f]{40})$/;

/**
 * The entries whose items the user deleted permanently while the source still lists them. CHOICE(deleted-for-good): such
 * an item is not added again until the source drops it or the external playlist is added again.
 */
export class Tombstones {
  readonly #sha1: Sha1;
  readonly #log: Log;
  /** By external playlist: the hash of each source key, and whether the current pass has listed it. */
  readonly #playlists = new Map<number, Map<string, boolean>>();
  #count = 0;
  #hasWarned = false;

  constructor(sha1: Sha1, log: Log) {
    this.#sha1 = sha1;
    this.#log = log;
  }

  /** Adds a tombstone by its key in the store. */
  add(key: string): void {
    const match = KEY.exec(key);
    if (match !== null) this.#set(Number(match[1]), match[2]!);
  }

  /** Returns the key to set when an item is deleted; undefined if it needs none or the limit is reached. */
  keyFor(externalPlaylistId: number, sourceKey: string | null): string | undefined {
    if (externalPlaylistId < 0 || sourceKey === null) return undefined;
    if (this.#count >= MAX_TOMBSTONES) {
      if (!this.#hasWarned)
        this.#log.warn(
          "too many deleted items are still in external playlists; the next refresh restores some",
        );
      this.#hasWarned = true;
      return undefined;
    }
    return keyOf(externalPlaylistId, this.#hash(sourceKey));
  }

  /** Returns true if the entry has a tombstone, and marks it as listed. */
  matches(externalPlaylistId: number, sourceKey: string): boolean {
    const playlist = this.#playlists.get(externalPlaylistId);
    if (playlist === undefined) return false;
    const hash = this.#hash(sourceKey);
    if (!playlist.has(hash)) return false;
    playlist.set(hash, true);
    return true;
  }

  /**
   * Yields the keys that the current pass has not listed, or all keys of the playlist, in batches of a commit. The caller
   * may remove each batch before it requests the next.
   */
  *unlisted(externalPlaylistId: number, includeAll: boolean): Generator<readonly string[]> {
    const playlist = this.#playlists.get(externalPlaylistId) ?? new Map<string, boolean>();
    let keys: string[] = [];
    for (const [hash, isListed] of playlist) {
      if (isListed && !includeAll) continue;
      keys.push(keyOf(externalPlaylistId, hash));
      if (keys.length < MAX_COMMIT_KEYS) continue;
      yield keys;
      keys = [];
    }
    if (keys.length > 0) yield keys;
  }

  /** Removes tombstones whose keys have been deleted from the store. */
  remove(keys: readonly string[]): void {
    for (const key of keys) {
      const [, id, hash] = KEY.exec(key)!;
      const playlist = this.#playlists.get(Number(id));
      if (!playlist?.delete(hash!)) continue;
      this.#count--;
      if (playlist.size === 0) this.#playlists.delete(Number(id));
    }
  }

  /** Ends a pass: no entry counts as listed any more. */
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
