import { readU16, readU32, readU48, writeU16, writeU32, writeU48 } from "../../base/bytes.ts";
import { CHUNK_HEAD_BYTES, type ChunkMessage, decodeChunk, writeChunkHead } from "./chunk-message.ts";
import { headerBytes } from "./header.ts";
import { expectAtLeast, expectBytes, LIVE_KIND, liveMessageError } from "./message-kind.ts";
import { decodePaths, encodePaths, type PathsMessage } from "./paths.ts";
import {
  type CancelMessage,
  decodeCancel,
  decodeHeaderRequest,
  decodeLacking,
  decodeRequest,
  encodeCancel,
  encodeHeaderRequest,
  encodeLacking,
  encodeRequest,
  type HeaderRequestMessage,
  type LackingMessage,
  type RequestMessage,
} from "./request.ts";
import { decodeStat, type StatMessage } from "./stat.ts";
import {
  type ByeMessage,
  decodeBye,
  decodeRefused,
  decodeSubscribe,
  decodeSubscribed,
  decodeUnsubscribe,
  encodeBye,
  encodeRefused,
  encodeSubscribe,
  encodeSubscribed,
  encodeUnsubscribe,
  type RefusedMessage,
  type SubscribedMessage,
  type SubscribeMessage,
  type UnsubscribeMessage,
} from "./subscription.ts";
import { emptyWindow, type LiveWindow, readWindow, windowBytes, writeWindow } from "./window.ts";

/** First message of each side (HELLO) with the newest signed header that the sender has; a view of the input. */
interface HelloMessage {
  readonly kind: "hello";
  readonly header: Uint8Array | undefined;
}

/** The encoded header of a piece (HEADER), pushed or requested; a view of the input. */
interface HeaderMessage {
  readonly kind: "header";
  readonly isAnswer: boolean;
  readonly header: Uint8Array;
}

/** The pieces that a peer has, and its load (WIN). */
interface WindowMessage {
  readonly kind: "window";
  readonly window: LiveWindow;
}

/** Requests a reply with the same token (PING), or is that reply (PONG). `clockMs` is the wall clock of the sender in UNIX ms. */
interface PingMessage {
  readonly kind: "ping" | "pong";
  readonly token: number;
  readonly clockMs: number;
}

/** A message of `sl_live`. */
type LiveMessage =
  | HelloMessage
  | HeaderMessage
  | ChunkMessage
  | SubscribeMessage
  | SubscribedMessage
  | RefusedMessage
  | UnsubscribeMessage
  | WindowMessage
  | PathsMessage
  | RequestMessage
  | CancelMessage
  | LackingMessage
  | HeaderRequestMessage
  | PingMessage
  | StatMessage
  | ByeMessage;

const ANSWER = 1;

/** Decodes the payload that follows the extension id. Returns undefined for an unknown kind, which the caller ignores.
 * @param window Receives the contents of a WIN; a new window if omitted.
 * @throws DecodeError */
export function decodeLiveMessage(
  bytes: Uint8Array,
  stripeCount: number,
  window?: LiveWindow,
): LiveMessage | undefined {
  switch (bytes[0]) {
    case undefined:
      throw liveMessageError(0, 0, "empty message");
    case LIVE_KIND.hello:
      return decodeHello(bytes, stripeCount);
    case LIVE_KIND.header:
      expectBytes(bytes, 2 + headerBytes(stripeCount));
      return { kind: "header", isAnswer: (bytes[1]! & ANSWER) !== 0, header: bytes.subarray(2) };
    case LIVE_KIND.chunk:
      return decodeChunk(bytes, stripeCount);
    case LIVE_KIND.subscribe:
      return decodeSubscribe(bytes, stripeCount);
    case LIVE_KIND.subscribed:
      return decodeSubscribed(bytes, stripeCount);
    case LIVE_KIND.refused:
      return decodeRefused(bytes, stripeCount);
    case LIVE_KIND.unsubscribe:
      return decodeUnsubscribe(bytes, stripeCount);
    case LIVE_KIND.window:
      return decodeWindow(bytes, window ?? emptyWindow(stripeCount));
    case LIVE_KIND.paths:
      return decodePaths(bytes, stripeCount);
    case LIVE_KIND.request:
      return decodeRequest(bytes, stripeCount);
    case LIVE_KIND.cancel:
      return decodeCancel(bytes, stripeCount);
    case LIVE_KIND.lacking:
      return decodeLacking(bytes, stripeCount);
    case LIVE_KIND.headerRequest:
      return decodeHeaderRequest(bytes);
    case LIVE_KIND.ping:
    case LIVE_KIND.pong:
      return decodePing(bytes);
    case LIVE_KIND.stat:
      return decodeStat(bytes);
    case LIVE_KIND.bye:
      return decodeBye(bytes);
    default:
      return undefined;
  }
}

/** Encodes the payload that follows the extension id. Use `encodeStat` for a STAT, which is signed, and `writeChunkHead` and
 * `writeWindow` to avoid copies. */
export function encodeLiveMessage(message: Exclude<LiveMessage, StatMessage>): Uint8Array<ArrayBuffer> {
  switch (message.kind) {
    case "hello":
      return encodeHello(message);
    case "header":
      return joined([LIVE_KIND.header, message.isAnswer ? ANSWER : 0], message.header);
    case "chunk": {
      const bytes = new Uint8Array(CHUNK_HEAD_BYTES + message.bytes.length);
      writeChunkHead(bytes, message);
      bytes.set(message.bytes, CHUNK_HEAD_BYTES);
      return bytes;
    }
    case "subscribe":
      return encodeSubscribe(message);
    case "subscribed":
      return encodeSubscribed(message);
    case "refused":
      return encodeRefused(message);
    case "unsubscribe":
      return encodeUnsubscribe(message);
    case "window": {
      const bytes = new Uint8Array(windowBytes(message.window.runs.length));
      writeWindow(bytes, message.window);
      return bytes;
    }
    case "paths":
      return encodePaths(message.paths);
    case "request":
      return encodeRequest(message);
    case "cancel":
      return encodeCancel(message);
    case "lacking":
      return encodeLacking(message);
    case "headerRequest":
      return encodeHeaderRequest(message);
    case "ping":
    case "pong":
      return encodePing(message);
    case "bye":
      return encodeBye(message);
  }
}

function decodeHello(bytes: Uint8Array, stripeCount: number): HelloMessage {
  expectAtLeast(bytes, 4);
  const length = readU16(bytes, 2);
  expectBytes(bytes, 4 + length);
  if (length === 0) return { kind: "hello", header: undefined };
  expectBytes(bytes, 4 + headerBytes(stripeCount));
  return { kind: "hello", header: bytes.subarray(4) };
}

function encodeHello({ header }: HelloMessage): Uint8Array<ArrayBuffer> {
  const bytes = joined([LIVE_KIND.hello, 0, 0, 0], header ?? new Uint8Array(0));
  writeU16(bytes, 2, header?.length ?? 0);
  return bytes;
}

function decodeWindow(bytes: Uint8Array, window: LiveWindow): WindowMessage {
  readWindow(bytes, window);
  return { kind: "window", window };
}

function decodePing(bytes: Uint8Array): PingMessage {
  expectBytes(bytes, 12);
  const kind = bytes[0] === LIVE_KIND.ping ? "ping" : "pong";
  return { kind, token: readU32(bytes, 2), clockMs: readU48(bytes, 6) };
}

function encodePing({ kind, token, clockMs }: PingMessage): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(12);
  bytes[0] = LIVE_KIND[kind];
  writeU32(bytes, 2, token);
  writeU48(bytes, 6, clockMs);
  return bytes;
}

function joined(head: readonly number[], body: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(head.length + body.length);
  bytes.set(head);
  bytes.set(body, head.length);
  return bytes;
}
