import { toHex } from "../base/bytes.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Sha1 } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Clock, Files } from "../runtime/contract.ts";
import type { Image, Images } from "./contract.ts";
import { imageType } from "./image-type.ts";

/** What images are made of. */
export interface ImagesParts {
  readonly files: Files;
  readonly clock: Clock;
  readonly sha1: Sha1;
  readonly outbound: Pick<Outbound, "get">;
  readonly log: Log;
  /** The folder of the library, which need not exist yet. */
  readonly folder: string;
}

/** A logo of a megabyte is large already. */
const MAX_IMAGE_BYTES = 1024 * 1024;
/** Uploads are kept for good, so there must be an end to them: 20 GB at worst, some 400 MB of real ones. */
const MAX_UPLOADS = 20_000;
/** Pictures of other servers; the oldest go first. */
const MAX_FETCHED = 2_000;
const FRESH_MS = 7 * 24 * 3_600_000;
/** A server that has no picture is not asked again so soon: a page of 25 items asks for 25. */
const FAILURE_MS = 10 * 60_000;
const MAX_FAILURES = 1_000;
const FETCH_TIMEOUT_MS = 8_000;
/** Fetches at once; the others wait their turn. */
const MAX_FETCHES = 8;

/** Opens what is kept. */
export async function createImages(parts: ImagesParts): Promise<Images> {
  return new KeptImages(parts, new Set(await parts.files.list(`${parts.folder}/images`)));
}

/** Uploads in one folder, named by what they hold; fetched pictures in another, named by their URL. */
class KeptImages implements Images {
  readonly #parts: ImagesParts;
  readonly #uploads: Set<string>;
  /** URLs that brought nothing, and when they may be asked again. */
  readonly #failures = new Map<string, number>();
  readonly #fetches = new Map<string, Promise<Image | undefined>>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(parts: ImagesParts, uploads: Set<string>) {
    this.#parts = parts;
    this.#uploads = uploads;
  }

  async put(bytes: Uint8Array): Promise<string> {
    if (bytes.length > MAX_IMAGE_BYTES)
      throw new SluiceError("bad_image", `at most ${MAX_IMAGE_BYTES} bytes, got ${bytes.length}`);
    if (imageType(bytes) === undefined)
      throw new SluiceError("bad_image", "expected PNG, JPEG, GIF or WebP of at most 8192 pixels a side");
    const id = toHex(this.#parts.sha1(bytes));
    if (this.#uploads.has(id)) return id;
    if (this.#uploads.size >= MAX_UPLOADS) throw new SluiceError("too_many", `${MAX_UPLOADS} logos are kept`);
    await this.#parts.files.replace(this.#uploadPath(id), bytes);
    this.#uploads.add(id);
    return id;
  }

  async get(id: string): Promise<Image | undefined> {
    if (!/^[0-9a-f]{40}$/.test(id) || !this.#uploads.has(id)) return undefined;
    return imageOf(await this.#parts.files.read(this.#uploadPath(id), MAX_IMAGE_BYTES));
  }

  async fetch(
    url: string,
    options: { readonly allowPrivateUrls: boolean; readonly signal?: AbortSignal },
  ): Promise<Image | undefined> {
    // Who may not ask a private server may not see what it answered to another either.
    const name = toHex(this.#parts.sha1(encodeUtf8(`${options.allowPrivateUrls} ${url}`)));
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
    const { clock, log } = this.#parts;
    const path = `${this.#parts.folder}/fetched-images/${name}`;
    const { kept, ageMs } = await this.#fetched(path);
    if (kept && ageMs < FRESH_MS) return kept;
    if ((this.#failures.get(name) ?? 0) > clock.now()) return kept;
    await this.#turn();
    try {
      const { status, bytes } = await this.#parts.outbound.get(url, {
        limitBytes: MAX_IMAGE_BYTES,
        timeoutMs: FETCH_TIMEOUT_MS,
        allowPrivate: allowPrivateUrls,
        purpose: "logo",
      });
      const image = status === 200 ? imageOf(bytes) : undefined;
      if (!image) throw new SluiceError("bad_image", `no picture came (status ${status})`);
      await this.#keep(path, bytes);
      return image;
    } catch (error) {
      this.#failures.delete(name);
      this.#failures.set(name, clock.now() + FAILURE_MS);
      for (const oldest of this.#failures.keys()) {
        if (this.#failures.size <= MAX_FAILURES) break;
        this.#failures.delete(oldest);
      }
      log.debug("no logo", { reason: messageOf(error) });
      // An old picture is better than none.
      return kept;
    } finally {
      this.#running--;
      this.#waiting.shift()?.();
    }
  }

  /** A picture that was fetched before. A cache that cannot be read is as good as none. */
  async #fetched(path: string): Promise<{ kept?: Image | undefined; ageMs: number }> {
    const { files, clock, log } = this.#parts;
    try {
      const facts = await files.stat(path);
      if (!facts) return { ageMs: 0 };
      const kept = imageOf(await files.read(path, MAX_IMAGE_BYTES));
      return { kept, ageMs: clock.unixSeconds() * 1000 - facts.modifiedMs };
    } catch (error) {
      log.debug("kept logo unreadable", { reason: messageOf(error) });
      return { ageMs: 0 };
    }
  }

  /** Waits until fewer than `MAX_FETCHES` are running. */
  async #turn(): Promise<void> {
    while (this.#running >= MAX_FETCHES) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running++;
  }

  /** Keeps a fetched picture; that it cannot be kept is no reason not to show it. */
  async #keep(path: string, bytes: Uint8Array): Promise<void> {
    const { files, folder, log } = this.#parts;
    try {
      await files.replace(path, bytes);
      const names = await files.list(`${folder}/fetched-images`);
      if (names.length <= MAX_FETCHED) return;
      const aged = await Promise.all(
        names.map(async (name) => ({
          name,
          modifiedMs: (await files.stat(`${folder}/fetched-images/${name}`))?.modifiedMs ?? 0,
        })),
      );
      aged.sort((a, b) => a.modifiedMs - b.modifiedMs);
      // A tenth more than must go, so that this is not done at each new one.
      for (const { name } of aged.slice(0, names.length - MAX_FETCHED * 0.9))
        await files.remove(`${folder}/fetched-images/${name}`);
    } catch (error) {
      log.debug("logo not kept", { reason: messageOf(error) });
    }
  }

  #uploadPath(id: string): string {
    return `${this.#parts.folder}/images/${id}`;
  }
}

function imageOf(bytes: Uint8Array<ArrayBuffer> | undefined): Image | undefined {
  const mime = bytes && imageType(bytes);
  return mime && { mime, bytes };
}
