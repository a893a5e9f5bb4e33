import { createHash } from "node:crypto";

/** A WebRTC offer takes a few KiB; an announce to a tracker with ten offers takes about 40 KiB. */
const MAX_MESSAGE_BYTES = 64 * 1024;
/** RFC 6455 5.5: control frames are short and not fragmented. */
const MAX_CONTROL_BYTES = 125;
/** RFC 6455 1.3. */
const HANDSHAKE_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** Computes `Sec-WebSocket-Accept` from `Sec-WebSocket-Key` (RFC 6455 4.2.2). */
export function acceptKey(key: string): string {
  return createHash("sha1").update(`${key}${HANDSHAKE_GUID}`).digest("base64");
}

/** A complete message, a ping to answer, or the end with a status code (RFC 6455 7.4). */
type FrameEvent =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "binary"; readonly bytes: Uint8Array }
  | { readonly kind: "ping"; readonly bytes: Uint8Array }
  | { readonly kind: "close"; readonly code: number };

/**
 * Decodes the frames that the other side sends (RFC 6455 5.2): messages of at most 64 KiB, all of them text or all of them
 * binary. Frames from a browser must be masked, frames from a server must not.
 */
export class FrameReader {
  readonly #isMasked: boolean;
  readonly #messages: "text" | "binary";
  /** The bytes `[#start, #end)` of the buffer are not decoded yet. */
  #buffer = new Uint8Array(0);
  #start = 0;
  #end = 0;
  #parts: Uint8Array[] = [];
  #partBytes = 0;
  #isOver = false;

  constructor(from: "browser" | "server" = "browser", messages: "text" | "binary" = "text") {
    this.#isMasked = from === "browser";
    this.#messages = messages;
  }

  /** Decodes bytes to events. `close` is the last event; a protocol error is a `close` too. */
  read(bytes: Uint8Array): FrameEvent[] {
    const events: FrameEvent[] = [];
    if (this.#isOver) return events;
    this.#append(bytes);
    while (!this.#isOver) {
      const event = this.#next();
      if (event === "more") break;
      if (event === undefined) continue;
      events.push(event);
      this.#isOver = event.kind === "close";
    }
    if (this.#isOver || this.#start === this.#end) {
      this.#buffer = new Uint8Array(0);
      this.#start = this.#end = 0;
    }
    return events;
  }

  /** The buffer doubles when it is full, because a frame may arrive a byte at a time. */
  #append(bytes: Uint8Array): void {
    const length = this.#end - this.#start;
    if (this.#end + bytes.length > this.#buffer.length) {
      const fitsAtFront = 2 * length + bytes.length <= this.#buffer.length;
      const into = fitsAtFront ? this.#buffer : new Uint8Array(2 * length + bytes.length);
      into.set(this.#buffer.subarray(this.#start, this.#end));
      this.#buffer = into;
      this.#start = 0;
      this.#end = length;
    }
    this.#buffer.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  /** Decodes a frame: returns its event, undefined if it causes none, or `more` if it is incomplete. */
  #next(): FrameEvent | "more" | undefined {
    const at = this.#buffer.subarray(this.#start, this.#end);
    if (at.length < 2) return "more";
    const opcode = at[0]! & 0x0f;
    const isFinal = (at[0]! & 0x80) !== 0;
    const isControl = opcode >= 8;
    const short = at[1]! & 0x7f;
    // Reserved bits belong to extensions, which are never negotiated.
    if ((at[0]! & 0x70) !== 0 || ((at[1]! & 0x80) !== 0) !== this.#isMasked)
      return { kind: "close", code: 1002 };
    if (isControl && (!isFinal || short > MAX_CONTROL_BYTES)) return { kind: "close", code: 1002 };
    if (short === 127) return { kind: "close", code: 1009 };
    const lengthEnd = short === 126 ? 4 : 2;
    const head = lengthEnd + (this.#isMasked ? 4 : 0);
    if (at.length < head) return "more";
    const length = short === 126 ? (at[2]! << 8) | at[3]! : short;
    if (!isControl && length + this.#partBytes > MAX_MESSAGE_BYTES) return { kind: "close", code: 1009 };
    if (at.length < head + length) return "more";
    const bytes = at.subarray(head, head + length);
    const payload = this.#isMasked ? masked(bytes, at.subarray(lengthEnd, head)) : bytes.slice();
    this.#start += head + length;
    return isControl ? control(opcode, payload) : this.#part(opcode, payload, isFinal);
  }

  #part(opcode: number, payload: Uint8Array, isFinal: boolean): FrameEvent | undefined {
    const isFirst = this.#parts.length === 0;
    if (opcode !== (isFirst ? OPCODE[this.#messages] : OPCODE.continuation)) {
      const isOtherKind = isFirst && (opcode === OPCODE.text || opcode === OPCODE.binary);
      return { kind: "close", code: isOtherKind ? 1003 : 1002 };
    }
    this.#parts.push(payload);
    // Empty fragments count too, so that their number is limited.
    this.#partBytes += payload.length + 1;
    if (!isFinal) return undefined;
    const whole = joined(this.#parts);
    this.#parts = [];
    this.#partBytes = 0;
    if (this.#messages === "binary") return { kind: "binary", bytes: whole };
    try {
      return { kind: "text", text: new TextDecoder("utf-8", { fatal: true }).decode(whole) };
    } catch {
      return { kind: "close", code: 1007 };
    }
  }
}

/** Encodes a text message of at most 65535 bytes. A client passes four random bytes as `mask`, here and below. */
export function textFrame(text: string, mask?: Uint8Array): Uint8Array {
  return frame(OPCODE.text, new TextEncoder().encode(text), mask);
}

/** Encodes a binary message of at most 65535 bytes. */
export function binaryFrame(bytes: Uint8Array): Uint8Array {
  return frame(OPCODE.binary, bytes, undefined);
}

/** Encodes the response to a ping with the same bytes. */
export function pongFrame(bytes: Uint8Array, mask?: Uint8Array): Uint8Array {
  return frame(OPCODE.pong, bytes, mask);
}

/** Encodes the last frame with a status code (RFC 6455 7.4). */
export function closeFrame(code: number, mask?: Uint8Array): Uint8Array {
  return frame(OPCODE.close, Uint8Array.of(code >> 8, code & 0xff), mask);
}

function frame(opcode: number, payload: Uint8Array, mask: Uint8Array | undefined): Uint8Array {
  const { length } = payload;
  if (length > 0xffff) throw new RangeError(`expected at most 65535 bytes, got ${length}`);
  const [short, ...long] = length <= 125 ? [length] : [126, length >> 8, length & 0xff];
  const head = Uint8Array.of(0x80 | opcode, (mask ? 0x80 : 0) | short!, ...long);
  return mask ? joined([head, mask, masked(payload, mask)]) : joined([head, payload]);
}

function control(opcode: number, payload: Uint8Array): FrameEvent | undefined {
  if (opcode === OPCODE.ping) return { kind: "ping", bytes: payload };
  if (opcode === OPCODE.pong) return undefined;
  return { kind: "close", code: opcode === OPCODE.close ? 1000 : 1002 };
}

/** RFC 6455 5.3: the same operation masks and unmasks. */
function masked(payload: Uint8Array, mask: Uint8Array): Uint8Array {
  const result = payload.slice();
  // Not map(): this runs for every byte that a page sends.
  for (let i = 0; i < result.length; i++) result[i]! ^= mask[i & 3]!;
  return result;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1) return parts[0]!;
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
