import { latin1Bytes, latin1Text } from "../../base/bytes.ts";
import { type Infohash, infohashBytes, infohashOf } from "../../base/ids.ts";
import { type BencodeInput, bencodeDict } from "../bencode-encode.ts";
import type { BencodeView } from "../bencode-view.ts";
import { MAX_BYTES_PER_SECOND, MAX_VARIANTS } from "./limits.ts";

/** One quality of a broadcast: a live stream with the same programme (live protocol: Variants). */
export interface LiveVariant {
  /** The stream that carries it; undefined for the stream that the description belongs to. */
  readonly infohash?: Infohash;
  readonly bytesPerSecond: number;
  /** Pixels. */
  readonly width?: number;
  readonly height?: number;
  /** RFC 6381; empty if not known. */
  readonly codecs: readonly string[];
}

const INFOHASH_BYTES = 20;
/** The largest picture that a codec in use permits is below this. */
const MAX_PIXELS = 16_384;
/** Two codecs with all their parameters; anything else is not an RFC 6381 list. */
const CODECS = /^[A-Za-z0-9.-]{1,40}(?:,[A-Za-z0-9.-]{1,40}){0,3}$/;

/** Encodes the list `var`. */
export function variantList(variants: readonly LiveVariant[] | undefined): BencodeInput[] | undefined {
  if (!variants || variants.length < 2) return undefined;
  return variants.map(({ infohash, bytesPerSecond, width, height, codecs }) =>
    bencodeDict({
      bps: Math.round(bytesPerSecond),
      cd: codecs.length > 0 ? latin1Bytes(codecs.join(",")) : undefined,
      h: height,
      ih: infohash && infohashBytes(infohash),
      w: width,
    }),
  );
}

/**
 * Reads the list `var`, and skips its invalid entries. Returns an empty list unless it describes the stream itself and at least one
 * other, because players need the figures of both to choose.
 */
export function readVariants(list: BencodeView | undefined): LiveVariant[] {
  const found = new Map<Infohash | undefined, LiveVariant>();
  for (const item of list?.items() ?? []) {
    const variant = variantIn(item);
    if (variant && !found.has(variant.infohash)) found.set(variant.infohash, variant);
    if (found.size === MAX_VARIANTS) break;
  }
  return found.size > 1 && found.has(undefined) ? [...found.values()] : [];
}

function variantIn(item: BencodeView): LiveVariant | undefined {
  const digest = item.get("ih");
  const bytes = digest?.bytes();
  const bytesPerSecond = numberIn(item.get("bps"), MAX_BYTES_PER_SECOND);
  if (bytesPerSecond === undefined || (digest && bytes?.length !== INFOHASH_BYTES)) return undefined;
  const width = numberIn(item.get("w"), MAX_PIXELS);
  const height = numberIn(item.get("h"), MAX_PIXELS);
  const codecs = latin1Text(item.get("cd")?.bytes() ?? new Uint8Array(0));
  return {
    ...(bytes && { infohash: infohashOf(bytes) }),
    bytesPerSecond,
    ...(width !== undefined && height !== undefined && { width, height }),
    codecs: CODECS.test(codecs) ? codecs.split(",") : [],
  };
}

function numberIn(value: BencodeView | undefined, most: number): number | undefined {
  const number = value?.integer();
  return number !== undefined && number >= 1 && number <= most ? number : undefined;
}
