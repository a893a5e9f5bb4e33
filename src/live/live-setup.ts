import type { PeerAddress } from "../base/address.ts";
import { addressText } from "../base/address.ts";
import { DecodeError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Machine } from "../base/machine.ts";
import type { Random } from "../base/random.ts";
import type { Ed25519Verify } from "../base/signature.ts";
import type { Instant } from "../base/time.ts";
import type { SwarmAnnouncer } from "../net/pending-announces.ts";
import type { LiveFigures, LiveInput, LiveOutput, LiveSetup, WholePiece } from "../protocol/live/contract.ts";
import type { LateMedia } from "../protocol/live/fetched.ts";
import { RoleProofs } from "../protocol/live/role-proofs.ts";
import type { SwarmLimits } from "../protocol/swarm/contract.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { ConnectionCount } from "../transfer/connection-count.ts";
import { chunkRange } from "../wire/live/chunks.ts";
import type { PieceHeader } from "../wire/live/header.ts";
import type { LiveInfo } from "../wire/live/info.ts";
import { pathDigest } from "../wire/live/paths.ts";
import type { LivePeerInfo, LiveRole } from "../wire/live/peer-info.ts";
import { homeStripeOf } from "../wire/live/peer-info.ts";
import type { RoleKey } from "../wire/live/role-proof.ts";
import type { StatMessage } from "../wire/live/stat.ts";
import { isSignedStat } from "../wire/live/stat.ts";
import { decodeSuccessor, type Successor } from "../wire/live/successor.ts";
import { isChunkOf, isSignedHeader, isTimely, liveHash } from "../wire/live/trust.ts";
import type { PieceSink } from "./contract.ts";
import type { LiveAddresses } from "./live-addresses.ts";
import type { PeerLinkSetup } from "./peer-link.ts";
import type { LateSwarm, LiveFallback } from "./web-fallback/web-fallback.ts";

/** Builds the setup of a live swarm with the cryptography of this runtime. Throws if the stream's key is invalid. */
export function liveSetup(options: LiveDriverOptions, addresses: LiveAddresses): LiveSetup {
  const { infohash, info, role, peerId, runtime, only } = options;
  const { sha256, clock } = runtime;
  const verify = runtime.ed25519Verifier(info.publicKey);
  const hash = sha256(peerId);
  const allowed = only && new Set(only.map(addressText));
  let aheadMs = Number.NEGATIVE_INFINITY;
  /** The time of day, never going back: a piece that is playing must not become a future one because the clock was
   * set. */
  const unixMs = () => {
    const now = clock.now();
    aheadMs = Math.max(aheadMs, clock.unixSeconds() * 1000 - now);
    return now + aheadMs;
  };
  let isClockLogged = false;
  /** Logs once if the stream is in the future of this machine's clock: none of it would be played, for no visible
   * reason. */
  const checkStreamClock = (header: PieceHeader) => {
    const minutes = isTimely(header, unixMs(), undefined)
      ? 0
      : Math.round((header.timestampMs - unixMs()) / 60_000);
    options.ahead?.(minutes);
    if (isClockLogged || minutes === 0) return;
    isClockLogged = true;
    options.log.warn("the stream is ahead of the clock of this machine and cannot be played; set the clock", {
      minutes,
    });
  };
  return {
    about: {
      role,
      uploadBytesPerSecond: options.uploadBytesPerSecond,
      homeStripe: homeStripeOf(hash, info.stripeCount),
      digest: pathDigest(hash),
    },
    layout: {
      stripes: info.stripeCount,
      pieceMs: info.pieceMs,
      bytesPerSecond: info.bytesPerSecond,
      maxPieceBytes: info.maxPieceBytes,
    },
    lagMs: options.lagMs,
    keepMs: options.keepMs,
    random: options.random,
    unixMs,
    hash: (header) => liveHash(header, sha256),
    isSignedStat: ({ bytes }) => isSignedStat(bytes, infohash, verify),
    successorOf: (record) => successorIn(record, infohash, verify),
    isSigned: ({ value, bytes }) => {
      const isGenuine = isSignedHeader(bytes, infohash, verify);
      if (isGenuine) checkStreamClock(value);
      return isGenuine;
    },
    isValidChunk: ({ value }, stripe, bytes) => {
      const { start, end } = chunkRange(value.pieceBytes, info.stripeCount, stripe);
      return bytes.length === end - start && isChunkOf(value, stripe, bytes, sha256);
    },
    isRelay: (address) => addresses.isRelay(address),
    ...(options.restored && { restored: options.restored }),
    ...(options.mayShareEpoch && { mayShareEpoch: true }),
    ...(options.isAllowed && { isAllowed: options.isAllowed }),
    ...(allowed && { isAllowed: (address) => allowed.has(addressText(address)) }),
  };
}

function successorIn(record: Uint8Array, infohash: Infohash, verify: Ed25519Verify): Successor | undefined {
  try {
    return decodeSuccessor(record, infohash, verify);
  } catch (thrown) {
    if (thrown instanceof DecodeError) return undefined;
    throw thrown;
  }
}

/** Builds what all links of a live stream have in common. `about` describes this peer. */
export function linkSetup(options: LiveDriverOptions, about: LivePeerInfo): PeerLinkSetup {
  const { infohash, info, infoBytes, peerId, listenPort, runtime, only } = options;
  // Private streams and private sources do not share peers.
  const sharesPeers = !info.isPrivate && !only;
  return {
    ...{ infohash, info, infoBytes, peerId, listenPort, about, sharesPeers },
    ...(options.punches && { punches: true }),
    ...(options.listensFor && { listensFor: options.listensFor }),
    sha256: runtime.sha256,
    roles: new RoleProofs({
      ...{ infohash, peerId, streamKey: info.publicKey, randomBytes: runtime.randomBytes },
      verifierOf: runtime.ed25519Verifier,
      unixMs: () => runtime.clock.unixSeconds() * 1000,
      ...(options.roleKey && { key: options.roleKey }),
    }),
  };
}

/** What a live driver depends on, and its options. */
export interface LiveDriverOptions {
  readonly infohash: Infohash;
  readonly info: LiveInfo;
  readonly infoBytes: Uint8Array;
  readonly role: LiveRole;
  /** 20 bytes. */
  readonly peerId: Uint8Array;
  readonly runtime: Pick<Runtime, "clock" | "net" | "sha256" | "ed25519Verifier" | "randomBytes">;
  /** Proves our role to peers; absent for viewers and relays without a key. */
  readonly roleKey?: RoleKey;
  readonly random: Random;
  readonly announcer: SwarmAnnouncer;
  /** Announce URLs by tier. */
  readonly trackers: readonly (readonly string[])[];
  /** 0 if peers cannot connect to us. */
  readonly listenPort: number;
  /** Returns whether this peer can connect to us and receives our port; absent: every peer can. */
  listensFor?(peer: PeerAddress): boolean;
  /** Returns whether there is a way to this address; absent: to all. */
  isAllowed?(address: PeerAddress): boolean;
  /** Whether uTP is available, which hole punching needs. */
  readonly punches?: boolean;
  /** The upload capacity that is announced to peers. */
  readonly uploadBytesPerSecond: number;
  /** Limit of upload to all peers of this stream, in bytes per second; 0 for none. */
  readonly uploadLimit: number;
  /** This stream's share of the engine's limits. */
  readonly limits: SwarmLimits;
  readonly lagMs: number;
  readonly keepMs: number;
  /** The only peers of a private source; absent for all others. */
  readonly only?: readonly PeerAddress[];
  /** The relays that the source lists, if the list is authentic: other peers must prove that they are relays. */
  readonly relays?: readonly PeerAddress[];
  /** Verified pieces, oldest first, that a viewer received before it was restarted. */
  readonly restored?: readonly WholePiece[];
  /** For a source: another one may have started at the same moment, with the same key and epoch. */
  readonly mayShareEpoch?: boolean;
  readonly connections: ConnectionCount;
  readonly log: Log;
  /** Receives the pieces from the swarm. A source does not get its own. */
  readonly sink: PieceSink;
  /** The source has signed two pieces with one number; or, if we are the source, another program has signed this one. */
  forked(seq: number, header: PieceHeader): void;
  /** The stream has moved to another key. */
  moved?(successor: Successor): void;
  /** Called with each STAT of the source. */
  stated?(stat: StatMessage): void;
  /** A genuine piece is this far ahead of our clock, so that nothing is played; 0 if it is not. */
  ahead?(minutes: number): void;
  /** Fetches from elsewhere what peers deliver too late. */
  readonly fallback?: (swarm: LateSwarm) => LiveFallback;
  readonly makeSwarm?: (setup: LiveSetup, now: Instant) => DrivenLiveSwarm;
}

/** A live swarm, as seen by the driver. */
export interface DrivenLiveSwarm extends Machine<LiveInput, LiveOutput> {
  figures(now: Instant): LiveFigures;
  late(now: Instant): LateMedia;
  /** Whether an incoming connection from this address may be accepted at all. */
  mayAdmit(address: PeerAddress): boolean;
}
