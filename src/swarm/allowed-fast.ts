import { addressBytes } from "../base/address.ts";
import { concatBytes } from "../base/bytes.ts";
import { type Infohash, infohashBytes, type Sha1 } from "../base/ids.ts";

/** BEP 6 suggests ten pieces. */
const MAX_FAST_PIECES = 10;
/** As they go to anybody, choked or not, they are few where pieces are large: 4 MiB, and one piece at least. */
const MAX_FAST_BYTES = 4 * 1024 * 1024;

/** How many pieces each choked peer may have, for content of `pieceCount` pieces of `pieceLength` bytes. */
export function allowedFastCount(pieceCount: number, pieceLength: number): number {
  const affordable = Math.max(1, Math.floor(MAX_FAST_BYTES / pieceLength));
  return Math.min(MAX_FAST_PIECES, pieceCount, affordable);
}

/**
 * The pieces that a peer may have though it is choked (BEP 6, "Allowed Fast Set Generation"): `count` of them, the
 * same for everybody in its /24, so that reconnecting from elsewhere in the network brings nothing new. Empty for
 * IPv6, for which there is no rule.
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
