import type { Ed25519Sign } from "../../base/signature.ts";
import { itemMessage } from "../../wire/dht-item.ts";
import { encodeHeadRecord, HEAD_SALT } from "../../wire/live-head-record.ts";
import type { LiveTransportFile } from "../../wire/live-transport.ts";
import type { SignedItem } from "../reach/contract.ts";

/** The head record of a stream, signed by its source: where the stream is, for whoever knows its key alone (live protocol:
 * Head record). It is as new as the start of the broadcast, since nothing in it changes before the next one. */
export function headRecord(
  { infohash, contentId, info }: LiveTransportFile,
  sign: Ed25519Sign,
  startedAtUnixSeconds: number,
): SignedItem {
  const value = encodeHeadRecord({ infohash, contentId });
  const sequence = Math.floor(startedAtUnixSeconds);
  const signature = sign(itemMessage(HEAD_SALT, sequence, value));
  return { key: info.publicKey, salt: HEAD_SALT, sequence, value, signature };
}
