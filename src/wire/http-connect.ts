import { latin1Bytes, latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";

/** The response of an HTTP proxy to CONNECT (RFC 9110 9.3.6). */
interface ConnectResponse {
  readonly status: number;
  /** The reason phrase; printable ASCII. */
  readonly reason: string;
  /** Length of the head in bytes; later bytes belong to the tunnel. */
  readonly length: number;
}

const MAX_CONNECT_HEAD_BYTES = 16 * 1024;
const MAX_REASON_LENGTH = 80;
const FORMAT = "HTTP proxy response";

/** Encodes a CONNECT request for `authority` (`host:port`). `basic` is the base64 part of Basic credentials (RFC 7617). */
export function encodeHttpConnect(authority: string, basic: string | undefined): Uint8Array<ArrayBuffer> {
  const lines = [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`];
  if (basic !== undefined) lines.push(`Proxy-Authorization: Basic ${basic}`);
  return latin1Bytes(`${lines.join("\r\n")}\r\n\r\n`);
}

/** Decodes the head of the response; undefined while it is incomplete. `seen` bytes were already searched for its end, so that
 * a slow proxy costs no more than a fast one. Throws `DecodeError` if it is malformed or too long. */
export function decodeHttpConnectResponse(bytes: Uint8Array, seen = 0): ConnectResponse | undefined {
  const begin = latin1Text(bytes.subarray(0, 12));
  if (!"HTTP/1.".startsWith(begin.slice(0, 7))) throw new DecodeError(FORMAT, 0, "expected HTTP/1.1");
  const end = headEnd(bytes, seen);
  if (end === undefined) {
    if (bytes.length >= MAX_CONNECT_HEAD_BYTES)
      throw new DecodeError(FORMAT, bytes.length, `a head of more than ${MAX_CONNECT_HEAD_BYTES} bytes`);
    return undefined;
  }
  const head = latin1Text(bytes.subarray(0, Math.min(end, 512)));
  const match = /^HTTP\/1\.[01] (\d{3})(?: ([^\r\n]*))?\r?\n/.exec(head);
  if (match === null) throw new DecodeError(FORMAT, 0, "expected a status line");
  const reason = (match[2] ?? "").replace(/[^\x20-\x7e]/g, "").slice(0, MAX_REASON_LENGTH);
  return { status: Number(match[1]), reason: reason.trim(), length: end };
}

/** Returns the offset after the empty line. Lines may end with a bare LF (RFC 9112 2.2). */
function headEnd(bytes: Uint8Array, seen: number): number | undefined {
  const last = Math.min(bytes.length, MAX_CONNECT_HEAD_BYTES);
  for (
    let at = bytes.indexOf(0x0a, Math.max(0, seen - 2));
    at >= 0 && at < last;
    at = bytes.indexOf(0x0a, at + 1)
  ) {
    if (bytes[at + 1] === 0x0a) return at + 2;
    if (bytes[at + 1] === 0x0d && bytes[at + 2] === 0x0a) return at + 3;
  }
  return undefined;
}
