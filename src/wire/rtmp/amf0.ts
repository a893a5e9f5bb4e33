import { DecodeError } from "../../base/errors.ts";
import { decodeUtf8, encodeUtf8 } from "../../base/utf8.ts";

/** A value of AMF0 (Action Message Format, "AMF 0 File Format", Adobe 2007). Dates are their UNIX ms; `undefined` stands for the
 * undefined value and for types without a meaning here. */
export type AmfValue = number | boolean | string | null | undefined | readonly AmfValue[] | AmfObject;

/** An object or ECMA array. */
export interface AmfObject {
  readonly [name: string]: AmfValue;
}

/** A publisher sends a few short values; metadata has about 30 properties. */
const MAX_DEPTH = 8;
const MAX_VALUES = 1024;

const TYPE = {
  number: 0,
  boolean: 1,
  string: 2,
  object: 3,
  null: 5,
  undefined: 6,
  ecmaArray: 8,
  objectEnd: 9,
  strictArray: 10,
  date: 11,
  longString: 12,
  unsupported: 13,
} as const;

/** Decodes consecutive values. Throws {@link DecodeError}. */
export function decodeAmf(bytes: Uint8Array): AmfValue[] {
  return new AmfReader(bytes).all();
}

class AmfReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;
  #values = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  all(): AmfValue[] {
    const values: AmfValue[] = [];
    while (this.#at < this.#bytes.length) values.push(this.#value(0));
    return values;
  }

  #value(depth: number): AmfValue {
    if (depth > MAX_DEPTH) throw this.#fault(`values nested more than ${MAX_DEPTH} deep`);
    if (++this.#values > MAX_VALUES) throw this.#fault(`more than ${MAX_VALUES} values`);
    const type = this.#bytes[this.#take(1)]!;
    switch (type) {
      case TYPE.number:
        return this.#view.getFloat64(this.#take(8));
      case TYPE.boolean:
        return this.#bytes[this.#take(1)] !== 0;
      case TYPE.string:
        return this.#text(this.#view.getUint16(this.#take(2)));
      case TYPE.longString:
        return this.#text(this.#view.getUint32(this.#take(4)));
      case TYPE.object:
        return this.#object(depth);
      case TYPE.ecmaArray:
        this.#take(4); // An approximate count; the end mark decides.
        return this.#object(depth);
      case TYPE.strictArray:
        return this.#array(this.#view.getUint32(this.#take(4)), depth);
      case TYPE.date: {
        const unixMs = this.#view.getFloat64(this.#take(8));
        this.#take(2);
        return unixMs;
      }
      case TYPE.null:
        return null;
      case TYPE.undefined:
      case TYPE.unsupported:
        return undefined;
      default:
        throw this.#fault(`unsupported AMF0 type ${type}`);
    }
  }

  #object(depth: number): AmfObject {
    const entries = new Map<string, AmfValue>();
    for (;;) {
      const name = this.#text(this.#view.getUint16(this.#take(2)));
      if (name === "" && this.#bytes[this.#at] === TYPE.objectEnd) {
        this.#at++;
        // `fromEntries` defines properties, so the name `__proto__` has no effect.
        return Object.fromEntries(entries);
      }
      entries.set(name, this.#value(depth + 1));
    }
  }

  #array(count: number, depth: number): AmfValue[] {
    const values: AmfValue[] = [];
    for (let i = 0; i < count; i++) values.push(this.#value(depth + 1));
    return values;
  }

  #text(length: number): string {
    const from = this.#take(length);
    return decodeUtf8(this.#bytes.subarray(from, from + length));
  }

  /** Returns the offset of the next `count` bytes and moves past them. */
  #take(count: number): number {
    const from = this.#at;
    if (count > this.#bytes.length - from) throw this.#fault("truncated");
    this.#at += count;
    return from;
  }

  #fault(reason: string): DecodeError {
    return new DecodeError("AMF0", this.#at, reason);
  }
}

/** Encodes consecutive values. A text of more than 65,535 bytes is a bug of the caller. */
export function encodeAmf(values: readonly AmfValue[]): Uint8Array<ArrayBuffer> {
  const out: number[] = [];
  for (const value of values) write(out, value);
  return Uint8Array.from(out);
}

function write(out: number[], value: AmfValue): void {
  if (value === null) out.push(TYPE.null);
  else if (value === undefined) out.push(TYPE.undefined);
  else if (typeof value === "number") {
    const number = new DataView(new ArrayBuffer(8));
    number.setFloat64(0, value);
    out.push(TYPE.number, ...new Uint8Array(number.buffer));
  } else if (typeof value === "boolean") out.push(TYPE.boolean, value ? 1 : 0);
  else if (typeof value === "string") {
    out.push(TYPE.string);
    writeText(out, value);
  } else if (isArray(value)) {
    out.push(TYPE.strictArray, 0, 0, value.length >> 8, value.length & 0xff);
    for (const each of value) write(out, each);
  } else {
    out.push(TYPE.object);
    for (const [name, each] of Object.entries(value)) {
      writeText(out, name);
      write(out, each);
    }
    out.push(0, 0, TYPE.objectEnd);
  }
}

function isArray(value: AmfValue): value is readonly AmfValue[] {
  return Array.isArray(value);
}

function writeText(out: number[], text: string): void {
  const bytes = encodeUtf8(text);
  out.push(bytes.length >> 8, bytes.length & 0xff, ...bytes);
}
