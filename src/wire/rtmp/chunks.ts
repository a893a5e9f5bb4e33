import { concatBytes, readU32, writeU32 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";

/** A message of RTMP ("Adobe's Real Time Messaging Protocol" 1.0, section 6). */
export interface RtmpMessage {
  /** See {@link RTMP_TYPE}. */
  readonly type: number;
  /** 0 for the connection itself. */
  readonly streamId: number;
  /** In ms, modulo 2^32. */
  readonly timestamp: number;
  readonly payload: Uint8Array;
}

/** Message types (sections 5.4 and 7.1). */
export const RTMP_TYPE = {
  chunkSize: 1,
  abort: 2,
  acknowledgement: 3,
  userControl: 4,
  windowSize: 5,
  peerBandwidth: 6,
  audio: 8,
  video: 9,
  dataAmf3: 15,
  commandAmf3: 17,
  data: 18,
  command: 20,
  aggregate: 22,
} as const;

/** Publishers use three to six chunk streams. */
const MAX_CHUNK_STREAMS = 16;
const DEFAULT_CHUNK_BYTES = 128;
const EXTENDED = 0xff_ffff;
/** Bytes of a message header, by its format (section 5.3.1.2). */
const HEADER_BYTES = [11, 7, 3, 0] as const;

/** The state of one chunk stream. */
interface ChunkStream {
  timestamp: number;
  /** The timestamp field of the last header: added again by the next message without a header. */
  delta: number;
  hasExtended: boolean;
  length: number;
  type: number;
  streamId: number;
  /** Grows with the received bytes: a length alone must not cost memory. */
  parts: Uint8Array[];
  partBytes: number;
}

/** Joins the chunks of a connection to messages (section 5.3). */
export class RtmpChunkReader {
  /** The largest message that is accepted, in bytes. */
  limitBytes: number;
  readonly #streams = new Map<number, ChunkStream>();
  #chunkBytes = DEFAULT_CHUNK_BYTES;
  /** The begin of a header. */
  #pending: Uint8Array = new Uint8Array(0);
  /** The chunk whose payload arrives, and how many bytes of it are missing. */
  #open: { readonly stream: ChunkStream; left: number } | undefined;
  #partialBytes = 0;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  /** Takes received bytes, which it does not keep, and returns the messages that are complete. Throws {@link DecodeError}. */
  push(bytes: Uint8Array): RtmpMessage[] {
    let input = this.#pending.length > 0 ? concatBytes([this.#pending, bytes]) : bytes;
    const messages: RtmpMessage[] = [];
    for (;;) {
      const used = this.#open ? this.#readPayload(this.#open, input, messages) : this.#readHeader(input);
      if (used === 0 && (!this.#open || this.#open.left > 0)) break;
      input = input.subarray(used);
    }
    this.#pending = input.slice();
    return messages;
  }

  /** Reads the header of a chunk and returns its size; 0 if it is not complete. */
  #readHeader(input: Uint8Array): number {
    const basic = readBasicHeader(input);
    if (!basic) return 0;
    const { format, id, bytes: at } = basic;
    const known = this.#streams.get(id);
    if (!known && format >= 2) throw fault(`chunk stream ${id} does not begin with a message header`);
    const headerBytes = HEADER_BYTES[format]!;
    const extendedAt = at + headerBytes;
    if (input.length < extendedAt) return 0;
    const field = headerBytes > 0 ? readU32(input, at - 1) & 0xff_ffff : undefined;
    const hasExtended = field === undefined ? known!.hasExtended : field === EXTENDED;
    const end = extendedAt + (hasExtended ? 4 : 0);
    if (input.length < end) return 0;

    const stream = known ?? this.#newStream(id);
    const isBegun = stream.partBytes > 0;
    if (headerBytes >= 7) {
      const length = readU32(input, at + 2) & 0xff_ffff;
      if (length > this.limitBytes) throw fault(`a message of ${length} bytes`);
      if (isBegun && length !== stream.length) throw fault("a message begins within another one");
      Object.assign(stream, { length, type: input[at + 6]! });
    }
    if (format === 0) stream.streamId = readU32(input, at + 7); // Little-endian, but only compared.
    stream.hasExtended = hasExtended;
    // A chunk without a header repeats the extended timestamp; only the first one of a message advances the time.
    if (field !== undefined) stream.delta = hasExtended ? readU32(input, extendedAt) : field;
    if (!isBegun) stream.timestamp = format === 0 ? stream.delta : (stream.timestamp + stream.delta) >>> 0;
    this.#open = { stream, left: Math.min(this.#chunkBytes, stream.length - stream.partBytes) };
    return end;
  }

  /** Reads payload of the open chunk and returns how much. */
  #readPayload(
    open: { readonly stream: ChunkStream; left: number },
    input: Uint8Array,
    messages: RtmpMessage[],
  ): number {
    const { stream } = open;
    const part = input.slice(0, open.left);
    open.left -= part.length;
    stream.parts.push(part);
    stream.partBytes += part.length;
    this.#partialBytes += part.length;
    if (this.#partialBytes > this.limitBytes) throw fault("too many unfinished messages");
    if (open.left > 0) return part.length;
    this.#open = undefined;
    if (stream.partBytes === stream.length) this.#complete(stream, messages);
    return part.length;
  }

  #newStream(id: number): ChunkStream {
    if (this.#streams.size >= MAX_CHUNK_STREAMS) throw fault(`more than ${MAX_CHUNK_STREAMS} chunk streams`);
    const stream: ChunkStream = {
      timestamp: 0,
      delta: 0,
      hasExtended: false,
      length: 0,
      type: 0,
      streamId: 0,
      parts: [],
      partBytes: 0,
    };
    this.#streams.set(id, stream);
    return stream;
  }

  #complete(stream: ChunkStream, messages: RtmpMessage[]): void {
    const { type, streamId, timestamp } = stream;
    const payload = stream.parts.length === 1 ? stream.parts[0]! : concatBytes(stream.parts);
    this.#drop(stream);
    // These two change how later chunks are read.
    if (type === RTMP_TYPE.chunkSize) this.#setChunkSize(payload);
    else if (type === RTMP_TYPE.abort) this.#abort(payload);
    else messages.push({ type, streamId, timestamp, payload });
  }

  #drop(stream: ChunkStream): void {
    this.#partialBytes -= stream.partBytes;
    stream.parts = [];
    stream.partBytes = 0;
  }

  #setChunkSize(payload: Uint8Array): void {
    const size = payload.length >= 4 ? readU32(payload, 0) : 0;
    if (size < 1 || size > EXTENDED) throw fault(`a chunk size of ${size}`);
    this.#chunkBytes = size;
  }

  #abort(payload: Uint8Array): void {
    const stream = payload.length >= 4 ? this.#streams.get(readU32(payload, 0)) : undefined;
    if (stream) this.#drop(stream);
  }
}

interface BasicHeader {
  readonly format: number;
  /** Id of the chunk stream. */
  readonly id: number;
  readonly bytes: number;
}

/** Reads a basic header (section 5.3.1.1); undefined if it is not complete. */
function readBasicHeader(input: Uint8Array): BasicHeader | undefined {
  if (input.length < 1) return undefined;
  const format = input[0]! >> 6;
  const small = input[0]! & 0x3f;
  if (small >= 2) return { format, id: small, bytes: 1 };
  const bytes = small === 0 ? 2 : 3;
  if (input.length < bytes) return undefined;
  return { format, id: 64 + input[1]! + (bytes === 3 ? 256 * input[2]! : 0), bytes };
}

/** Encodes a message as one chunk with a full header; `chunkBytes` is the chunk size that was announced. The chunk stream is 2 to 63. */
export function encodeRtmpMessage(
  { type, streamId, timestamp, payload }: RtmpMessage,
  chunkStream: number,
  chunkBytes: number,
): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(12);
  header[0] = chunkStream;
  writeU32(header, 1, timestamp << 8);
  writeU32(header, 4, (payload.length << 8) | type);
  new DataView(header.buffer).setUint32(8, streamId, true);
  const parts: Uint8Array[] = [header];
  for (let at = 0; at < payload.length; at += chunkBytes) {
    if (at > 0) parts.push(Uint8Array.of(0xc0 | chunkStream));
    parts.push(payload.subarray(at, at + chunkBytes));
  }
  return concatBytes(parts);
}

function fault(reason: string): DecodeError {
  return new DecodeError("RTMP", 0, reason);
}
