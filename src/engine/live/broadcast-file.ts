import { addressText } from "../../base/address.ts";
import { DecodeError, SluiceError } from "../../base/errors.ts";
import type { Runtime } from "../../runtime/contract.ts";
import type { LiveInfo } from "../../wire/live-info.ts";
import { type LiveLinkParts, liveLink, liveMagnet } from "../../wire/live-link.ts";
import {
  type LiveTransportFile,
  makeLiveTransportFile,
  parseLiveTransportFile,
} from "../../wire/live-transport.ts";
import type { Broadcast, BroadcastRequest } from "./broadcast-contract.ts";
import type { BroadcastIdentity } from "./identity.ts";

/** The transport file of a broadcast, signed. Throws `bad_parameter` where something of the request cannot stand in it. */
export function broadcastFile(
  request: BroadcastRequest,
  info: LiveInfo,
  sign: BroadcastIdentity["sign"],
  { sha1, ed25519Verifier }: Pick<Runtime, "sha1" | "ed25519Verifier">,
): LiveTransportFile {
  const { meta, relays, manifests } = request;
  // A tier each: all of them are asked.
  const trackers = request.trackers.map((url) => [url]);
  try {
    const bytes = makeLiveTransportFile({ info, trackers, meta, relays, manifests }, sign);
    const file = parseLiveTransportFile(bytes, sha1, ed25519Verifier);
    if (file.manifests.length !== new Set(manifests).size)
      throw new SluiceError("bad_parameter", "manifests: expected at most 8 http or https URLs");
    return file;
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    throw new SluiceError("bad_parameter", thrown.message, { cause: thrown });
  }
}

/** What a broadcast is one of. */
interface BroadcastOwnParts {
  readonly request: BroadcastRequest;
  readonly identity: Pick<BroadcastIdentity, "transportFilePath">;
  readonly file: LiveTransportFile;
  readonly runtime: Pick<Runtime, "clock">;
}

/** A broadcast as others see it: what it is called, where its transport file lies, and what `run` says and does. */
export function broadcastOf(
  { request, identity, file, runtime }: BroadcastOwnParts,
  run: Pick<Broadcast, "figures" | "ended" | "stop">,
): Broadcast {
  const { infohash, contentId, bytes: transportFile } = file;
  const { transportFilePath } = identity;
  return {
    request,
    ...{ infohash, contentId, transportFile, transportFilePath },
    ...broadcastLinks(request, file),
    startedAt: runtime.clock.unixSeconds(),
    figures: () => run.figures(),
    ended: run.ended,
    stop: () => run.stop(),
  };
}

/** The links of a broadcast. Those of a private one lead to its relays, since it answers nobody else. */
function broadcastLinks(
  request: BroadcastRequest,
  file: LiveTransportFile,
): { readonly magnet: string; readonly link: string } {
  const named = request.isPrivate ? request.relays : [...request.addresses, ...request.relays];
  const parts: LiveLinkParts = {
    infohash: file.infohash,
    displayName: file.meta.title ?? file.info.name,
    trackers: file.trackers.flat(),
    peers: [...new Map(named.map((address) => [addressText(address), address])).values()],
  };
  return { magnet: liveMagnet(parts), link: liveLink(parts) };
}
