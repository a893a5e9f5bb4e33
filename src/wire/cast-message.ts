import { concatBytes, readU32, writeU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { decodeUtf8, encodeUtf8 } from "../base/utf8.ts";

/**
 * A message of Google Cast (CASTv2): a protocol buffer of seven fields, of which the channels used here set six. `payload` is JSON as
 * text; binary payloads belong to device authentication, which senders need not request.
 */
export interface CastMessage {
  readonly source: string;
  readonly destination: string;
  readonly namespace: string;
  readonly payload: string;
}

/** Field numbers of `CastMessage` in cast_channel.proto. */
const FIELDS = { version: 1, source: 2, destination: 3, namespace: 4, payloadType: 5, text: 6 } as const;
/** Wire types of protocol buffers. */
const VARINT = 0;
const FIXED_64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED_32 = 5;
/** The length of a message precedes it as 4 bytes. */
const LENGTH_BYTES = 4;
/** The protocol's own limit (cast_channel.proto). */
const MAX_MESSAGE_BYTES = 64 * 1024;
/** A varint of 64 bits has at most 10 bytes. */
const MAX_VARINT_BYTES = 10;
const FORMAT = "cast message";

/** Encodes a message with its length. Throws `RangeError` if it is longer than 64 KiB. */
export function encodeCastMessage({
  source,
  destination,
  namespace,
  payload,
}: CastMessage): Uint8Array<ArrayBuffer> {
  const number = (field: number, value: number) => new Uint8Array([(field << 3) | VARINT, value]);
  const text = (field: number, value: string) => {
    const bytes = encodeUtf8(value);
    return concatBytes([new Uint8Array([(field << 3) | LENGTH_DELIMITED, ...varint(bytes.length)]), bytes]);
  };
  const body = concatBytes([
    number(FIELDS.version, 0),
    text(FIELDS.source, source),
    text(FIELDS.destination, destination),
    text(FIELDS.namespace, namespace),
    number(FIELDS.payloadType, 0),
    text(FIELDS.text, payload),
  ]);
  if (body.length > MAX_MESSAGE_BYTES)
    throw new RangeError(`a cast message of ${body.length} bytes is too long`);
  const head = new Uint8Array(LENGTH_BYTES);
  writeU32(head, 0, body.length);
  return concatBytes([head, body]);
}

/** Decodes a message without its length. Unknown fields are ignored; a binary payload gives an empty text. Throws `DecodeError`. */
export function decodeCastMessage(bytes: Uint8Array): CastMessage {
  const texts = new Map<number, string>();
  for (let at = 0; at < bytes.length; ) {
    const tag = readVarint(bytes, at);
    const [field, wireType] = [Math.floor(tag.value / 8), tag.value % 8];
    let end: number;
    if (wireType === VARINT) end = readVarint(bytes, tag.end).end;
    else if (wireType === FIXED_64) end = tag.end + 8;
    else if (wireType === FIXED_32) end = tag.end + 4;
    else if (wireType === LENGTH_DELIMITED) {
      const length = readVarint(bytes, tag.end);
      end = length.end + length.value;
      if (end <= bytes.length) texts.set(field, decodeUtf8(bytes.subarray(length.end, end)));
    } else throw new DecodeError(FORMAT, at, `unknown wire type ${wireType}`);
    if (end > bytes.length) throw new DecodeError(FORMAT, at, "the field is cut off");
    at = end;
  }
  const text = (field: number) => texts.get(field) ?? "";
  const namespace = text(FIELDS.namespace);
  if (namespace === "") throw new DecodeError(FORMAT, bytes.length, "expected a namespace");
  return {
    source: text(FIELDS.source),
    destination: text(FIELDS.destination),
    namespace,
    payload: text(FIELDS.text),
  };
}

/** Splits a byte stream into messages. It holds at most one incomplete message. */
export class CastMessageReader {
  #held: Uint8Array<ArrayBuffer> = new Uint8Array(0);

  /** Returns the messages that these bytes complete. Throws `DecodeError` for a message over 64 KiB or an invalid one. */
  push(bytes: Uint8Array): CastMessage[] {
    const all = concatBytes([this.#held, bytes]);
    const messages: CastMessage[] = [];
    let at = 0;
    while (all.length - at >= LENGTH_BYTES) {
      const length = readU32(all, at);
      if (length > MAX_MESSAGE_BYTES) throw new DecodeError(FORMAT, at, `a message of ${length} bytes`);
      const start = at + LENGTH_BYTES;
      if (all.length - start < length) break;
      messages.push(decodeCastMessage(all.subarray(start, start + length)));
      at = start + length;
    }
    this.#held = all.slice(at);
    return messages;
  }
}

function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)];
}

/** Reads a varint. Values above 2^53 lose precision, and none of them is used. */
function readVarint(bytes: Uint8Array, from: number): { value: number; end: number } {
  let value = 0;
  for (let i = 0; i < MAX_VARINT_BYTES; i++) {
    const byte = bytes[from + i];
    if (byte === undefined) throw new DecodeError(FORMAT, from + i, "the number is cut off");
    value += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80) return { value, end: from + i + 1 };
  }
  throw new DecodeError(FORMAT, from, "the number is too long");
}
