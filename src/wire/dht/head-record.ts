import { latin1Bytes } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { type Infohash, infohashBytes, infohashOf } from "../../base/ids.ts";
import { bencodeDict, encodeBencode } from "../bencode-encode.ts";
import { viewBencode } from "../bencode-view.ts";
import { DHT_ID_BYTES } from "./node-id.ts";

/** Salt of the mutable DHT item that holds the head record of a stream. */
export const HEAD_SALT = latin1Bytes("live");

/** Encodes the current infohash of a live stream, which its source stores in the DHT, as a BEP 46 item (live protocol: Head
 * record). */
export function encodeHeadRecord(infohash: Infohash): Uint8Array<ArrayBuffer> {
  return encodeBencode(bencodeDict({ ih: infohashBytes(infohash) }));
}

/** Reads the infohash (`ih`, 20 bytes) from the value of a mutable DHT item (BEP 46), such as a head record. Other members are
 * ignored. Throws `DecodeError`. */
export function decodeMutableTorrent(value: Uint8Array): Infohash {
  const infohash = viewBencode(value).get("ih")?.bytes();
  if (infohash?.length !== DHT_ID_BYTES)
    throw new DecodeError("mutable torrent", 0, `expected ${DHT_ID_BYTES} bytes of ih`);
  return infohashOf(infohash);
}
