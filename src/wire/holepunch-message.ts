import { addressBytes, addressFromBytes, type PeerAddress } from "../base/address.ts";
import { readU16, readU32, writeU16, writeU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";

/**
 * What a peer says to another about a third (BEP 55). `rendezvous`: let me and that one call each other; `connect`: call it
 * over uTP now, it calls you; `error`: it cannot be.
 */
export interface HolepunchMessage {
  readonly kind: HolepunchKind;
  readonly address: PeerAddress;
  /** Why not: see {@link HOLEPUNCH_ERROR}, or what nobody has defined yet; 0 where it is no error. */
  readonly error: number;
}

type HolepunchKind = "rendezvous" | "connect" | "error";

/** Why two peers cannot be brought together (BEP 55). */
export const HOLEPUNCH_ERROR = { noSuchPeer: 1, notConnected: 2, noSupport: 3, noSelf: 4 } as const;

const FORMAT = "holepunch message";
const KINDS: readonly HolepunchKind[] = ["rendezvous", "connect", "error"];
const HEAD_BYTES = 2;
const PORT_BYTES = 2;
const ERROR_BYTES = 4;

/** The payload that follows the extension's id. */
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

/** Reads the payload that follows the extension's id; undefined for a kind of message that is not known. Some leave the
 * error out where there is none. Throws `DecodeError`. */
export function decodeHolepunchMessage(bytes: Uint8Array): HolepunchMessage | undefined {
  const kind = KINDS[bytes[0] ?? KINDS.length];
  if (bytes.length === 0) throw new DecodeError(FORMAT, 0, "expected a type");
  if (kind === undefined) return undefined;
  const family = bytes[1];
  if (family !== 0 && family !== 1) throw new DecodeError(FORMAT, 1, "expected an IPv4 or IPv6 address");
  const portAt = HEAD_BYTES + (family === 0 ? 4 : 16);
  const errorAt = portAt + PORT_BYTES;
  if (bytes.length < errorAt) throw new DecodeError(FORMAT, bytes.length, "shorter than an address");
  const address = {
    host: addressFromBytes(bytes.subarray(HEAD_BYTES, portAt)),
    port: readU16(bytes, portAt),
  };
  const error = bytes.length >= errorAt + ERROR_BYTES ? readU32(bytes, errorAt) : 0;
  return { kind, address, error };
}
