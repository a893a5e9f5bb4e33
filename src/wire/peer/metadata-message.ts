import { concatBytes } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { decodeBencodePrefix, dictOf, integerOf } from "../bencode.ts";
import { bencodeDict, encodeBencode } from "../bencode-encode.ts";

/** A message of `ut_metadata` (BEP 9). Each piece of the metadata is 16 KiB, except the last, which may be shorter. */
export type MetadataMessage =
  | { readonly kind: "request"; readonly piece: number }
  /** `bytes` is a view of the input; `totalBytes` is the size of the whole metadata. */
  | { readonly kind: "data"; readonly piece: number; readonly totalBytes: number; readonly bytes: Uint8Array }
  | { readonly kind: "reject"; readonly piece: number };

/** Size of each piece of metadata except the last (BEP 9). */
export const METADATA_PIECE_BYTES = 16 * 1024;

const FORMAT = "metadata message";
const KINDS = ["request", "data", "reject"] as const;

/** Encodes the payload that follows the extension id. */
export function encodeMetadataMessage(message: MetadataMessage): Uint8Array<ArrayBuffer> {
  const head = encodeBencode(
    bencodeDict({
      msg_type: KINDS.indexOf(message.kind),
      piece: message.piece,
      total_size: message.kind === "data" ? message.totalBytes : undefined,
    }),
  );
  return message.kind === "data" ? concatBytes([head, message.bytes]) : head;
}

/** Decodes the payload that follows the extension id. Returns undefined for an unknown message type, because BEP 9 requires peers
 * to ignore it. Throws `DecodeError` if the payload is malformed. */
export function decodeMetadataMessage(bytes: Uint8Array): MetadataMessage | undefined {
  const { value, end } = decodeBencodePrefix(bytes, { maxDepth: 4, maxTokens: 64, lenientKeyOrder: true });
  const dict = dictOf(value);
  const type = integerOf(dict?.get("msg_type"));
  if (!dict || type === undefined) throw new DecodeError(FORMAT, 0, "expected a dictionary with msg_type");
  const kind = KINDS[type];
  if (kind === undefined) return undefined;
  const piece = integerOf(dict.get("piece"));
  if (piece === undefined || piece < 0) throw new DecodeError(FORMAT, 0, "expected a piece number");
  if (kind !== "data") return { kind, piece };
  const totalBytes = integerOf(dict.get("total_size"));
  if (totalBytes === undefined || totalBytes <= 0) throw new DecodeError(FORMAT, 0, "expected total_size");
  const data = bytes.subarray(end);
  const expected = Math.min(METADATA_PIECE_BYTES, totalBytes - piece * METADATA_PIECE_BYTES);
  if (data.length !== expected)
    throw new DecodeError(FORMAT, end, `expected ${expected} bytes, not ${data.length}`);
  return { kind, piece, totalBytes, bytes: data };
}
