import { latin1Text } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import type { HlsKey, HlsSegment } from "../media/hls-media.ts";
import { packedAudioToTs } from "../remux/packed-audio.ts";
import { sniffFormat } from "../remux/sniff.ts";
import type { SegmentBytes } from "../transfer/segment-source.ts";
import { fetchResource, type HlsLocation, resolveLocation } from "./hls-fetch.ts";
import type { WebClient } from "./web-client.ts";

/** The limit of the segment cache: 6 s at 80 Mbit/s. */
const SEGMENT_LIMIT_BYTES = 64 * 1024 * 1024;
const MAP_LIMIT_BYTES = 1024 * 1024;
const KEY_BYTES = 16;
/** Keys change every few minutes at most, and old keys are not needed again. */
const MAX_KEYS = 16;
/** An initialization section belongs to all segments up to the next one; advertisements have their own. */
const MAX_MAPS = 8;

/** Fetches the segments, subtitles and initialization sections of manifests, decrypts them and checks their format. */
export class HlsSegmentFetcher {
  readonly #client: WebClient;
  readonly #keys = new Map<string, Promise<CryptoKey>>();
  /** Recent initialization sections, by URL and range. */
  readonly #maps = new Map<string, Uint8Array<ArrayBuffer>>();

  constructor(client: WebClient) {
    this.#client = client;
  }

  /**
   * Fetches a media segment. Packed audio is wrapped into MPEG-TS; without an ID3 timestamp it starts at `startSeconds`.
   *
   * @param container the container of the manifest
   * @throws SluiceError if the request fails or the segment has another container
   */
  async segment(
    segment: HlsSegment,
    container: "ts" | "fmp4",
    manifest: HlsLocation,
    signal: AbortSignal,
    startSeconds: number,
  ): Promise<SegmentBytes> {
    const bytes = await this.#bytes(segment, manifest, signal);
    const found = sniffFormat(bytes.subarray(0, 4096));
    if (found === (container === "ts" ? "mpegts" : "mp4")) return bytes;
    const packed = container === "ts" ? packedAudioToTs(bytes, startSeconds, "und") : undefined;
    if (packed) return packed;
    const expected = container === "ts" ? "MPEG-TS" : "fragmented MP4";
    const actual = typeof found === "string" ? found : (found?.name ?? "an unknown format");
    throw new SluiceError("unsupported_container", `expected segments of ${expected}, got ${actual}`);
  }

  /** Fetches a subtitle segment. Rejects with `unsupported_container` if it is not WebVTT. */
  async text(segment: HlsSegment, manifest: HlsLocation, signal: AbortSignal): Promise<SegmentBytes> {
    const bytes = await this.#bytes(segment, manifest, signal);
    if (/^(?:\xef\xbb\xbf)?WEBVTT(?:\s|$)/.test(latin1Text(bytes.subarray(0, 10)))) return bytes;
    throw new SluiceError("unsupported_container", "expected subtitles in WebVTT, got another format");
  }

  async #bytes(
    segment: HlsSegment,
    manifest: HlsLocation,
    signal: AbortSignal,
  ): Promise<Uint8Array<ArrayBuffer>> {
    if (segment.isGap) throw new SluiceError("no_such_segment", "the manifest marks this segment as a gap");
    const { uri, range } = segment;
    const raw = await fetchResource(
      this.#client,
      resolveLocation(uri, manifest),
      range,
      SEGMENT_LIMIT_BYTES,
      signal,
    );
    return this.#decrypted(raw, segment, manifest, signal);
  }

  /** Fetches the initialization section (`EXT-X-MAP`) of a fragmented MP4 segment, or returns the one that segments share. */
  async map(segment: HlsSegment, manifest: HlsLocation, signal: AbortSignal): Promise<SegmentBytes> {
    const { map } = segment;
    if (!map) throw new SluiceError("no_such_segment", "this segment has no initialization section");
    const location = resolveLocation(map.uri, manifest);
    const key = `${location.url} ${map.range?.start}-${map.range?.end} ${segment.key?.uri} ${segment.key?.iv?.join()}`;
    const held = this.#maps.get(key);
    if (held) return held;
    const bytes = await this.#map(location, map, segment, manifest, signal);
    this.#maps.set(key, bytes);
    trimOldest(this.#maps, MAX_MAPS);
    return bytes;
  }

  async #map(
    location: HlsLocation,
    map: NonNullable<HlsSegment["map"]>,
    segment: HlsSegment,
    manifest: HlsLocation,
    signal: AbortSignal,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const raw = await fetchResource(this.#client, location, map.range, MAP_LIMIT_BYTES, signal);
    // The tag order decides whether it is encrypted (RFC 8216 4.3.2.5), but encoders get that wrong: test its format.
    if (sniffFormat(raw) === "mp4") return raw;
    const bytes = await this.#decrypted(raw, segment, manifest, signal);
    if (sniffFormat(bytes) === "mp4") return bytes;
    throw new SluiceError(
      "unsupported_container",
      "expected an initialization section of fragmented MP4, got another format",
    );
  }

  async #decrypted(
    bytes: Uint8Array<ArrayBuffer>,
    { key, number }: HlsSegment,
    manifest: HlsLocation,
    signal: AbortSignal,
  ): Promise<Uint8Array<ArrayBuffer>> {
    if (!key) return bytes;
    checkKey(key);
    const location = resolveLocation(key.uri, manifest);
    const cryptoKey = await this.#key(location, signal);
    const iv = key.iv ? new Uint8Array(key.iv) : numberIv(number);
    try {
      return new Uint8Array(await crypto.subtle.decrypt({ name: "AES-CBC", iv }, cryptoKey, bytes));
    } catch (thrown) {
      this.#keys.delete(location.url);
      throw new SluiceError("broken_media", "cannot decrypt a segment with the key of the manifest", {
        cause: thrown,
      });
    }
  }

  async #key(location: HlsLocation, signal: AbortSignal): Promise<CryptoKey> {
    const known = this.#keys.get(location.url);
    if (known) return known;
    const key = this.#fetchKey(location, signal);
    this.#keys.set(location.url, key);
    key.catch(() => this.#keys.delete(location.url));
    trimOldest(this.#keys, MAX_KEYS);
    return key;
  }

  async #fetchKey(location: HlsLocation, signal: AbortSignal): Promise<CryptoKey> {
    const bytes = await fetchResource(this.#client, location, undefined, KEY_BYTES, signal);
    if (bytes.length !== KEY_BYTES)
      throw new SluiceError("broken_media", `expected a key of ${KEY_BYTES} bytes, got ${bytes.length}`);
    return crypto.subtle.importKey("raw", bytes, "AES-CBC", false, ["decrypt"]);
  }
}

/** Throws `unsupported_content` if the encryption is not AES-128 with an identity key. */
export function checkKey(key: HlsKey | undefined): void {
  if (!key || (key.method === "AES-128" && key.format === "identity")) return;
  const what = key.method === "AES-128" ? `a key of format ${key.format}` : key.method;
  throw new SluiceError(
    "unsupported_content",
    `this stream is encrypted with ${what.slice(0, 80)}; only AES-128 is supported`,
  );
}

/** Returns the media sequence number as the 16-byte initialization vector (RFC 8216 5.2). */
function numberIv(number: number): Uint8Array<ArrayBuffer> {
  const iv = new Uint8Array(16);
  new DataView(iv.buffer).setBigUint64(8, BigInt(number));
  return iv;
}
