import { familyOf, type PeerAddress } from "../base/address.ts";
import { DecodeError } from "../base/errors.ts";
import { TokenBucket } from "../base/rate.ts";
import { ConnectionIds } from "../protocol/tracker/connection-ids.ts";
import type { Tracker } from "../protocol/tracker/tracker.ts";
import type { Clock, Runtime } from "../runtime/contract.ts";
import {
  decodeUdpRequest,
  encodeUdpAnnounceResponse,
  encodeUdpConnectResponse,
  encodeUdpError,
  encodeUdpScrapeResponse,
  type UdpTrackerRequest,
} from "../wire/tracker/server-udp.ts";
import type { SharedUdp } from "./contract.ts";

export interface UdpTrackerServerDependencies {
  readonly udp: Pick<SharedUdp, "send" | "listen">;
  readonly tracker: Tracker;
  readonly runtime: Pick<Runtime, "sha256" | "randomBytes"> & { readonly clock: Pick<Clock, "now"> };
}

/** Limits responses to unverified source addresses, which an attacker can forge. No response is longer than its request, so
 * there is no amplification. */
const UNVERIFIED_PER_SECOND = 500;
const UNVERIFIED_BURST = 1000;

/** Answers tracker requests on the shared UDP port (BEP 15). Malformed requests are ignored. */
export function serveUdpTracker({ udp, tracker, runtime }: UdpTrackerServerDependencies): void {
  const ids = new ConnectionIds(runtime.sha256, runtime.randomBytes(32));
  const unverified = new TokenBucket(UNVERIFIED_PER_SECOND, UNVERIFIED_BURST);
  udp.listen("tracker", (bytes, from) => {
    const request = readRequest(bytes);
    if (!request) return;
    const now = runtime.clock.now();
    const { transaction } = request;
    if (request.kind === "connect") {
      if (unverified.take(1, now))
        udp.send(encodeUdpConnectResponse(transaction, ids.issue(from.host, now)), from);
    } else if (ids.isValid(request.connectionId, from.host, now)) {
      udp.send(responseTo(request, from, tracker, now), from);
    } else if (unverified.take(1, now)) {
      // After a restart of the engine, clients then ask for a new id. Shorter than any request.
      udp.send(encodeUdpError(transaction, "old id"), from);
    }
  });
}

function readRequest(bytes: Uint8Array): UdpTrackerRequest | undefined {
  try {
    return decodeUdpRequest(bytes);
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    return undefined;
  }
}

function responseTo(
  request: Exclude<UdpTrackerRequest, { kind: "connect" }>,
  { host }: PeerAddress,
  tracker: Tracker,
  now: ReturnType<Clock["now"]>,
): Uint8Array {
  const { transaction } = request;
  const client = { host, isForeign: false };
  const refusal = tracker.admits(client, now);
  if (refusal) return encodeUdpError(transaction, refusal.refused);
  if (request.kind === "scrape") {
    const counts = request.infohashes.map((infohash) => tracker.counts(infohash, now));
    return encodeUdpScrapeResponse(transaction, counts);
  }
  const family = familyOf(host);
  const result = tracker.announce(request.announce, client, now, family);
  return "refused" in result
    ? encodeUdpError(transaction, result.refused)
    : encodeUdpAnnounceResponse(transaction, result, family);
}
