import { latin1Text, readU32 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { encodeUtf8 } from "../../base/utf8.ts";
import { MAX_TUNER_PAYLOAD, readTunerValues, type TunerFrame, tunerFrame, tunerValue } from "./frame.ts";

const GETSET_REQUEST = 4;
const GETSET_REPLY = 5;
const TAG_NAME = 0x03;
const TAG_VALUE = 0x04;
const TAG_ERROR = 0x05;
const TAG_LOCK_KEY = 0x15;
/** Longer than any variable of a tuner. */
const MAX_NAME = 64;
/** Longest value of a request; a list of PIDs of libhdhomerun has less. */
const MAX_VALUE = 1_024;
/** Longest text of a reply: its name, tags and lengths must fit as well. */
export const MAX_TUNER_TEXT = MAX_TUNER_PAYLOAD - MAX_NAME - 16;
const FORMAT = "tuner control";

/** A request to read or change a variable of the tuner. */
export interface TunerControlRequest {
  /** Such as `/tuner0/channel`. */
  readonly name: string;
  /** The new value; undefined if the client only reads. */
  readonly value?: string;
  /** The key with which the client has locked the tuner; 0: none. */
  readonly lockKey: number;
}

/** Reads a request. Throws `DecodeError`. */
export function readTunerControl({ type, payload }: TunerFrame): TunerControlRequest {
  if (type !== GETSET_REQUEST) throw new DecodeError(FORMAT, 0, "not a request for a variable");
  let [name, text, lockKey] = ["", undefined as string | undefined, 0];
  for (const { tag, value } of readTunerValues(payload)) {
    if (tag === TAG_NAME) name = textOf(value, MAX_NAME);
    else if (tag === TAG_VALUE) text = textOf(value, MAX_VALUE);
    else if (tag === TAG_LOCK_KEY && value.length === 4) lockKey = readU32(value, 0);
  }
  if (name === "") throw new DecodeError(FORMAT, 0, "the request names no variable");
  return { name, lockKey, ...(text !== undefined && { value: text }) };
}

/** Writes the value of a variable, which is cut to {@link MAX_TUNER_TEXT} bytes. */
export function tunerControlReply(name: string, value: string): Uint8Array<ArrayBuffer> {
  return tunerFrame(GETSET_REPLY, [
    tunerValue(TAG_NAME, bytesOf(name)),
    tunerValue(TAG_VALUE, bytesOf(value)),
  ]);
}

/** Writes that a request was refused; clients show the text to the user. */
export function tunerControlError(text: string): Uint8Array<ArrayBuffer> {
  return tunerFrame(GETSET_REPLY, [tunerValue(TAG_ERROR, bytesOf(`ERROR: ${text}`))]);
}

/** Texts end with a zero byte, which some clients omit. */
function textOf(bytes: Uint8Array, limit: number): string {
  const zero = bytes.indexOf(0);
  const text = latin1Text(zero < 0 ? bytes : bytes.subarray(0, zero));
  if (text.length > limit) throw new DecodeError(FORMAT, 0, "a text is too long");
  if (/[^ -~\r\n\t]/.test(text)) throw new DecodeError(FORMAT, 0, "a text is not ASCII");
  return text;
}

function bytesOf(text: string): Uint8Array {
  const bytes = encodeUtf8(text);
  const all = new Uint8Array(Math.min(bytes.length, MAX_TUNER_TEXT) + 1);
  all.set(bytes.subarray(0, all.length - 1));
  return all;
}
