import type { PeerAddress } from "../../base/address.ts";
import type { Ed25519Sign } from "../../base/signature.ts";
import type { SignedItem } from "../../net/contract.ts";
import type { Hold, TransferContent } from "../../transfer/contract.ts";
import { encodeBencode } from "../../wire/bencode-encode.ts";
import { encodeHeadRecord, HEAD_SALT } from "../../wire/dht/head-record.ts";
import { itemMessage } from "../../wire/dht/item.ts";
import { SUCCESSOR_SALT } from "../../wire/live/successor.ts";
import type { LiveTransportFile } from "../../wire/live/transport-file.ts";
import type { BroadcastRequest } from "./broadcast-contract.ts";
import type { BroadcastIdentity } from "./identity.ts";

/** What the transfer of a broadcast is made of. */
export interface BroadcastContentOptions {
  readonly request: BroadcastRequest;
  readonly identity: Pick<BroadcastIdentity, "sign">;
  readonly file: LiveTransportFile;
  /** Peers of an earlier run, tried first. */
  readonly knownPeers: readonly PeerAddress[];
  /** The signed record of the stream that replaces this one. */
  readonly successor?: Uint8Array;
  /** The time of day in UNIX ms. */
  unixMs(): number;
}

/** Returns the content of a broadcast's transfer: as its source, or as a relay while another program is on air. */
export function broadcastContent(
  role: "source" | "relay",
  options: BroadcastContentOptions,
): TransferContent {
  const { request, identity, file, knownPeers } = options;
  const { uploadLimit, relays, isPrivate } = request;
  const isHead = role === "source" && !isPrivate;
  return {
    infohash: file.infohash,
    // A private source is known to its relays only.
    trackers: isPrivate ? [] : file.trackers,
    // The local user chose these trackers, so they may be in the local network.
    localTrackers: isPrivate || request.allowPrivateUrls === false ? [] : request.trackers,
    peers: relays,
    displayName: file.meta.title ?? file.info.name,
    live: {
      file,
      role,
      roleKey: { role, sign: identity.sign },
      ...(uploadLimit !== undefined && { uploadBytesPerSecond: uploadLimit }),
      ...(isPrivate && { only: relays }),
      knownPeers: isPrivate ? [] : knownPeers,
      ...(role === "source" && request.isStandby && { mayShareEpoch: true }),
      ...(isHead &&
        options.successor && { successor: successorItem(options.successor, file, identity.sign) }),
      ...(isHead && { head: headRecord(file, identity.sign, options.unixMs() / 1000) }),
    },
  };
}

/** Makes the DHT item of a successor record: viewers that know only the old key find the new stream by it. */
function successorItem(record: Uint8Array, { info }: LiveTransportFile, sign: Ed25519Sign): SignedItem {
  const value = encodeBencode(record);
  const signature = sign(itemMessage(SUCCESSOR_SALT, 1, value));
  return { key: info.publicKey, salt: SUCCESSOR_SALT, sequence: 1, value, signature };
}

/** Opens the transfer of a source. A local viewer's transfer of the stream is ended; its players reconnect to the
 * source. */
export function holdSource(open: (content: TransferContent) => Hold, content: TransferContent): Hold {
  const hold = open(content);
  if (hold.transfer.live?.content.role === "source") return hold;
  hold.release();
  return open(content);
}

/**
 * Makes the head record of a stream, signed by its source: viewers that know only the key find the stream by it (live
 * protocol: Head record). Its sequence number is the start time, because its content does not change before the next
 * start.
 */
export function headRecord(
  { infohash, info }: LiveTransportFile,
  sign: Ed25519Sign,
  startedAtUnixSeconds: number,
): SignedItem {
  const value = encodeHeadRecord(infohash);
  const sequence = Math.floor(startedAtUnixSeconds);
  const signature = sign(itemMessage(HEAD_SALT, sequence, value));
  return { key: info.publicKey, salt: HEAD_SALT, sequence, value, signature };
}
