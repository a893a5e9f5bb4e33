import type { PeerAddress } from "../base/address.ts";
import { latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import type { Instant } from "../base/time.ts";
import { decodeHandshake, encodeHandshake, HANDSHAKE_BYTES } from "../wire/handshake.ts";
import { clientName } from "../wire/peer-id.ts";
import { PeerMessageDecoder } from "../wire/peer-message.ts";
import type { Candidate, ConnectionId } from "./contract.ts";
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

/** Bitfield bytes allowed while the number of pieces is unknown: that of the most pieces content may have. */
const MAX_EARLY_BITFIELD_BYTES = 262_144;
/** Connections we open while nobody reads: enough to seed. */
const IDLE_PEERS = 12;
/** So long after the last reader left it still counts as wanted. */
const LINGER_MS = 60_000;
/** Two peers that both have everything part after so long (BEP 21): time to tell each other of peers. */
const SATED_MS = 10_000;
/** A peer that stalls for so long gives its place to another. */
const SNUBBED_MS = 30_000;

/** Connections from dialling to closing: handshakes, time-outs, duplicates. */
export class Connections {
  readonly #state: SwarmState;
  readonly #targets: MessageTargets;
  readonly #extensions: Extensions;
  /** What else is to be done when a connection ends. */
  readonly #left: (peer: Peer) => void;
  #nextOutgoing: ConnectionId = 2;
  #opening = 0;

  constructor(state: SwarmState, targets: MessageTargets, left: (peer: Peer) => void) {
    this.#state = state;
    this.#targets = targets;
    this.#extensions = targets.extensions;
    this.#left = left;
  }

  /** Opens connections to the best candidates, as many as there is room for. */
  dial(): void {
    const { candidates, now, pieces } = this.#state;
    while (this.#hasRoom()) {
      const candidate = candidates.next(now, pieces?.isComplete === true);
      if (!candidate) return;
      this.#call(candidate, false);
    }
  }

  /** Calls an address over uTP, at the same moment as it calls us (BEP 55). */
  punch(address: PeerAddress): void {
    const { candidates, peers, isStopped } = this.#state;
    if (isStopped || peers.size >= MAX_PEERS || this.#opening >= MAX_HALF_OPEN) return;
    const candidate = candidates.call(address);
    if (candidate) this.#call(candidate, true);
  }

  #call({ address, origin }: Candidate, isPunch: boolean): void {
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

  /** When a candidate may be ready to be dialled; undefined: not before something else happens. */
  nextWake(): Instant | undefined {
    return this.#hasRoom() ? this.#state.candidates.nextWake() : undefined;
  }

  #hasRoom(): boolean {
    const { now, peers, wants, wantedAt, isStopped, pieces } = this.#state;
    const isWanted = pieces?.isComplete !== true && (wants.readers > 0 || now - wantedAt < LINGER_MS);
    return !isStopped && peers.size < (isWanted ? MAX_PEERS : IDLE_PEERS) && this.#opening < MAX_HALF_OPEN;
  }

  /** A connection that we dialled is open. */
  opened(connection: ConnectionId): void {
    const peer = this.#state.peers.get(connection);
    if (peer?.stage !== "opening") return;
    this.#opening--;
    this.#state.candidates.opened(peer.address, this.#state.now);
    peer.lastReceivedAt = this.#state.now;
    peer.enter("handshake", this.#state.now);
    this.#sendHandshake(peer);
  }

  /** Somebody connected to us; or a web server was, and goes by the name `webSeed`. Those are few, and chosen by us. */
  accepted(connection: ConnectionId, address: PeerAddress, webSeed?: string): void {
    const { candidates, peers, now, pieces, isStopped } = this.#state;
    const hasRoom = webSeed !== undefined || (peers.size < MAX_PEERS && candidates.accepted(address, now));
    if (isStopped || !hasRoom) {
      this.#state.emit({ kind: "close", connection, reason: "no room" });
      return;
    }
    const origin = webSeed === undefined ? "incoming" : "web";
    const peer = new Peer(connection, address, origin, true, pieces?.layout.pieceCount, now);
    peer.client = webSeed ?? "";
    peer.isExempt = this.#state.setup.limits.isExempt(address.host);
    peer.enter("handshake", now);
    peers.set(connection, peer);
  }

  /** Bytes came. A peer that breaks the format is closed and banned. */
  received(peer: Peer, bytes: Uint8Array): void {
    peer.lastReceivedAt = this.#state.now;
    try {
      if (peer.decoder) peer.decoder.feed(bytes);
      else this.#takeGreeting(peer, bytes);
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      if (peer.stage === "open") this.ban(peer, thrown.message);
      else this.close(peer, thrown.message);
    }
  }

  /** Ends a connection from our side. */
  close(peer: Peer, reason: string): void {
    if (peer.stage === "closed") return;
    this.#state.emit({ kind: "close", connection: peer.connection, reason });
    this.gone(peer);
  }

  /** The connection is over, whoever ended it. */
  gone(peer: Peer): void {
    if (peer.stage === "closed") return;
    const { candidates, now, peers, smartBan } = this.#state;
    const wasOpening = peer.stage === "opening";
    if (wasOpening) this.#opening--;
    if (wantsNothing(peer)) candidates.seeds(peer.address);
    if (wasOpening || peer.stage === "handshake") candidates.failed(peer.address, now);
    else candidates.closed(peer.address, now, peer.wasUseful);
    peer.enter("closed", now);
    peer.decoder?.stop();
    peers.delete(peer.connection);
    smartBan.left(peer.connection);
    this.#left(peer);
    if (wasOpening && !peer.isPunched) this.#extensions.notReached(peer.address);
    this.#state.isChokeStale = true;
  }

  /** Closes the connection, and takes no other from that address. */
  ban(peer: Peer, reason: string): void {
    if (peer.stage === "closed") return;
    this.#state.candidates.ban(peer.address);
    this.#state.bannedPeers++;
    this.#state.emit({ kind: "banned", address: peer.listenAddress ?? peer.address, reason });
    this.close(peer, reason);
  }

  /** Closes what takes too long, and keeps the others alive. */
  round(): void {
    const { now, peers } = this.#state;
    for (const peer of peers.values()) {
      const staged = now - peer.stageSince;
      if (peer.stage === "opening" && staged >= CONNECT_TIMEOUT_MS) this.close(peer, "not reached in time");
      else if (peer.stage === "handshake" && staged >= HANDSHAKE_TIMEOUT_MS)
        this.close(peer, "no handshake in time");
      else if (!peer.isWebSeed && now - peer.lastReceivedAt >= IDLE_TIMEOUT_MS)
        this.close(peer, "silent for too long");
      else if (
        peer.snubbedSince !== undefined &&
        now - peer.snubbedSince >= SNUBBED_MS &&
        this.#isReplaceable()
      )
        this.close(peer, "owes blocks for too long");
      else if (staged >= SATED_MS && this.#isSated(peer)) this.close(peer, "both have everything");
      else if (peer.stage === "open" && now - peer.lastSentAt >= KEEP_ALIVE_MS) peer.writer.keepAlive();
    }
  }

  /** Whether neither side can ever want anything of the other. */
  #isSated(peer: Peer): boolean {
    if (peer.stage !== "open" || peer.isWebSeed) return false;
    return this.#state.pieces?.isComplete === true && wantsNothing(peer);
  }

  /** Whether another candidate could take the place of a bad peer: with few peers a bad one is better than none. */
  #isReplaceable(): boolean {
    return this.#state.peers.size > 1 && this.#state.candidates.size > this.#state.peers.size;
  }

  #takeGreeting(peer: Peer, bytes: Uint8Array): void {
    peer.greeting ??= new Uint8Array(HANDSHAKE_BYTES);
    const taken = Math.min(HANDSHAKE_BYTES - peer.greetingFilled, bytes.length);
    peer.greeting.set(bytes.subarray(0, taken), peer.greetingFilled);
    peer.greetingFilled += taken;
    if (peer.greetingFilled < HANDSHAKE_BYTES) return;
    this.#greeted(peer, peer.greeting);
    peer.greeting = undefined;
    const decoder = peer.decoder as PeerMessageDecoder | undefined;
    if (taken < bytes.length) decoder?.feed(bytes.subarray(taken));
  }

  #greeted(peer: Peer, greeting: Uint8Array): void {
    const { setup, candidates, pieces, now } = this.#state;
    const handshake = decodeHandshake(greeting);
    if (handshake.infohash !== setup.infohash) throw new DecodeError("handshake", 28, "another infohash");
    peer.peerId = latin1Text(handshake.peerId);
    if (peer.peerId === latin1Text(setup.peerId)) {
      candidates.exclude(peer.address);
      this.close(peer, "connected to ourselves");
      return;
    }
    if (this.#isDuplicate(peer)) {
      this.close(peer, "connected twice");
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
    this.#introduce(peer);
    this.#state.isChokeStale = true;
  }

  #sendHandshake(peer: Peer): void {
    const { infohash, peerId } = this.#state.setup;
    const dht = this.#state.dhtPort !== undefined;
    peer.writer.raw(encodeHandshake({ infohash, peerId, extensions: true, fast: true, dht }));
  }

  #introduce(peer: Peer): void {
    const { pieces } = this.#state;
    if (pieces && peer.isFast && pieces.isComplete) peer.writer.haveAll();
    else if (peer.isFast && (!pieces || pieces.have.count === 0)) peer.writer.haveNone();
    else if (pieces && pieces.have.count > 0) peer.writer.bitfield(pieces.have.bytes);
    const { dhtPort } = this.#state;
    if (peer.hasDht && dhtPort !== undefined && !peer.isWebSeed) peer.writer.port(dhtPort);
    if (peer.isExtended) this.#extensions.greet(peer);
    if (peer.isFast && !peer.isWebSeed) this.#targets.serving.allowFast(peer);
  }

  /**
   * Whether this peer is connected already and this connection is the one to give up: of two in the same direction
   * the newer, of two that crossed the one dialled by the greater peer id, so that both ends decide alike.
   */
  #isDuplicate(peer: Peer): boolean {
    for (const other of this.#state.peers.values()) {
      if (other === peer || other.stage !== "open" || other.peerId !== peer.peerId) continue;
      const ours = latin1Text(this.#state.setup.peerId);
      const isMineKept =
        peer.isIncoming === other.isIncoming ? false : peer.isIncoming === peer.peerId < ours;
      if (!isMineKept) return true;
      this.close(other, "connected twice");
    }
    return false;
  }
}

/** It has everything, or says that it only uploads (BEP 21): who has is not told of each piece that others get. */
function wantsNothing(peer: Peer): boolean {
  return peer.pieces.isAll || peer.isUploadOnly;
}
