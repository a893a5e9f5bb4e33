import { concatBytes, equalBytes, latin1Bytes, readU48, writeU48 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { type Infohash, infohashBytes, infohashOf } from "../../base/ids.ts";
import {
  type Ed25519Sign,
  type Ed25519Verify,
  isValidPublicKey,
  SIGNATURE_BYTES,
} from "../../base/signature.ts";
import { signedBytes } from "./trust.ts";

/** Key and infohash of the new stream, time, signature. */
export const SUCCESSOR_BYTES = 32 + 20 + 6 + SIGNATURE_BYTES;
/** Salt of the mutable DHT item (BEP 44) that holds the record, as a byte string, under the old key. */
export const SUCCESSOR_SALT = latin1Bytes("next");
const PURPOSE = "sluice-successor:";

/** The stream that replaces one whose key is changed or was copied (live protocol: Key rotation). */
export interface Successor {
  readonly publicKey: Uint8Array;
  readonly infohash: Infohash;
  /** From this time of the stream on, nothing that the old key signs is valid. */
  readonly sinceMs: number;
}

/** Encodes and signs a successor record with the old key. `infohash` is that of the old stream. */
export function encodeSuccessor(
  successor: Successor,
  infohash: Infohash,
  sign: Ed25519Sign,
): Uint8Array<ArrayBuffer> {
  const since = new Uint8Array(6);
  writeU48(since, 0, successor.sinceMs);
  const { publicKey, infohash: next } = successor;
  const bytes = concatBytes([publicKey, infohashBytes(next), since, new Uint8Array(SIGNATURE_BYTES)]);
  bytes.set(sign(signedBytes(bytes, infohash, PURPOSE)), SUCCESSOR_BYTES - SIGNATURE_BYTES);
  return bytes;
}

/** Decodes a successor record of the stream `infohash` and verifies its signature by the old key. Throws `DecodeError`. */
export function decodeSuccessor(bytes: Uint8Array, infohash: Infohash, verify: Ed25519Verify): Successor {
  const fault = (message: string) => new DecodeError("successor record", 0, message);
  if (bytes.length !== SUCCESSOR_BYTES) throw fault(`expected ${SUCCESSOR_BYTES} bytes, not ${bytes.length}`);
  const publicKey = bytes.slice(0, 32);
  if (!isValidPublicKey(publicKey)) throw fault("expected a valid Ed25519 public key");
  const next = bytes.slice(32, 52);
  if (equalBytes(next, infohashBytes(infohash))) throw fault("a stream cannot succeed itself");
  const signature = bytes.slice(SUCCESSOR_BYTES - SIGNATURE_BYTES);
  if (!verify(signedBytes(bytes, infohash, PURPOSE), signature)) throw fault("invalid signature");
  return {
    publicKey,
    infohash: infohashOf(next),
    sinceMs: readU48(bytes, 52),
  };
}
