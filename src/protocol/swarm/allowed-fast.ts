import { addressBytes } from "../../base/address.ts";
import { concatBytes } from "../../base/bytes.ts";
import { type Infohash, infohashBytes, type Sha1 } from "../../base/ids.ts";

/** The number that BEP 6 suggests. */
const MAX_FAST_PIECES = 10;
/** Every choked peer may fetch these pieces, so large pieces are limited to 4 MiB, and at least one piece. */
const MAX_FAST_BYTES = 4 * 1024 * 1024;

/** Returns how many pieces each choked peer may fetch from content of `pieceCount` pieces of `pieceLength` bytes. */
export function allowedFastCount(pieceCount: number, pieceLength: number): number {
  const affordable = Math.max(1, Math.floor(MAX_FAST_BYTES / pieceLength));
  return Math.min(MAX_FAST_PIECES, pieceCount, affordable);
}

/**
 * Returns `count` pieces that a peer may request while choked (BEP 6, "Allowed Fast Set Generation"). The set is the
 * same for the whole /24, so reconnecting from another address of the network grants nothing new. Empty for IPv6,
 * for which BEP 6 has no rule.
 */
export function allowedFastSet(
  host: string,
  infohash: Infohash,
  pieceCount: number,
  count: number,
  sha1: Sha1,
): number[] {
  const address = addressBytes(host);
  if (address?.length !== 4) return [];
  address[3] = 0;
  const pieces = new Set<number>();
  const wanted = Math.min(count, pieceCount);
  let digest = sha1(concatBytes([address, infohashBytes(infohash)]));
  while (pieces.size < wanted) {
    const view = new DataView(digest.buffer, digest.byteOffset, digest.length);
    for (let at = 0; at < 20 && pieces.size < wanted; at += 4) pieces.add(view.getUint32(at) % pieceCount);
    digest = sha1(digest);
  }
  return [...pieces];
}
