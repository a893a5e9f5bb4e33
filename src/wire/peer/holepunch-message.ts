import { addressBytes, addressFromBytes, type PeerAddress } from "../../base/address.ts";
import { readU16, readU32, writeU16, writeU32 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";

/**
 * A holepunch message (BEP 55). `rendezvous` asks the receiver to connect the sender with a third peer; `connect` asks the
 * receiver to connect to a peer over uTP, which does the same at this moment; `error` says that a rendezvous failed.
 */
interface HolepunchMessage {
  readonly kind: HolepunchKind;
  readonly address: PeerAddress;
  /** Error code, see {@link HOLEPUNCH_ERROR}; may be undefined by BEP 55. 0 unless `kind` is `error`. */
  readonly error: number;
}

type HolepunchKind = "rendezvous" | "connect" | "error";

/** Error codes of a failed rendezvous (BEP 55). */
export const HOLEPUNCH_ERROR = { noSuchPeer: 1, notConnected: 2, noSupport: 3, noSelf: 4 } as const;

const FORMAT = "holepunch message";
const KINDS: readonly HolepunchKind[] = ["rendezvous", "connect", "error"];
const HEAD_BYTES = 2;
const PORT_BYTES = 2;
const ERROR_BYTES = 4;

/** Encodes the payload that follows the extension id. */
export function encodeHolepunchMessage({ kind, address, error }: HolepunchMessage): Uint8Array<ArrayBuffer> {
  const host = addressBytes(address.host) ?? new Uint8Array(4);
  const bytes = new Uint8Array(HEAD_BYTES + host.length + PORT_BYTES + ERROR_BYTES);
  bytes[0] = KINDS.indexOf(kind);
  bytes[1] = host.length === 4 ? 0 : 1;
  bytes.set(host, HEAD_BYTES);
  writeU16(bytes, HEAD_BYTES + host.length, address.port);
  writeU32(bytes, HEAD_BYTES + host.length + PORT_BYTES, error);
  return bytes;
}

/** Decodes the payload that follows the extension id; undefined for an unknown message type. Some peers omit the error field if
 * there is no error. Throws `DecodeError`. */
export function decodeHolepunchMessage(bytes: Uint8Array): HolepunchMessage | undefined {
  const kind = KINDS[bytes[0] ?? KINDS.length];
  if (bytes.length === 0) throw new DecodeError(FORMAT, 0, "expected a type");
  if (kind === undefined) return undefined;
  const family = bytes[1];
  if (family !== 0 && family !== 1) throw new DecodeError(FORMAT, 1, "expected an IPv4 or IPv6 address");
  const portAt = HEAD_BYTES + (family === 0 ? 4 : 16);
  const errorAt = portAt + PORT_BYTES;
  if (bytes.length < errorAt) throw new DecodeError(FORMAT, bytes.length, "truncated address");
  const address = {
    host: addressFromBytes(bytes.subarray(HEAD_BYTES, portAt)),
    port: readU16(bytes, portAt),
  };
  const error = bytes.length >= errorAt + ERROR_BYTES ? readU32(bytes, errorAt) : 0;
  return { kind, address, error };
}
