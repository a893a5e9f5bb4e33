import { DecodeError } from "../base/errors.ts";
import { type Infohash, infohashOf } from "../base/ids.ts";
import { viewBencode } from "./bencode-view.ts";
import { DHT_ID_BYTES } from "./dht-id.ts";

/** Where a mutable item of the DHT leads, by its bencoded value: `ih`, 20 bytes (BEP 46). Other members are ignored: a stream's
 * head record is read like that, too. Throws `DecodeError`. */
export function decodeMutableTorrent(value: Uint8Array): Infohash {
  const infohash = viewBencode(value).get("ih")?.bytes();
  if (infohash?.length !== DHT_ID_BYTES)
    throw new DecodeError("mutable torrent", 0, `expected ${DHT_ID_BYTES} bytes of ih`);
  return infohashOf(infohash);
}
