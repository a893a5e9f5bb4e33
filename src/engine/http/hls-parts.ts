import { latin1Text } from "../../base/bytes.ts";
import { SluiceError } from "../../base/errors.ts";
import type { HlsKey, HlsSegment } from "../../media/hls-media.ts";
import { packedAudioToTs } from "../../remux/packed-audio.ts";
import { sniffContainer } from "../../remux/sniff.ts";
import type { SegmentBytes } from "../segment-cache.ts";
import { fetchPart, type HlsPlace, placeOf } from "./hls-fetch.ts";
import type { WebClient } from "./web-client.ts";

/** As the cache of segments allows: 6 s at 80 Mbit/s. */
const SEGMENT_LIMIT_BYTES = 64 * 1024 * 1024;
const MAP_LIMIT_BYTES = 1024 * 1024;
const KEY_BYTES = 16;
/** Keys change every few minutes at most, and old ones are of no use. */
const MAX_KEYS = 16;

/** Fetches what manifests name, decrypted and looked at. */
export class HlsParts {
  readonly #client: WebClient;
  readonly #keys = new Map<string, Promise<CryptoKey>>();

  constructor(client: WebClient) {
    this.#client = client;
  }

  /**
   * A segment; rejects where it is not of the kind that the manifest promised. Audio without a container comes as MPEG-TS;
   * where it does not say when it is heard, that is at `startSeconds`.
   */
  async segment(
    segment: HlsSegment,
    container: "ts" | "fmp4",
    manifest: HlsPlace,
    signal: AbortSignal,
    startSeconds: number,
  ): Promise<SegmentBytes> {
    const bytes = await this.#bytes(segment, manifest, signal);
    const found = sniffContainer(bytes.subarray(0, 4096));
    if (found === (container === "ts" ? "mpegts" : "mp4")) return bytes;
    const packed = container === "ts" ? packedAudioToTs(bytes, startSeconds, "und") : undefined;
    if (packed) return packed;
    const expected = container === "ts" ? "MPEG-TS" : "fragmented MP4";
    const came = found.includes(" ") ? "something else" : found;
    throw new SluiceError("unsupported_container", `expected segments of ${expected}, ${came} came`);
  }

  /** A segment of subtitles; rejects where it is no WebVTT. */
  async text(segment: HlsSegment, manifest: HlsPlace, signal: AbortSignal): Promise<SegmentBytes> {
    const bytes = await this.#bytes(segment, manifest, signal);
    if (/^(?:\xef\xbb\xbf)?WEBVTT(?:\s|$)/.test(latin1Text(bytes.subarray(0, 10)))) return bytes;
    throw new SluiceError("unsupported_container", "expected subtitles in WebVTT, something else came");
  }

  async #bytes(
    segment: HlsSegment,
    manifest: HlsPlace,
    signal: AbortSignal,
  ): Promise<Uint8Array<ArrayBuffer>> {
    if (segment.isGap)
      throw new SluiceError("no_such_segment", "the server has a gap in place of this segment");
    const { uri, range } = segment;
    const raw = await fetchPart(this.#client, placeOf(uri, manifest), range, SEGMENT_LIMIT_BYTES, signal);
    return this.#decrypted(raw, segment, manifest, signal);
  }

  /** The initialisation of a segment of fragmented MP4. */
  async map(segment: HlsSegment, manifest: HlsPlace, signal: AbortSignal): Promise<SegmentBytes> {
    const { map } = segment;
    if (!map) throw new SluiceError("no_such_segment", "this segment has no initialisation");
    const place = placeOf(map.uri, manifest);
    const raw = await fetchPart(this.#client, place, map.range, MAP_LIMIT_BYTES, signal);
    // Whether a key holds for it is a matter of the order of tags, which encoders mix up: it shows.
    if (sniffContainer(raw) === "mp4") return raw;
    const bytes = await this.#decrypted(raw, segment, manifest, signal);
    if (sniffContainer(bytes) === "mp4") return bytes;
    throw new SluiceError(
      "unsupported_container",
      "expected the initialisation of fragmented MP4, something else came",
    );
  }

  async #decrypted(
    bytes: Uint8Array<ArrayBuffer>,
    { key, number }: HlsSegment,
    manifest: HlsPlace,
    signal: AbortSignal,
  ): Promise<Uint8Array<ArrayBuffer>> {
    if (!key) return bytes;
    checkKey(key);
    const place = placeOf(key.uri, manifest);
    const cryptoKey = await this.#key(place, signal);
    const iv = key.iv ? new Uint8Array(key.iv) : numberIv(number);
    try {
      return new Uint8Array(await crypto.subtle.decrypt({ name: "AES-CBC", iv }, cryptoKey, bytes));
    } catch (thrown) {
      this.#keys.delete(place.url);
      throw new SluiceError("broken_media", "a segment cannot be decrypted with its key", { cause: thrown });
    }
  }

  async #key(place: HlsPlace, signal: AbortSignal): Promise<CryptoKey> {
    const known = this.#keys.get(place.url);
    if (known) return known;
    const key = this.#fetchKey(place, signal);
    this.#keys.set(place.url, key);
    key.catch(() => this.#keys.delete(place.url));
    for (const oldest of this.#keys.keys()) {
      if (this.#keys.size <= MAX_KEYS) break;
      this.#keys.delete(oldest);
    }
    return key;
  }

  async #fetchKey(place: HlsPlace, signal: AbortSignal): Promise<CryptoKey> {
    const bytes = await fetchPart(this.#client, place, undefined, KEY_BYTES, signal);
    if (bytes.length !== KEY_BYTES)
      throw new SluiceError("broken_media", `expected a key of ${KEY_BYTES} bytes, ${bytes.length} came`);
    return crypto.subtle.importKey("raw", bytes, "AES-CBC", false, ["decrypt"]);
  }
}

/** Throws `unsupported_content` where segments are encrypted in a way that cannot be undone here. */
export function checkKey(key: HlsKey | undefined): void {
  if (!key || (key.method === "AES-128" && key.format === "identity")) return;
  const what = key.method === "AES-128" ? `a key of the kind ${key.format}` : key.method;
  throw new SluiceError(
    "unsupported_content",
    `this stream is encrypted with ${what.slice(0, 80)}; only AES-128 is played`,
  );
}

/** The number of a segment as 16 bytes (RFC 8216 5.2). */
function numberIv(number: number): Uint8Array<ArrayBuffer> {
  const iv = new Uint8Array(16);
  new DataView(iv.buffer).setBigUint64(8, BigInt(number));
  return iv;
}
