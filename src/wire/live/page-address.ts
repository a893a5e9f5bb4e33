import { addressBytes, addressFromBytes, type PeerAddress } from "../../base/address.ts";
import { concatBytes, fromHex, toHex } from "../../base/bytes.ts";

/** The first 8 bytes of the addresses of pages: the discard-only prefix (RFC 6666), so that no other peer can call one. */
const PREFIX = Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0);
/** The port in the address of a page, which has no ports. */
const PAGE_PORT = 1;

/** The address by which a page names its engine. It is the same for all pages, and each has its own engine there. */
export const ENGINE_OF_PAGE: PeerAddress = { host: "100::", port: PAGE_PORT };

/** Returns the address of the page with this id (live protocol: Browsers); undefined unless the id has 16 hex digits and is not 0. */
export function pageAddress(id: string): PeerAddress | undefined {
  const bytes = id.length === 16 ? fromHex(id) : undefined;
  if (!bytes || bytes.every((byte) => byte === 0)) return undefined;
  return { host: addressFromBytes(concatBytes([PREFIX, bytes])), port: PAGE_PORT };
}

/** Returns the id of the page at this address, 16 hex digits; undefined if it is not the address of a page. */
export function pageIdOf({ host, port }: PeerAddress): string | undefined {
  const bytes = addressBytes(host);
  if (port !== PAGE_PORT || bytes?.length !== 16 || !PREFIX.every((byte, at) => bytes[at] === byte))
    return undefined;
  const id = toHex(bytes.subarray(8));
  return /^0+$/.test(id) ? undefined : id;
}
