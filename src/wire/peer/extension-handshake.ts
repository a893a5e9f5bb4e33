import { addressBytes, addressFromBytes } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import { decodeUtf8, encodeUtf8 } from "../../base/utf8.ts";
import { type BencodeDict, bytesOf, decodeBencode, dictOf, integerOf } from "../bencode.ts";
import { type BencodeInput, bencodeDict, encodeBencode } from "../bencode-encode.ts";
import { type LivePeerInfo, livePeerDict, readLivePeer } from "../live/peer-info.ts";

/** The handshake of the extension protocol (BEP 9, 10, 21). */
export interface ExtensionHandshake {
  /** Message id that the sender expects for each extension; 0 disables the extension. */
  readonly messages: ReadonlyMap<string, number>;
  /** Client name and version, display text. */
  readonly version?: string;
  /** The TCP port the sender listens on. */
  readonly listenPort?: number;
  /** Maximum number of requests that the sender queues. */
  readonly requestQueue?: number;
  /** Size of the info dictionary in bytes; unverified. */
  readonly metadataBytes?: number;
  /** The receiver's address as the sender sees it: a canonical IP literal. */
  readonly yourAddress?: string;
  /** The sender downloads nothing (BEP 21). */
  readonly uploadOnly?: boolean;
  /** Role of the sender in a live stream; only in the swarm of a live stream, once the sender has the info dictionary. */
  readonly live?: LivePeerInfo;
}

/** Extensions that one peer may list; about a dozen are in use. */
const MAX_MESSAGES = 64;
const MAX_NAME_LENGTH = 64;
const FORMAT = "extension handshake";

/** Encodes the payload of an extended message with id 0. */
export function encodeExtensionHandshake(handshake: ExtensionHandshake): Uint8Array<ArrayBuffer> {
  const { version, yourAddress, uploadOnly } = handshake;
  const members: Record<string, BencodeInput | undefined> = {
    m: handshake.messages,
    v: version === undefined ? undefined : encodeUtf8(version),
    p: handshake.listenPort,
    reqq: handshake.requestQueue,
    metadata_size: handshake.metadataBytes,
    yourip: yourAddress === undefined ? undefined : addressBytes(yourAddress),
    upload_only: uploadOnly === undefined ? undefined : Number(uploadOnly),
    sl: handshake.live && livePeerDict(handshake.live),
  };
  return encodeBencode(bencodeDict(members));
}

/** Decodes the payload of an extended message with id 0. A member with a wrong type or range counts as absent (BEP 10 asks to
 * ignore unknown data). Throws `DecodeError` if the dictionary is malformed. */
export function decodeExtensionHandshake(bytes: Uint8Array): ExtensionHandshake {
  const dict = dictOf(decodeBencode(bytes, { lenientKeyOrder: true }));
  if (!dict) throw new DecodeError(FORMAT, 0, "expected a dictionary");
  const version = bytesOf(dict.get("v"));
  const yourAddress = bytesOf(dict.get("yourip"));
  const uploadOnly = integerOf(dict.get("upload_only"));
  const live = readLivePeer(dictOf(dict.get("sl")));
  return {
    messages: readMessages(dictOf(dict.get("m"))),
    ...(version && { version: displayText(version) }),
    ...optional("listenPort", numberIn(dict, "p", 1, 65535)),
    ...optional("requestQueue", numberIn(dict, "reqq", 1, 1_000_000)),
    ...optional("metadataBytes", numberIn(dict, "metadata_size", 1, Number.MAX_SAFE_INTEGER)),
    ...(yourAddress && isAddress(yourAddress) && { yourAddress: addressFromBytes(yourAddress) }),
    ...(uploadOnly !== undefined && { uploadOnly: uploadOnly !== 0 }),
    ...(live && { live }),
  };
}

function readMessages(dict: BencodeDict | undefined): Map<string, number> {
  const messages = new Map<string, number>();
  for (const [name, id] of dict ?? []) {
    if (typeof id !== "number" || id < 0 || id > 255 || name.length > MAX_NAME_LENGTH) continue;
    if (messages.size >= MAX_MESSAGES)
      throw new DecodeError(FORMAT, 0, `more than ${MAX_MESSAGES} extensions`);
    messages.set(name, id);
  }
  return messages;
}

function numberIn(dict: BencodeDict, key: string, low: number, high: number): number | undefined {
  const value = integerOf(dict.get(key));
  return value !== undefined && value >= low && value <= high ? value : undefined;
}

function optional<K extends string>(key: K, value: number | undefined): { [P in K]?: number } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: number };
}

function isAddress(bytes: Uint8Array): boolean {
  return bytes.length === 4 || bytes.length === 16;
}

/** Returns at most 64 characters without control characters. */
function displayText(bytes: Uint8Array): string {
  return decodeUtf8(bytes.subarray(0, 256)).replace(/\p{C}/gu, "").slice(0, 64);
}
