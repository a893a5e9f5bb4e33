import { AwsV4Signer } from "aws4fetch";
import { sleep } from "../async/sleep.ts";
import { Slots } from "../async/slots.ts";
import { toHex } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { Sha256 } from "../base/signature.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { Clock } from "../runtime/contract.ts";
import { childText, readXml } from "../wire/xml.ts";
import type { Outbound } from "./outbound.ts";
import type { Upload } from "./request.ts";

/** A place on an S3-compatible server. */
export interface BucketPlace {
  /** Such as `https://s3.eu-central-1.amazonaws.com`, without a path. */
  readonly endpoint: string;
  readonly bucket: string;
  /** The beginning of all keys: empty, or ends with a slash. */
  readonly prefix: string;
  readonly region: string;
  readonly keyId: string;
  readonly secret: string;
  /** Maximum size of all objects below the prefix; undefined: no limit. */
  readonly limitBytes: number | undefined;
}

/** One object of a bucket. */
export interface BucketObject {
  /** Without the prefix of the place. */
  readonly key: string;
  readonly bytes: number;
  /** UNIX time in milliseconds; 0 if the server does not say. */
  readonly modifiedMs: number;
}

/** Dependencies of {@link Bucket}. */
interface BucketDependencies {
  readonly outbound: Pick<Outbound, "get">;
  readonly clock: Clock;
  readonly sha256: Sha256;
}

/** `readXml` takes 4,096 elements, and an object has up to ten. */
const PAGE_OBJECTS = 400;
/** More than 100 TB of pieces; a server whose listing never ends stops here. */
const MAX_PAGES = 250_000;
/** A page is about 150 KB; error messages are shorter. */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** Enough for an object of 16 MiB on a line of 5 Mbit/s. */
const TIMEOUT_MS = 30_000;
/** Uploads of all content at the same time: each holds one piece in memory. */
const UPLOADS = {
  limit: 4,
  // One of each transfer; the number of transfers is limited by that of sessions.
  queueLimit: 10_000,
  queueFull: () => new SluiceError("too_many", "too many uploads are waiting"),
};
/** Delays before a failed request is sent again. */
const RETRY_MS = [1_000, 4_000] as const;

/** The client of one bucket (Amazon S3 REST API, Signature Version 4, path-style URLs). All methods reject with `SluiceError`: `url_unreachable`
 * if the server does not answer or is overloaded, also after two retries, `url_refused` if it refuses the request, `cancelled`. */
export class Bucket {
  readonly place: BucketPlace;
  /** To be taken before a piece is read for {@link put}. */
  readonly uploads = new Slots(UPLOADS);
  readonly #dependencies: BucketDependencies;
  /** Keys that the signer derives from the secret each day. */
  readonly #derivedKeys = new Map<string, ArrayBuffer>();

  constructor(dependencies: BucketDependencies, place: BucketPlace) {
    this.#dependencies = dependencies;
    this.place = place;
  }

  /** Returns the URL of an object. `key` consists of characters that need no escaping. */
  url(key: string): string {
    const { endpoint, bucket, prefix } = this.place;
    return `${endpoint}/${bucket}/${prefix}${key}`;
  }

  /** Returns the headers that authenticate a request; GET by default. They are valid for 15 minutes. */
  async sign(url: string, { method, body }: Partial<Upload> = {}): Promise<Record<string, string>> {
    const { region, keyId, secret } = this.place;
    const signer = new AwsV4Signer({
      url,
      method: method ?? "GET",
      headers: { "x-amz-content-sha256": toHex(this.#dependencies.sha256(body ?? new Uint8Array())) },
      accessKeyId: keyId,
      secretAccessKey: secret,
      service: "s3",
      region,
      cache: this.#derivedKeys,
    });
    const headers = Object.fromEntries((await signer.sign()).headers);
    // A new day has new keys.
    if (this.#derivedKeys.size > 2) this.#derivedKeys.clear();
    return headers;
  }

  /** Returns the object; undefined if there is none. */
  get(key: string, limitBytes: number, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer> | undefined> {
    return this.#request(this.url(key), limitBytes, undefined, signal);
  }

  /** Creates or replaces the object. */
  async put(key: string, body: Uint8Array, signal: AbortSignal): Promise<void> {
    await this.#request(this.url(key), MAX_ANSWER_BYTES, { method: "PUT", body }, signal);
  }

  /** Removes the object, if there is one. */
  async remove(key: string, signal: AbortSignal): Promise<void> {
    await this.#request(this.url(key), MAX_ANSWER_BYTES, { method: "DELETE" }, signal);
  }

  /** Lists the objects whose keys begin with `prefix`. */
  async *list(prefix: string, signal: AbortSignal): AsyncGenerator<BucketObject> {
    const { endpoint, bucket, prefix: ownPrefix } = this.place;
    const query = new URLSearchParams({
      "list-type": "2",
      "max-keys": String(PAGE_OBJECTS),
      prefix: ownPrefix + prefix,
    });
    for (let page = 0; page < MAX_PAGES; page++) {
      const bytes = await this.#request(
        `${endpoint}/${bucket}?${query}`,
        MAX_ANSWER_BYTES,
        undefined,
        signal,
      );
      if (!bytes) throw refused(`there is no bucket ${bucket}`);
      const root = readXml(decodeUtf8(bytes));
      for (const element of root.children) {
        const key = childText(element, "Key");
        if (element.name !== "Contents" || !key?.startsWith(ownPrefix)) continue;
        yield {
          key: key.slice(ownPrefix.length),
          bytes: Number(childText(element, "Size")) || 0,
          modifiedMs: Date.parse(childText(element, "LastModified") ?? "") || 0,
        };
      }
      const next = childText(root, "NextContinuationToken");
      if (childText(root, "IsTruncated") !== "true" || !next) return;
      query.set("continuation-token", next);
    }
  }

  /** Sends a request, again after some failures. Returns the body, or undefined if the server answers 404. */
  async #request(url: string, limitBytes: number, upload: Upload | undefined, signal: AbortSignal) {
    const { clock } = this.#dependencies;
    for (const delayMs of RETRY_MS) {
      try {
        return await this.#send(url, limitBytes, upload, signal);
      } catch (thrown) {
        if (!(thrown instanceof SluiceError) || thrown.code !== "url_unreachable") throw thrown;
        await sleep(clock, delayMs, signal);
      }
    }
    return this.#send(url, limitBytes, upload, signal);
  }

  async #send(url: string, limitBytes: number, upload: Upload | undefined, signal: AbortSignal) {
    const { status, bytes } = await this.#dependencies.outbound.get(url, {
      originHeaders: await this.sign(url, upload),
      ...(upload && { upload }),
      // The operator chose the server.
      allowPrivate: true,
      limitBytes: Math.max(limitBytes, MAX_ANSWER_BYTES),
      timeoutMs: TIMEOUT_MS,
      purpose: "object of the cache",
      signal,
    });
    if (status === 404) return undefined;
    if (status >= 200 && status < 300) return bytes;
    const message = `the server of the bucket answered ${status}${reasonOf(bytes)}`;
    if (status >= 500 || status === 429 || status === 408) throw new SluiceError("url_unreachable", message);
    throw refused(message);
  }
}

function refused(message: string): SluiceError {
  return new SluiceError("url_refused", message);
}

/** Returns the code and the text of an error document. */
function reasonOf(bytes: Uint8Array): string {
  const text = decodeUtf8(bytes.subarray(0, 4096));
  const [code, message] = ["Code", "Message"].map(
    (name) => new RegExp(`<${name}>([^<]{1,200})</${name}>`).exec(text)?.[1],
  );
  return `${code ? ` ${code}` : ""}${message ? ` (${message})` : ""}`;
}
