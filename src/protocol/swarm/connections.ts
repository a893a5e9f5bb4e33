import type { PeerAddress } from "../../base/address.ts";
import { latin1Text } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Instant } from "../../base/time.ts";
import { decodeHandshake, encodeHandshake, HANDSHAKE_BYTES } from "../../wire/peer/handshake.ts";
import { clientName } from "../../wire/peer/peer-id.ts";
import { PeerMessageDecoder } from "../../wire/peer/peer-message.ts";
import type { Candidate, ConnectionId, SwarmInput } from "./contract.ts";
import type { Extensions } from "./extensions.ts";
import {
  CONNECT_TIMEOUT_MS,
  HANDSHAKE_TIMEOUT_MS,
  IDLE_TIMEOUT_MS,
  KEEP_ALIVE_MS,
  MAX_BLOCK_BYTES,
  MAX_EXTENSION_BYTES,
  MAX_HALF_OPEN,
  MAX_PEERS,
} from "./limits.ts";
import { Peer } from "./peer.ts";
import { type MessageTargets, PeerMessages } from "./peer-messages.ts";
import type { SwarmState } from "./state.ts";

/** Bitfield bytes allowed while the piece count is unknown: enough for the largest piece count. */
const MAX_EARLY_BITFIELD_BYTES = 262_144;
/** Connections opened while no reader is active: enough to seed. */
const MAX_IDLE_PEERS = 12;
/** After the last reader leaves, the content still counts as wanted for this time. */
const LINGER_MS = 60_000;
/** Two seeds disconnect after this time (BEP 21), which lets them exchange peers first. */
const BOTH_SEEDS_MS = 10_000;
/** A peer that has stalled for this time is replaced by another candidate. */
const SNUBBED_MS = 30_000;

/** Manages connections from connecting to closing: handshakes, timeouts, duplicates. */
export class Connections {
  readonly #state: SwarmState;
  readonly #targets: MessageTargets;
  readonly #extensions: Extensions;
  /** Called when a connection ends. */
  readonly #onClosed: (peer: Peer) => void;
  #nextOutgoing: ConnectionId = 2;
  #opening = 0;

  constructor(state: SwarmState, targets: MessageTargets, onClosed: (peer: Peer) => void) {
    this.#state = state;
    this.#targets = targets;
    this.#extensions = targets.extensions;
    this.#onClosed = onClosed;
  }

  /** Connects to the best candidates until a connection limit is reached. */
  dial(): void {
    const { candidates, now, pieces } = this.#state;
    while (this.#hasRoom()) {
      const candidate = candidates.next(now, pieces?.isComplete === true);
      if (!candidate) return;
      this.#connect(candidate, false);
    }
  }

  /** Connects to an address over uTP while the peer there connects to this engine (BEP 55). */
  punch(address: PeerAddress): void {
    const { candidates, peers, isStopped } = this.#state;
    if (isStopped || peers.size >= MAX_PEERS || this.#opening >= MAX_HALF_OPEN) return;
    const candidate = candidates.dial(address);
    if (candidate) this.#connect(candidate, true);
  }

  #connect({ address, origin }: Candidate, isPunch: boolean): void {
    const { peers, now, pieces, setup } = this.#state;
    const connection = this.#nextOutgoing;
    this.#nextOutgoing += 2;
    const peer = new Peer(connection, address, origin, false, pieces?.layout.pieceCount, now);
    peer.listenAddress = address;
    peer.isPunched = isPunch;
    peer.isExempt = setup.limits.isExempt(address.host);
    peers.set(connection, peer);
    this.#opening++;
    this.#state.emit({ kind: "connect", connection, address, ...(isPunch && { isPunch }) });
  }

  /** When a candidate may be ready; undefined: only after another input. */
  nextWake(): Instant | undefined {
    return this.#hasRoom() ? this.#state.candidates.nextWake() : undefined;
  }

  #hasRoom(): boolean {
    const { now, peers, wants, wantedAt, isStopped, pieces } = this.#state;
    const isWanted = pieces?.isComplete !== true && (wants.readers > 0 || now - wantedAt < LINGER_MS);
    return (
      !isStopped && peers.size < (isWanted ? MAX_PEERS : MAX_IDLE_PEERS) && this.#opening < MAX_HALF_OPEN
    );
  }

  /** An outgoing connection is open. */
  opened(connection: ConnectionId): void {
    const peer = this.#state.peers.get(connection);
    if (peer?.stage !== "opening") return;
    this.#opening--;
    this.#state.candidates.opened(peer.address);
    peer.lastReceivedAt = this.#state.now;
    peer.enter("handshake", this.#state.now);
    this.#sendHandshake(peer);
  }

  /** An incoming connection, or one that stands for the web server `webSeed`. Web servers are not limited in number. */
  accepted(input: Extract<SwarmInput, { kind: "accepted" }>): void {
    const { connection, address, webSeed, isWebRtc = false, opensFirst = false } = input;
    const { candidates, peers, now, pieces, isStopped } = this.#state;
    const hasRoom = webSeed !== undefined || (peers.size < MAX_PEERS && candidates.accepted(address));
    if (isStopped || !hasRoom) {
      this.#state.emit({ kind: "close", connection, reason: "connection limit reached" });
      return;
    }
    const origin = webSeed !== undefined ? "web" : isWebRtc ? "webrtc" : "incoming";
    const peer = new Peer(connection, address, origin, !opensFirst, pieces?.layout.pieceCount, now);
    peer.client = webSeed ?? "";
    peer.isExempt = this.#state.setup.limits.isExempt(address.host);
    peer.enter("handshake", now);
    peers.set(connection, peer);
    if (opensFirst) this.#sendHandshake(peer);
  }

  /** Takes received bytes. A peer that sends malformed messages is disconnected and banned. */
  received(peer: Peer, bytes: Uint8Array): void {
    peer.lastReceivedAt = this.#state.now;
    try {
      if (peer.decoder) peer.decoder.feed(bytes);
      else this.#takeHandshake(peer, bytes);
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      if (peer.stage === "open") this.ban(peer, thrown.message);
      else this.close(peer, thrown.message);
    }
  }

  /** Closes a connection. */
  close(peer: Peer, reason: string): void {
    if (peer.stage === "closed") return;
    this.#state.emit({ kind: "close", connection: peer.connection, reason });
    this.closed(peer);
  }

  /** The connection has ended. */
  closed(peer: Peer): void {
    if (peer.stage === "closed") return;
    const { candidates, now, peers, smartBan } = this.#state;
    const wasOpening = peer.stage === "opening";
    if (wasOpening) this.#opening--;
    if (wantsNothing(peer)) candidates.markSeed(peer.address);
    if (wasOpening || peer.stage === "handshake") candidates.failed(peer.address, now);
    else candidates.closed(peer.address, now, peer.wasUseful);
    peer.enter("closed", now);
    peer.decoder?.stop();
    peers.delete(peer.connection);
    smartBan.peerLeft(peer.connection);
    this.#onClosed(peer);
    if (wasOpening && !peer.isPunched) this.#extensions.connectFailed(peer.address);
    this.#state.isChokeStale = true;
  }

  /** Closes the connection and bans the address. */
  ban(peer: Peer, reason: string): void {
    if (peer.stage === "closed") return;
    this.#state.candidates.ban(peer.address);
    this.#state.bannedPeers++;
    this.#state.emit({ kind: "banned", address: peer.listenAddress ?? peer.address, reason });
    this.close(peer, reason);
  }

  /** Closes connections that time out, and sends keep-alives. */
  round(): void {
    const { now, peers } = this.#state;
    for (const peer of peers.values()) {
      const stageMs = now - peer.stageSince;
      if (peer.stage === "opening" && stageMs >= CONNECT_TIMEOUT_MS) this.close(peer, "connect timeout");
      else if (peer.stage === "handshake" && stageMs >= HANDSHAKE_TIMEOUT_MS)
        this.close(peer, "handshake timeout");
      else if (!peer.isWebSeed && now - peer.lastReceivedAt >= IDLE_TIMEOUT_MS)
        this.close(peer, "idle timeout");
      else if (
        peer.snubbedSince !== undefined &&
        now - peer.snubbedSince >= SNUBBED_MS &&
        this.#isReplaceable()
      )
        this.close(peer, "stalled for too long");
      else if (stageMs >= BOTH_SEEDS_MS && this.#areBothSeeds(peer)) this.close(peer, "both have all pieces");
      else if (peer.stage === "open" && now - peer.lastSentAt >= KEEP_ALIVE_MS) peer.writer.keepAlive();
    }
  }

  /** Whether neither side will ever request data from the other. */
  #areBothSeeds(peer: Peer): boolean {
    if (peer.stage !== "open" || peer.isWebSeed) return false;
    return this.#state.pieces?.isComplete === true && wantsNothing(peer);
  }

  /** Whether another candidate can replace a stalled peer: with few peers, a stalled peer is better than none. */
  #isReplaceable(): boolean {
    return this.#state.peers.size > 1 && this.#state.candidates.size > this.#state.peers.size;
  }

  #takeHandshake(peer: Peer, bytes: Uint8Array): void {
    peer.handshake ??= new Uint8Array(HANDSHAKE_BYTES);
    const taken = Math.min(HANDSHAKE_BYTES - peer.handshakeFilled, bytes.length);
    peer.handshake.set(bytes.subarray(0, taken), peer.handshakeFilled);
    peer.handshakeFilled += taken;
    if (peer.handshakeFilled < HANDSHAKE_BYTES) return;
    this.#handshakeReceived(peer, peer.handshake);
    peer.handshake = undefined;
    const decoder = peer.decoder as PeerMessageDecoder | undefined;
    if (taken < bytes.length) decoder?.feed(bytes.subarray(taken));
  }

  #handshakeReceived(peer: Peer, bytes: Uint8Array): void {
    const { setup, candidates, pieces, now } = this.#state;
    const handshake = decodeHandshake(bytes);
    if (handshake.infohash !== setup.infohash) throw new DecodeError("handshake", 28, "another infohash");
    peer.peerId = latin1Text(handshake.peerId);
    if (peer.peerId === latin1Text(setup.peerId)) {
      candidates.exclude(peer.address);
      this.close(peer, "connected to this engine itself");
      return;
    }
    if (this.#isDuplicate(peer)) {
      this.close(peer, "duplicate connection");
      return;
    }
    if (!peer.isWebSeed) peer.client = clientName(handshake.peerId);
    peer.isFast = handshake.fast;
    peer.isExtended = handshake.extensions;
    peer.hasDht = handshake.dht;
    peer.decoder = new PeerMessageDecoder(new PeerMessages(peer, this.#targets), {
      maxBitfieldBytes: pieces ? pieces.have.bytes.length : MAX_EARLY_BITFIELD_BYTES,
      maxExtendedBytes: MAX_EXTENSION_BYTES,
      maxBlockBytes: MAX_BLOCK_BYTES,
    });
    peer.enter("open", now);
    if (peer.isIncoming) this.#sendHandshake(peer);
    this.#sendFirstMessages(peer);
    this.#state.isChokeStale = true;
  }

  #sendHandshake(peer: Peer): void {
    const { infohash, peerId } = this.#state.setup;
    const dht = this.#state.dhtPort !== undefined;
    peer.writer.raw(encodeHandshake({ infohash, peerId, extensions: true, fast: true, dht }));
  }

  #sendFirstMessages(peer: Peer): void {
    const { pieces } = this.#state;
    if (pieces && peer.isFast && pieces.isComplete) peer.writer.haveAll();
    else if (peer.isFast && (!pieces || pieces.have.count === 0)) peer.writer.haveNone();
    else if (pieces && pieces.have.count > 0) peer.writer.bitfield(pieces.have.bytes);
    const { dhtPort } = this.#state;
    if (peer.hasDht && dhtPort !== undefined && !peer.isWebSeed) peer.writer.port(dhtPort);
    if (peer.isExtended) this.#extensions.sendHandshake(peer);
    if (peer.isFast && !peer.isWebSeed) this.#targets.serving.sendAllowedFast(peer);
  }

  /**
   * Whether `peer` is a duplicate of a connection to be kept. Of two connections in the same direction the older is kept;
   * of two in opposite directions the one opened by the smaller peer id, so that both ends decide alike.
   */
  #isDuplicate(peer: Peer): boolean {
    for (const other of this.#state.peers.values()) {
      if (other === peer || other.stage !== "open" || other.peerId !== peer.peerId) continue;
      const ours = latin1Text(this.#state.setup.peerId);
      const isNewKept = peer.isIncoming === other.isIncoming ? false : peer.isIncoming === peer.peerId < ours;
      if (!isNewKept) return true;
      this.close(other, "duplicate connection");
    }
    return false;
  }
}

/** The peer has all pieces, or only uploads (BEP 21). */
function wantsNothing(peer: Peer): boolean {
  return peer.pieces.isAll || peer.isUploadOnly;
}
