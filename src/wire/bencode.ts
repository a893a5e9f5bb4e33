import { type BencodeLimits, scanBencode } from "./bencode-scan.ts";
import { BencodeView } from "./bencode-view.ts";

/** A decoded bencode value (BEP 3). Byte strings are views of the input; keys are Latin-1 text, one character per byte. */
export type BencodeValue = number | Uint8Array | BencodeList | BencodeDict;
type BencodeList = readonly BencodeValue[];
export type BencodeDict = ReadonlyMap<string, BencodeValue>;

/** Decodes exactly one value, strictly: sorted unique keys, no leading zeros, no negative zero, no bytes after it. For small
 * inputs; a `BencodeView` needs less memory. Throws `DecodeError`. */
export function decodeBencode(bytes: Uint8Array, limits: BencodeLimits = {}): BencodeValue {
  return build(new BencodeView(scanBencode(bytes, withDefaults(bytes, limits), true).tape));
}

/** Decodes one value at the start of `bytes`; `end` is the offset after it. For a dictionary followed by raw bytes (BEP 9).
 * Throws `DecodeError`. */
export function decodeBencodePrefix(
  bytes: Uint8Array,
  limits: BencodeLimits = {},
): { value: BencodeValue; end: number } {
  const { tape, end } = scanBencode(bytes, withDefaults(bytes, limits), false);
  return { value: build(new BencodeView(tape)), end };
}

/** Returns `value` if it is a dictionary, otherwise undefined. */
export function dictOf(value: BencodeValue | undefined): BencodeDict | undefined {
  return value instanceof Map ? value : undefined;
}

/** Returns `value` if it is a list, otherwise undefined. */
export function listOf(value: BencodeValue | undefined): BencodeList | undefined {
  return Array.isArray(value) ? value : undefined;
}

/** Returns `value` if it is a byte string, otherwise undefined. */
export function bytesOf(value: BencodeValue | undefined): Uint8Array | undefined {
  return value instanceof Uint8Array ? value : undefined;
}

/** Returns `value` if it is an integer, otherwise undefined. */
export function integerOf(value: BencodeValue | undefined): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** A decoded value needs up to about 250 bytes of memory, so the default allows one per 16 bytes of input, plus enough for peer
 * lists of trackers. */
function withDefaults(bytes: Uint8Array, limits: BencodeLimits): BencodeLimits {
  return { maxTokens: 3000 + Math.floor(bytes.length / 16), ...limits };
}

/** The scan has limited the depth, so recursion is safe. */
function build(view: BencodeView): BencodeValue {
  if (view.isDict) {
    const dict = new Map<string, BencodeValue>();
    for (const [key, value] of view.entries()) dict.set(key, build(value));
    return dict;
  }
  if (view.isList) return Array.from(view.items(), build);
  return view.integer() ?? view.bytes()!;
}
