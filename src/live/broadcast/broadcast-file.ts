import { addressScope, addressText, type PeerAddress } from "../../base/address.ts";
import { DecodeError, SluiceError } from "../../base/errors.ts";
import { contentIdOf } from "../../base/ids.ts";
import type { Runtime } from "../../runtime/contract.ts";
import type { LiveInfo } from "../../wire/live/info.ts";
import {
  type LiveTransportFile,
  makeLiveTransportFile,
  parseLiveTransportFile,
} from "../../wire/live/transport-file.ts";
import type { LiveVariant } from "../../wire/live/variants.ts";
import { type LinkParts, liveLink, magnetLink } from "../../wire/torrent/magnet.ts";
import { isPublished, type RtmpPlace, type SrtPlace } from "../input/source-place.ts";
import type { Broadcast, BroadcastRequest, Publishing } from "./broadcast-contract.ts";
import type { BroadcastIdentity } from "./identity.ts";

/** Makes the signed transport file of a broadcast. Throws `bad_parameter` if it cannot contain a value of the request. */
export function broadcastFile(
  request: BroadcastRequest,
  info: LiveInfo,
  sign: BroadcastIdentity["sign"],
  { sha1, ed25519Verifier }: Pick<Runtime, "sha1" | "ed25519Verifier">,
  variants: readonly LiveVariant[] = [],
): LiveTransportFile {
  const { meta, relays, manifests } = request;
  // One tier each, so that all trackers are used.
  const trackers = request.trackers.map((url) => [url]);
  try {
    const bytes = makeLiveTransportFile({ info, trackers, meta, relays, manifests, variants }, sign);
    const file = parseLiveTransportFile(bytes, sha1, ed25519Verifier);
    if (file.manifests.length !== new Set(manifests).size)
      throw new SluiceError("bad_parameter", "manifests: expected at most 8 http or https URLs");
    return file;
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    throw new SluiceError("bad_parameter", thrown.message, { cause: thrown });
  }
}

/** The fixed properties of a broadcast. */
interface BroadcastParts {
  readonly request: BroadcastRequest;
  readonly identity: Pick<
    BroadcastIdentity,
    "transportFilePath" | "streamKey" | "sign" | "keepTransportFile"
  >;
  readonly file: LiveTransportFile;
  readonly runtime: Pick<Runtime, "clock" | "sha1" | "ed25519Verifier">;
}

/** What a broadcast does; see {@link Broadcast}. */
interface BroadcastWork extends Pick<Broadcast, "figures" | "ended" | "stop"> {
  /** Sends the qualities to viewers; absent if there is never more than one. */
  tellVariants?(variants: readonly LiveVariant[]): void;
}

/** Builds a broadcast from its request, identity and transport file, and from `run`, which does the work. */
export function broadcastOf(
  { request, identity, file, runtime }: BroadcastParts,
  run: BroadcastWork,
): Broadcast {
  const { infohash } = file;
  const { transportFilePath, streamKey } = identity;
  let { bytes: transportFile } = file;
  const { place, addresses } = request;
  return {
    request,
    ...{ infohash, contentId: contentIdOf(infohash), transportFilePath },
    get transportFile() {
      return transportFile;
    },
    ...broadcastLinks(request, file),
    startedAt: runtime.clock.unixSeconds(),
    ...(isPublished(place) && { publishing: publishingOf(place, addresses, streamKey) }),
    async offer(variants) {
      const described = broadcastFile(request, file.info, identity.sign, runtime, variants);
      await identity.keepTransportFile(described.bytes);
      transportFile = described.bytes;
      run.tellVariants?.(variants);
    },
    figures: () => run.figures(),
    ended: run.ended,
    stop: () => run.stop(),
  };
}

function publishingOf(
  place: RtmpPlace | SrtPlace,
  addresses: readonly PeerAddress[],
  streamKey: string,
): Publishing {
  const { host, port } = place.kind === "rtmp" ? place.bind : place.address;
  const hosts = addressScope(host) === "unspecified" ? addresses.map((each) => each.host) : [host];
  const path = place.kind === "rtmp" ? `/${place.app}` : "";
  const urls = [...new Set(hosts)].map(
    (each) => `${place.kind}://${addressText({ host: each, port })}${path}`,
  );
  return { urls, key: place.kind === "srt" ? (place.passphrase ?? streamKey) : streamKey };
}

/** Returns the links. Those of a private broadcast contain its relays only, because it accepts no other peer. */
function broadcastLinks(
  request: BroadcastRequest,
  file: LiveTransportFile,
): { readonly magnet: string; readonly link: string } {
  const named = request.isPrivate ? request.relays : [...request.addresses, ...request.relays];
  const parts: LinkParts = {
    infohash: file.infohash,
    displayName: file.meta.title ?? file.info.name,
    trackers: file.trackers.flat(),
    peers: [...new Map(named.map((address) => [addressText(address), address])).values()],
  };
  return { magnet: magnetLink(parts), link: liveLink(parts) };
}
