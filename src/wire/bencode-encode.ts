import { assert } from "../base/assert.ts";
import { concatBytes, latin1Bytes } from "../base/bytes.ts";

/** What can be written: a value as it is read, or a text (written as UTF-8 by the caller, Latin-1 here). */
export type BencodeInput =
  | number
  | string
  | Uint8Array
  | Bencoded
  | readonly BencodeInput[]
  | ReadonlyMap<string, BencodeInput>;

/** A value that is bencoded already, and is written as it is. */
export class Bencoded {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
}

/** The one canonical form of a value (BEP 3): keys sorted by their bytes. A text counts as Latin-1 bytes. */
export function encodeBencode(value: BencodeInput): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  write(value, parts);
  return concatBytes(parts);
}

/** A dictionary from an object's members, leaving out those that are undefined. */
export function bencodeDict(
  members: Readonly<Record<string, BencodeInput | undefined>>,
): ReadonlyMap<string, BencodeInput> {
  const dict = new Map<string, BencodeInput>();
  for (const [key, value] of Object.entries(members)) if (value !== undefined) dict.set(key, value);
  return dict;
}

/** Our own values are shallow, so recursion is safe here. */
function write(value: BencodeInput, parts: Uint8Array[]): void {
  if (typeof value === "number") {
    assert(Number.isSafeInteger(value), `bencode holds whole numbers, not ${value}`);
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
  for (const key of [...dict.keys()].sort(byUnits)) {
    write(key, parts);
    write(dict.get(key)!, parts);
  }
  parts.push(latin1Bytes("e"));
}

function byUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
