import { assert } from "../base/assert.ts";
import { concatBytes, latin1Bytes } from "../base/bytes.ts";

/** A value to encode. A string is written as Latin-1; the caller encodes other text as UTF-8 bytes. */
export type BencodeInput =
  | number
  | string
  | Uint8Array
  | Bencoded
  | readonly BencodeInput[]
  | ReadonlyMap<string, BencodeInput>;

/** Bytes that are already bencoded; written unchanged. */
export class Bencoded {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
}

/** Encodes a value in canonical form (BEP 3): dictionary keys sorted by their bytes, strings as Latin-1. */
export function encodeBencode(value: BencodeInput): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  write(value, parts);
  return concatBytes(parts);
}

/** Makes a dictionary of an object's members, without those that are undefined. */
export function bencodeDict(
  members: Readonly<Record<string, BencodeInput | undefined>>,
): ReadonlyMap<string, BencodeInput> {
  const dict = new Map<string, BencodeInput>();
  for (const [key, value] of Object.entries(members)) if (value !== undefined) dict.set(key, value);
  return dict;
}

/** Encoded values are shallow, so recursion is safe. */
function write(value: BencodeInput, parts: Uint8Array[]): void {
  if (typeof value === "number") {
    assert(Number.isSafeInteger(value), `expected an integer to bencode, not ${value}`);
    parts.push(latin1Bytes(`i${value}e`));
  } else if (typeof value === "string") {
    parts.push(latin1Bytes(`${value.length}:${value}`));
  } else if (value instanceof Uint8Array) {
    parts.push(latin1Bytes(`${value.length}:`), value);
  } else if (value instanceof Bencoded) {
    parts.push(value.bytes);
  } else if (value instanceof Map) {
    writeDict(value, parts);
  } else {
    parts.push(latin1Bytes("l"));
    for (const item of value as readonly BencodeInput[]) write(item, parts);
    parts.push(latin1Bytes("e"));
  }
}

function writeDict(dict: ReadonlyMap<string, BencodeInput>, parts: Uint8Array[]): void {
  parts.push(latin1Bytes("d"));
  for (const key of [...dict.keys()].sort(byCodeUnits)) {
    write(key, parts);
    write(dict.get(key)!, parts);
  }
  parts.push(latin1Bytes("e"));
}

function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
