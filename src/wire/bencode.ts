import { type BencodeLimits, scanBencode } from "./bencode-scan.ts";
import { BencodeView } from "./bencode-view.ts";

/** A value of the bencoding (BEP 3). Byte strings are views on the input; keys are Latin-1 text, one unit a byte. */
export type BencodeValue = number | Uint8Array | BencodeList | BencodeDict;
export type BencodeList = readonly BencodeValue[];
export type BencodeDict = ReadonlyMap<string, BencodeValue>;

/** Reads exactly one value, strictly: sorted unique keys, no leading zeros, no negative zero, nothing after it.
 * For small inputs; a `BencodeView` costs less. Throws `DecodeError`. */
export function decodeBencode(bytes: Uint8Array, limits: BencodeLimits = {}): BencodeValue {
  return built(new BencodeView(scanBencode(bytes, withDefaults(bytes, limits), true).tape));
}

/** Reads one value at the start of `bytes`; `end` is where it ends. For a dictionary with raw bytes after it (BEP 9). */
export function decodeBencodePrefix(
  bytes: Uint8Array,
  limits: BencodeLimits = {},
): { value: BencodeValue; end: number } {
  const { tape, end } = scanBencode(bytes, withDefaults(bytes, limits), false);
  return { value: built(new BencodeView(tape)), end };
}

/** `value` as a dictionary, or undefined where it is none. */
export function dictOf(value: BencodeValue | undefined): BencodeDict | undefined {
  return value instanceof Map ? value : undefined;
}

/** `value` as a list, or undefined where it is none. */
export function listOf(value: BencodeValue | undefined): BencodeList | undefined {
  return Array.isArray(value) ? value : undefined;
}

/** `value` as bytes, or undefined where it is none. */
export function bytesOf(value: BencodeValue | undefined): Uint8Array | undefined {
  return value instanceof Uint8Array ? value : undefined;
}

/** `value` as a whole number, or undefined where it is none. */
export function integerOf(value: BencodeValue | undefined): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** A built value costs up to some 250 bytes of memory, however few of the input announce it: one for each 16 bytes,
 * and enough for the lists of peers that trackers send. */
function withDefaults(bytes: Uint8Array, limits: BencodeLimits): BencodeLimits {
  return { maxTokens: 3000 + Math.floor(bytes.length / 16), ...limits };
}

/** The scan has bounded the depth, so recursion is safe here. */
function built(view: BencodeView): BencodeValue {
  if (view.isDict) {
    const dict = new Map<string, BencodeValue>();
    for (const [key, value] of view.entries()) dict.set(key, built(value));
    return dict;
  }
  if (view.isList) return Array.from(view.items(), built);
  return view.integer() ?? view.bytes()!;
}
