import { addressText } from "../../base/address.ts";
import type { LiveSetup } from "../../swarm/live/contract.ts";
import { LIVE_RULES } from "../../swarm/live/limits.ts";
import { chunkRange } from "../../wire/live-chunks.ts";
import type { PieceHeader } from "../../wire/live-header.ts";
import { homeStripeOf, type LivePeerInfo } from "../../wire/live-hello.ts";
import { pathDigest } from "../../wire/live-paths.ts";
import { isSignedStat } from "../../wire/live-stat.ts";
import { isChunkOf, isSignedHeader, isTimely, liveHash } from "../../wire/live-trust.ts";
import type { LiveDriverParts } from "./live-driver.ts";
import type { LivePlaces } from "./live-places.ts";
import type { PeerLinkSetup } from "./peer-link.ts";

/** What a live swarm is made of, with the cryptography of this machine. Throws where the stream's key is none. */
export function liveSetup(parts: LiveDriverParts, places: LivePlaces): LiveSetup {
  const { infohash, info, role, peerId, runtime, only } = parts;
  const { sha256, clock } = runtime;
  const verify = runtime.ed25519Verifier(info.publicKey);
  const hash = sha256(peerId);
  const allowed = only && new Set(only.map(addressText));
  let aheadMs = Number.NEGATIVE_INFINITY;
  /** The time of day. It never goes back: what plays must not be of the future because our clock was set. */
  const unixMs = () => {
    const now = clock.now();
    aheadMs = Math.max(aheadMs, clock.unixSeconds() * 1000 - now);
    return now + aheadMs;
  };
  let isClockDoubted = false;
  /** Nothing of such a stream is ever played, and nobody would know why. */
  const doubtClock = (header: PieceHeader) => {
    const minutes = isTimely(header, unixMs(), undefined)
      ? 0
      : Math.round((header.timestampMs - unixMs()) / 60_000);
    parts.ahead?.(minutes);
    if (isClockDoubted || minutes === 0) return;
    isClockDoubted = true;
    parts.log.warn(
      "the stream is far ahead of this machine's clock: nothing of it is played until that is right",
      {
        minutes,
      },
    );
  };
  return {
    about: {
      role,
      uploadBytesPerSecond: parts.uploadBytesPerSecond,
      homeStripe: homeStripeOf(hash, info.stripeCount),
      clockMs: clock.unixSeconds() * 1000,
      digest: pathDigest(hash),
    },
    layout: {
      stripes: info.stripeCount,
      pieceMs: info.pieceMs,
      bytesPerSecond: info.bytesPerSecond,
      maxPieceBytes: info.maxPieceBytes,
    },
    lagMs: parts.lagMs,
    keepMs: parts.keepMs,
    rules: LIVE_RULES,
    random: parts.random,
    unixMs,
    hash: (header) => liveHash(header, sha256),
    isSignedStat: ({ bytes }) => isSignedStat(bytes, infohash, verify),
    isSigned: ({ value, bytes }) => {
      const isGenuine = isSignedHeader(bytes, infohash, verify);
      if (isGenuine) doubtClock(value);
      return isGenuine;
    },
    fits: ({ value }, stripe, bytes) => {
      const { start, end } = chunkRange(value.pieceBytes, info.stripeCount, stripe);
      return bytes.length === end - start && isChunkOf(value, stripe, bytes, sha256);
    },
    isRelay: (address) => places.isRelay(address),
    ...(parts.mayHaveTwin && { mayHaveTwin: true }),
    ...(allowed && { isAllowed: (address) => allowed.has(addressText(address)) }),
  };
}

/** What the links of a live stream have in common; `about` is what we say of ourselves. */
export function linkSetup(parts: LiveDriverParts, about: LivePeerInfo): PeerLinkSetup {
  const { infohash, info, infoBytes, peerId, listenPort, runtime, only } = parts;
  // Private streams and private sources tell nobody of anybody.
  const sharesPeers = !info.isPrivate && !only;
  return {
    ...{ infohash, info, infoBytes, peerId, listenPort, about, sharesPeers },
    ...(parts.punches && { punches: true }),
    sha256: runtime.sha256,
  };
}
