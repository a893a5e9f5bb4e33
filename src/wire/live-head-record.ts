import { latin1Bytes } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { type ContentId, type Infohash, infohashBytes, infohashOf } from "../base/ids.ts";
import { bencodeDict, encodeBencode } from "./bencode-encode.ts";
import { viewBencode } from "./bencode-view.ts";
import { DHT_ID_BYTES } from "./dht-id.ts";

/** Where a stream is at present, as its source keeps it in the DHT (live protocol: Head record; BEP 44, 46). */
export interface LiveHeadRecord {
  readonly infohash: Infohash;
  readonly contentId: ContentId;
}

/** The salt under which a stream's key keeps its head record. */
export const HEAD_SALT = latin1Bytes("live");

/** The value of the record: of the form that BEP 46 reads, too. */
export function encodeHeadRecord({ infohash, contentId }: LiveHeadRecord): Uint8Array<ArrayBuffer> {
  const cid = infohashBytes(contentId as string as Infohash);
  return encodeBencode(bencodeDict({ cid, ih: infohashBytes(infohash) }));
}

/** Reads the value of a record; other members are ignored. Throws `DecodeError`. */
export function decodeHeadRecord(bytes: Uint8Array): LiveHeadRecord {
  const view = viewBencode(bytes);
  const idOf = (name: string) => {
    const id = view.get(name)?.bytes();
    if (id?.length !== DHT_ID_BYTES) throw new DecodeError("head record", 0, `expected 20 bytes of ${name}`);
    return infohashOf(id);
  };
  return { infohash: idOf("ih"), contentId: idOf("cid") as string as ContentId };
}
