import { toHex } from "../base/bytes.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Sha1 } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Clock, Files } from "../runtime/contract.ts";
import type { Image, Images } from "./contract.ts";
import { imageType } from "./image-type.ts";

interface ImagesDependencies {
  readonly files: Files;
  readonly clock: Clock;
  readonly sha1: Sha1;
  readonly outbound: Pick<Outbound, "get">;
  readonly log: Log;
  /** The folder of the library, which need not exist yet. */
  readonly folder: string;
}

/** Logos are usually much smaller. */
const MAX_IMAGE_BYTES = 1024 * 1024;
/** Uploads are kept permanently: at worst 20 GB, typically 400 MB. */
const MAX_UPLOADS = 20_000;
/** Limits of the cached pictures of other servers; the oldest are deleted. Logos have about 20 kB, so a list of pictures of
 * 1 MiB reaches the second limit, which is outside `--cache-limit`. */
const MAX_FETCHED = 2_000;
const MAX_FETCHED_BYTES = 128 * 1024 * 1024;
/** What is left after a deletion, so that it does not happen for each new picture. */
const KEPT_SHARE = 0.9;
const CACHE_MS = 7 * 24 * 3_600_000;
/** A failed picture is not requested again within this time; a page of 25 items requests 25 pictures. */
const FAILURE_MS = 10 * 60_000;
const MAX_FAILURES = 1_000;
const FETCH_TIMEOUT_MS = 8_000;
/** Concurrent fetches. */
const MAX_FETCHES = 8;

/** Opens the uploads and the cache of fetched pictures. */
export async function createImages(dependencies: ImagesDependencies): Promise<Images> {
  return new FileImages(
    dependencies,
    new Set(await dependencies.files.list(`${dependencies.folder}/images`)),
  );
}

/** Uploads are named by the SHA-1 of their bytes, fetched pictures by that of their URL. */
class FileImages implements Images {
  readonly #dependencies: ImagesDependencies;
  readonly #uploads: Set<string>;
  /** Failed URLs with the time from which they may be requested again. */
  readonly #failures = new Map<string, number>();
  readonly #fetches = new Map<string, Promise<Image | undefined>>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  /** Number and bytes of the cached pictures, at most; undefined until they are counted. */
  #cached: { files: number; bytes: number } | undefined;
  #isTrimming = false;

  constructor(dependencies: ImagesDependencies, uploads: Set<string>) {
    this.#dependencies = dependencies;
    this.#uploads = uploads;
  }

  async put(bytes: Uint8Array): Promise<string> {
    if (bytes.length > MAX_IMAGE_BYTES)
      throw new SluiceError("bad_image", `at most ${MAX_IMAGE_BYTES} bytes, got ${bytes.length}`);
    if (imageType(bytes) === undefined)
      throw new SluiceError("bad_image", "expected PNG, JPEG, GIF or WebP of at most 8192 pixels a side");
    const id = toHex(this.#dependencies.sha1(bytes));
    if (this.#uploads.has(id)) return id;
    if (this.#uploads.size >= MAX_UPLOADS)
      throw new SluiceError("too_many", `the limit of ${MAX_UPLOADS} logos is reached`);
    await this.#dependencies.files.replace(this.#uploadPath(id), bytes);
    this.#uploads.add(id);
    return id;
  }

  async get(id: string): Promise<Image | undefined> {
    if (!/^[0-9a-f]{40}$/.test(id) || !this.#uploads.has(id)) return undefined;
    return imageOf(await this.#dependencies.files.read(this.#uploadPath(id), MAX_IMAGE_BYTES));
  }

  async fetch(
    url: string,
    options: { readonly allowPrivateUrls: boolean; readonly signal?: AbortSignal },
  ): Promise<Image | undefined> {
    // A client without access to private servers must not see pictures that were fetched for another client.
    const name = toHex(this.#dependencies.sha1(encodeUtf8(`${options.allowPrivateUrls} ${url}`)));
    const running = this.#fetches.get(name);
    if (running) return running;
    const fetching = this.#fetch(name, url, options).finally(() => this.#fetches.delete(name));
    this.#fetches.set(name, fetching);
    return fetching;
  }

  async #fetch(
    name: string,
    url: string,
    { allowPrivateUrls }: { readonly allowPrivateUrls: boolean },
  ): Promise<Image | undefined> {
    const { clock, log } = this.#dependencies;
    const path = `${this.#dependencies.folder}/fetched-images/${name}`;
    const { cached, ageMs } = await this.#readCached(path);
    if (cached && ageMs < CACHE_MS) return cached;
    if ((this.#failures.get(name) ?? 0) > clock.now()) return cached;
    await this.#slot();
    try {
      const { status, bytes } = await this.#dependencies.outbound.get(url, {
        limitBytes: MAX_IMAGE_BYTES,
        timeoutMs: FETCH_TIMEOUT_MS,
        allowPrivate: allowPrivateUrls,
        purpose: "logo",
      });
      const image = status === 200 ? imageOf(bytes) : undefined;
      if (!image) throw new SluiceError("bad_image", `the response is not a picture (status ${status})`);
      await this.#writeCached(path, bytes);
      return image;
    } catch (error) {
      this.#failures.delete(name);
      this.#failures.set(name, clock.now() + FAILURE_MS);
      trimOldest(this.#failures, MAX_FAILURES);
      log.debug("logo could not be fetched", { reason: messageOf(error) });
      return cached; // An outdated picture is better than none.
    } finally {
      this.#running--;
      this.#waiting.shift()?.();
    }
  }

  /** Reads a cached picture; an unreadable one counts as missing. */
  async #readCached(path: string): Promise<{ cached?: Image | undefined; ageMs: number }> {
    const { files, clock, log } = this.#dependencies;
    try {
      const facts = await files.stat(path);
      if (!facts) return { ageMs: 0 };
      const cached = imageOf(await files.read(path, MAX_IMAGE_BYTES));
      return { cached, ageMs: clock.unixSeconds() * 1000 - facts.modifiedMs };
    } catch (error) {
      log.debug("cached logo could not be read", { reason: messageOf(error) });
      return { ageMs: 0 };
    }
  }

  /** Waits until fewer than `MAX_FETCHES` fetches are running. */
  async #slot(): Promise<void> {
    while (this.#running >= MAX_FETCHES) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running++;
  }

  /** Caches a picture; a failure is only logged. */
  async #writeCached(path: string, bytes: Uint8Array): Promise<void> {
    const { files, log } = this.#dependencies;
    try {
      await files.replace(path, bytes);
      if (this.#cached) {
        this.#cached.files++;
        this.#cached.bytes += bytes.length;
        if (this.#cached.files <= MAX_FETCHED && this.#cached.bytes <= MAX_FETCHED_BYTES) return;
      }
      if (this.#isTrimming) return;
      this.#isTrimming = true;
      await this.#trimCached().finally(() => {
        this.#isTrimming = false;
      });
    } catch (error) {
      log.debug("logo could not be cached", { reason: messageOf(error) });
    }
  }

  /** Counts the cached pictures, and deletes the oldest ones beyond the limits. */
  async #trimCached(): Promise<void> {
    const { files, folder } = this.#dependencies;
    const aged = await Promise.all(
      (await files.list(`${folder}/fetched-images`)).map(async (name) => {
        const path = `${folder}/fetched-images/${name}`;
        const { size = 0, modifiedMs = 0 } = (await files.stat(path)) ?? {};
        return { path, size, modifiedMs };
      }),
    );
    const count = { files: aged.length, bytes: aged.reduce((sum, { size }) => sum + size, 0) };
    this.#cached = count;
    if (count.files <= MAX_FETCHED && count.bytes <= MAX_FETCHED_BYTES) return;
    for (const { path, size } of aged.sort((a, b) => a.modifiedMs - b.modifiedMs)) {
      if (count.files <= KEPT_SHARE * MAX_FETCHED && count.bytes <= KEPT_SHARE * MAX_FETCHED_BYTES) return;
      await files.remove(path);
      count.files--;
      count.bytes -= size;
    }
  }

  #uploadPath(id: string): string {
    return `${this.#dependencies.folder}/images/${id}`;
  }
}

function imageOf(bytes: Uint8Array<ArrayBuffer> | undefined): Image | undefined {
  const mime = bytes && imageType(bytes);
  return mime && { mime, bytes };
}
