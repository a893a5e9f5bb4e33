import { assert } from "../../base/assert.ts";
import { equalBytes, latin1Bytes } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { type Infohash, infohashBytes, infohashOf } from "../../base/ids.ts";

/** The first message of each side of a peer connection (BEP 3, 5, 6, 10). */
interface Handshake {
  readonly infohash: Infohash;
  /** 20 bytes. */
  readonly peerId: Uint8Array;
  /** The sender supports the extension protocol (BEP 10). */
  readonly extensions: boolean;
  /** The sender supports the fast extension (BEP 6). */
  readonly fast: boolean;
  /** The sender runs a DHT node (BEP 5). */
  readonly dht: boolean;
}

/** Length of a handshake. */
export const HANDSHAKE_BYTES = 68;

const PROTOCOL = latin1Bytes("\x13BitTorrent protocol");
/** Number of bytes that {@link isHandshakePrefix} needs for a final result. */
export const PROTOCOL_BYTES = PROTOCOL.length;
const [RESERVED, INFOHASH, PEER_ID] = [20, 28, 48];

/** Encodes a handshake, 68 bytes. */
export function encodeHandshake(handshake: Handshake): Uint8Array<ArrayBuffer> {
  assert(handshake.peerId.length === 20, "a peer id has 20 bytes");
  const bytes = new Uint8Array(HANDSHAKE_BYTES);
  bytes.set(PROTOCOL, 0);
  if (handshake.extensions) bytes[RESERVED + 5]! |= 0x10;
  if (handshake.fast) bytes[RESERVED + 7]! |= 0x04;
  if (handshake.dht) bytes[RESERVED + 7]! |= 0x01;
  bytes.set(infohashBytes(handshake.infohash), INFOHASH);
  bytes.set(handshake.peerId, PEER_ID);
  return bytes;
}

/** Returns false as soon as `start` cannot be the beginning of a handshake, so that other protocols are refused early. */
export function isHandshakePrefix(start: Uint8Array): boolean {
  const length = Math.min(start.length, PROTOCOL.length);
  return equalBytes(start.subarray(0, length), PROTOCOL.subarray(0, length));
}

/** Decodes the 68 bytes of a handshake; `peerId` is a copy. Throws `DecodeError` on another protocol or length. */
export function decodeHandshake(bytes: Uint8Array): Handshake {
  if (bytes.length !== HANDSHAKE_BYTES) {
    throw new DecodeError("handshake", bytes.length, `expected ${HANDSHAKE_BYTES} bytes`);
  }
  if (!equalBytes(bytes.subarray(0, RESERVED), PROTOCOL)) {
    throw new DecodeError("handshake", 0, "expected the BitTorrent protocol");
  }
  return {
    infohash: infohashOf(bytes.subarray(INFOHASH, PEER_ID)),
    peerId: bytes.slice(PEER_ID, HANDSHAKE_BYTES),
    extensions: (bytes[RESERVED + 5]! & 0x10) !== 0,
    fast: (bytes[RESERVED + 7]! & 0x04) !== 0,
    dht: (bytes[RESERVED + 7]! & 0x01) !== 0,
  };
}
