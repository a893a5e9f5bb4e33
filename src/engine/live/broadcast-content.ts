import type { PeerAddress } from "../../base/address.ts";
import type { LiveTransportFile } from "../../wire/live-transport.ts";
import type { TransferContent } from "../contract.ts";
import type { Hold } from "../holds.ts";
import type { BroadcastRequest } from "./broadcast-contract.ts";
import { headRecord } from "./head-record.ts";
import type { BroadcastIdentity } from "./identity.ts";

/** Of what the transfer of a stream of our own is made. */
export interface BroadcastContentParts {
  readonly request: BroadcastRequest;
  readonly identity: Pick<BroadcastIdentity, "sign">;
  readonly file: LiveTransportFile;
  /** Peers of before, to be called first. */
  readonly knownPeers: readonly PeerAddress[];
  /** The time of day in UNIX ms. */
  unixMs(): number;
}

/** A stream of our own as its transfer knows it: as its source, or as one who keeps it while another is on air. */
export function broadcastContent(role: "source" | "relay", parts: BroadcastContentParts): TransferContent {
  const { request, identity, file, knownPeers } = parts;
  const { uploadLimit, relays, isPrivate } = request;
  const isHead = role === "source" && !isPrivate;
  return {
    infohash: file.infohash,
    // A private source is known to nobody but its relays.
    trackers: isPrivate ? [] : file.trackers,
    // Who broadcasts has named them, and sits at this machine.
    homeTrackers: isPrivate || request.allowPrivateUrls === false ? [] : request.trackers,
    peers: relays,
    displayName: file.meta.title ?? file.info.name,
    live: {
      file,
      role,
      ...(uploadLimit !== undefined && { uploadBytesPerSecond: uploadLimit }),
      ...(isPrivate && { only: relays }),
      knownPeers: isPrivate ? [] : knownPeers,
      ...(role === "source" && request.isStandby && { mayHaveTwin: true }),
      ...(isHead && { head: headRecord(file, identity.sign, parts.unixMs() / 1000) }),
    },
  };
}

/** Holds the transfer of a source. Where somebody watches the stream here, that ends: players that ask again get it from the source. */
export function holdSource(open: (content: TransferContent) => Hold, content: TransferContent): Hold {
  const hold = open(content);
  if (hold.transfer.live?.content.role === "source") return hold;
  hold.release();
  return open(content);
}
