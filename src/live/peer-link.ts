import { addressScope, familyOf, type PeerAddress } from "../base/address.ts";
import { equalBytes, latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import { TokenBucket } from "../base/rate.ts";
import type { Sha256 } from "../base/signature.ts";
import { type Instant, instant } from "../base/time.ts";
import { type LivePriority, PRIORITY } from "../protocol/live/contract.ts";
import { ExpectedResponses } from "../protocol/live/expected-responses.ts";
import { isPlausibleAddress, LiveCodec } from "../protocol/live/live-codec.ts";
import type { LiveAbout, LiveMessage } from "../protocol/live/messages.ts";
import type { RoleProofs } from "../protocol/live/role-proofs.ts";
import { framed, type SendQueue } from "../protocol/live/send-queue.ts";
import { CLIENT } from "../protocol/swarm/extensions.ts";
import type { PunchPeer } from "../protocol/swarm/holepunch.ts";
import { Pex } from "../protocol/swarm/pex.ts";
import type { LiveInfo } from "../wire/live/info.ts";
import { LIVE_KIND } from "../wire/live/message-kind.ts";
import { pathDigest } from "../wire/live/paths.ts";
import { homeStripeOf, LIVE_EXTENSION, type LivePeerInfo } from "../wire/live/peer-info.ts";
import {
  decodeExtensionHandshake,
  type ExtensionHandshake,
  encodeExtensionHandshake,
} from "../wire/peer/extension-handshake.ts";
import { decodeHandshake, encodeHandshake, HANDSHAKE_BYTES } from "../wire/peer/handshake.ts";
import { decodeMetadataMessage } from "../wire/peer/metadata-message.ts";
import { clientName } from "../wire/peer/peer-id.ts";
import { handleOnly, PeerMessageDecoder } from "../wire/peer/peer-message.ts";
import { decodePexMessage, encodePexMessage, type PexPeer } from "../wire/peer/pex-message.ts";
import { LiveMetadata } from "./live-metadata.ts";

/** What all links of one stream have in common. */
export interface PeerLinkSetup {
  readonly infohash: Infohash;
  readonly info: LiveInfo;
  readonly infoBytes: Uint8Array;
  readonly peerId: Uint8Array;
  /** The description of this peer. */
  readonly about: LivePeerInfo;
  /** 0 if peers cannot connect to us. */
  readonly listenPort: number;
  /** Returns whether this peer can connect to us; absent: every peer can. */
  listensFor?(peer: PeerAddress): boolean;
  /** Peer exchange (BEP 11) is on: not in private streams. */
  readonly sharesPeers: boolean;
  /** Whether uTP is available, which hole punching (BEP 55) needs. */
  readonly punches?: boolean;
  readonly sha256: Sha256;
  readonly roles: RoleProofs;
}

/** Events of a link. */
export interface PeerLinkEvents {
  /** The handshake has arrived. Returns why to reject the link, or undefined. */
  handshake(link: PeerLink): string | undefined;
  /** Both sides have introduced themselves. */
  ready(link: PeerLink, about: LiveAbout, rttMs: number): void;
  /** The peer has proved its role. */
  proved(link: PeerLink, role: "relay" | "source"): void;
  message(link: PeerLink, message: LiveMessage): void;
  /** A PEX message has arrived. */
  peers(link: PeerLink, peers: readonly PexPeer[]): void;
  /** A hole sendHolePunch message has arrived (BEP 55). Throws `DecodeError`. */
  holePunch(link: PeerLink, payload: Uint8Array): void;
  /** The peer is of no use, but has not broken the protocol. */
  rejected(link: PeerLink, reason: string): void;
}

/** Time limits for the handshake and for the introduction; a peer that has the info dictionary sends both at once. */
const HANDSHAKE_TIMEOUT_MS = 10_000;
const INTRODUCTION_TIMEOUT_MS = 5_000;
/** Time limit for a peer that fetches the metadata first. */
const FETCH_TIMEOUT_MS = 60_000;
/** The largest live message has 16,398 bytes; metadata and PEX messages are not larger. */
const MAX_MESSAGE_BYTES = 20 * 1024;
/** Limits of messages other than chunks and responses, per second and in a burst. A parent of all stripes sends at most
 * about 60 a second. */
const MESSAGES_PER_SECOND = 300;
const MESSAGE_BURST = 1_000;
/** An extension handshake counts as this many messages. Peers send one, and seldom a second (BEP 10). */
const EXTENSION_HANDSHAKE_MESSAGES = 30;
/** The message ids that peers shall use. */
const METADATA_ID = 1;
const PEX_ID = 2;
const LIVE_ID = 3;
const HOLEPUNCH_ID = 4;
/** Assumed round-trip time without a measurement; the swarm's pings correct it. */
const DEFAULT_RTT_MS = 100;
const NEVER = instant(Number.POSITIVE_INFINITY);

/** The protocol on one connection, without its socket: handshakes (BEP 3, 10), metadata (BEP 9), PEX (BEP 11), and
 * live messages. Outgoing messages are queued. */
export class PeerLink implements PunchPeer {
  readonly isIncoming: boolean;
  readonly remote: PeerAddress;
  readonly queue: SendQueue;
  readonly #setup: PeerLinkSetup;
  readonly #events: PeerLinkEvents;
  readonly #openedAt: Instant;
  readonly #decoder: PeerMessageDecoder;
  readonly #codec: LiveCodec;
  readonly #metadata: LiveMetadata;
  readonly #messageRate = new TokenBucket(MESSAGES_PER_SECOND, MESSAGE_BURST);
  readonly #handshake = new Uint8Array(HANDSHAKE_BYTES);
  readonly #challenge: Uint8Array;
  #hasProof = false;
  #handshakeLength = 0;
  #hasSentHandshake = false;
  /** Responses that our requests permit; they do not count against the peer. */
  readonly #expected = new ExpectedResponses();
  #waitingSince: Instant;
  #now: Instant;
  #peerId: Uint8Array | undefined;
  #liveId = 0;
  #metadataId = 0;
  #pexId = 0;
  #pex: Pex | undefined;
  holepunchMessageId = 0;
  /** Measured by the handshake of an outgoing connection. */
  #rttMs: number | undefined;
  #isReady = false;
  #isClosed = false;
  client = "unknown";
  /** Where the peer listens: the address we connected to, or the one it reports. */
  listenAddress: PeerAddress | undefined;

  /** `now` is the time at which the connection was accepted, or requested. */
  constructor(
    setup: PeerLinkSetup,
    events: PeerLinkEvents,
    queue: SendQueue,
    connection: { readonly isIncoming: boolean; readonly remote: PeerAddress },
    now: Instant,
  ) {
    this.#setup = setup;
    this.#challenge = setup.roles.challenge();
    this.#events = events;
    this.queue = queue;
    this.isIncoming = connection.isIncoming;
    this.remote = connection.remote;
    if (!connection.isIncoming) this.listenAddress = connection.remote;
    this.#openedAt = this.#waitingSince = this.#now = now;
    this.#metadata = new LiveMetadata(setup.infoBytes);
    this.#codec = new LiveCodec(setup.info, connection.remote);
    this.#decoder = new PeerMessageDecoder(
      handleOnly({ extended: (id, payload) => this.#extended(id, payload) }),
      { maxBitfieldBytes: 256 * 1024, maxExtendedBytes: MAX_MESSAGE_BYTES, maxBlockBytes: 128 * 1024 },
    );
  }

  /** Whether live messages may be sent. */
  get isReady(): boolean {
    return this.#isReady && !this.#isClosed;
  }

  get isOpen(): boolean {
    return this.isReady;
  }

  get address(): PeerAddress {
    return this.remote;
  }

  /** Whether the handshake has arrived. */
  get hasHandshake(): boolean {
    return this.#peerId !== undefined;
  }

  /**
   * Whether both connections lead to one program: the peer ids are equal, and the hosts may be one machine. Any peer
   * can copy a peer id, so different hosts are accepted only as the two address families of one machine, or as this
   * machine.
   */
  isSamePeer(other: PeerLink): boolean {
    if (!this.#peerId || !other.#peerId || !equalBytes(this.#peerId, other.#peerId)) return false;
    const [a, b] = [this.remote.host, other.remote.host];
    if (a === b || familyOf(a) !== familyOf(b)) return true;
    return addressScope(a) === "loopback" && addressScope(b) === "loopback";
  }

  /** Whether the connection leads to ourselves. */
  get isOurselves(): boolean {
    return this.#peerId !== undefined && equalBytes(this.#peerId, this.#setup.peerId);
  }

  /** Of two connections in opposite directions, the one opened by the smaller peer id is kept, so that both ends
   * decide alike. */
  get isKeptWhenCrossed(): boolean {
    const theirsIsSmaller = latin1Text(this.#peerId!) < latin1Text(this.#setup.peerId);
    return this.isIncoming === theirsIsSmaller;
  }

  /** The outgoing connection is established, or a connection without an address, on which this side sends first. */
  opened(now: Instant): void {
    this.#waitingSince = this.#now = now;
    this.#sendHandshake();
  }

  /** Handles bytes from the peer. Throws `DecodeError` if they are invalid; do not call it afterwards. */
  received(bytes: Uint8Array, now: Instant): void {
    this.#now = now;
    let rest = bytes;
    if (this.#handshakeLength < HANDSHAKE_BYTES) {
      const part = bytes.subarray(0, HANDSHAKE_BYTES - this.#handshakeLength);
      this.#handshake.set(part, this.#handshakeLength);
      this.#handshakeLength += part.length;
      if (this.#handshakeLength < HANDSHAKE_BYTES) return;
      this.#handshakeReceived();
      rest = bytes.subarray(part.length);
    }
    if (!this.#isClosed) this.#decoder.feed(rest);
  }

  /** Queues a message. Returns false if the peer accepts no more. Call it only if the link is ready. */
  send(message: LiveMessage, priority: LivePriority, expiresAt: Instant, now: Instant): boolean {
    this.#expected.sent(message);
    if (message.kind === "chunk") return this.queue.chunk(message, this.#liveId, priority, expiresAt, now);
    const payload = this.#codec.encode(message);
    return !payload || this.queue.message(framed(this.#liveId, payload), priority, expiresAt, now);
  }

  /** Shares new reachable peers by PEX, at most once a minute. */
  sharePeers(known: readonly PexPeer[], now: Instant): void {
    if (!this.isReady || !this.#pex || this.#pexId === 0) return;
    const next = this.#pex.nextWake();
    if (next !== undefined && now < next) return;
    const isNear = addressScope(this.remote.host) !== "global";
    const tellable = isNear ? known : known.filter(({ address }) => addressScope(address.host) === "global");
    const message = this.#pex.delta(tellable, this.listenAddress, now);
    if (message) this.#control(this.#pexId, encodePexMessage(message));
  }

  /** Sends a hole sendHolePunch message (BEP 55). The peer must support it. */
  sendHolePunch(payload: Uint8Array): void {
    this.#control(this.holepunchMessageId, payload);
  }

  /** Returns why the link has to be closed at `now`, or undefined. */
  timeoutReason(now: Instant): string | undefined {
    if (this.#isReady) return undefined;
    const ageMs = now - this.#openedAt;
    if (!this.#peerId) return ageMs > HANDSHAKE_TIMEOUT_MS ? "no handshake" : undefined;
    if (this.#metadata.wasRequested) return ageMs > FETCH_TIMEOUT_MS ? "fetched metadata only" : undefined;
    return now - this.#waitingSince > INTRODUCTION_TIMEOUT_MS ? "not in the live network" : undefined;
  }

  /** Whether the peer has sent more messages than its allowance. */
  isFlooding(now: Instant): boolean {
    return this.#messageRate.waitMs(now) > 0;
  }

  /** Stops reading and sending. */
  close(): void {
    this.#isClosed = true;
    this.#decoder.stop();
  }

  #handshakeReceived(): void {
    const handshake = decodeHandshake(this.#handshake);
    if (handshake.infohash !== this.#setup.infohash) {
      throw new DecodeError("handshake", 28, "another infohash");
    }
    this.#peerId = handshake.peerId;
    this.client = clientName(handshake.peerId);
    const problem = handshake.extensions ? this.#events.handshake(this) : "no extension protocol (BEP 10)";
    if (problem !== undefined) {
      this.#events.rejected(this, problem);
      return;
    }
    if (this.#hasSentHandshake) this.#rttMs = this.#now - this.#waitingSince;
    else {
      this.#waitingSince = this.#now;
      this.#sendHandshake();
    }
  }

  /** Sends both handshakes at once, whether or not the peer supports the second: a peer that connects to us learns of
   * the stream one round trip earlier, and other peers are of no use. */
  #sendHandshake(): void {
    const { infohash, peerId } = this.#setup;
    this.#hasSentHandshake = true;
    const bytes = encodeHandshake({ infohash, peerId, extensions: true, fast: false, dht: false });
    this.queue.message(bytes, PRIORITY.control, NEVER, this.#now);
    this.#sendExtensionHandshake();
  }

  #sendExtensionHandshake(): void {
    const { about, infoBytes, listenPort, sharesPeers } = this.#setup;
    const isCallable = this.#setup.listensFor?.(this.remote) ?? true;
    const messages = new Map([
      [LIVE_EXTENSION, LIVE_ID],
      ["ut_metadata", METADATA_ID],
    ]);
    if (sharesPeers) messages.set("ut_pex", PEX_ID);
    if (sharesPeers && this.#setup.punches) messages.set("ut_holepunch", HOLEPUNCH_ID);
    const hello = encodeExtensionHandshake({
      messages,
      // Without a version, which would help to identify the peer.
      version: CLIENT.split(" ")[0]!,
      yourAddress: this.remote.host,
      metadataBytes: infoBytes.length,
      live: { ...about, challenge: this.#challenge },
      ...(listenPort > 0 && isCallable && { listenPort }),
    });
    this.#control(0, hello);
  }

  #extended(id: number, payload: Uint8Array): void {
    if (this.#isClosed) return;
    // A chunk costs its sender as much as us; other messages are short, but their replies may be long.
    const isFree = id === LIVE_ID && (payload[0] === LIVE_KIND.chunk || this.#expected.take(payload[0]!));
    // The rest of a read is processed even if the allowance is used up; then reading pauses.
    if (!isFree) this.#messageRate.spend(id === 0 ? EXTENSION_HANDSHAKE_MESSAGES : 1, this.#now);
    if (id === 0) this.#extensionHandshakeReceived(decodeExtensionHandshake(payload));
    else if (id === LIVE_ID) this.#live(payload);
    else if (id === METADATA_ID) this.#metadataReceived(payload);
    else if (id === PEX_ID) this.#pexReceived(payload);
    else if (id === HOLEPUNCH_ID && this.#setup.sharesPeers) this.#events.holePunch(this, payload);
  }

  #extensionHandshakeReceived(hello: ExtensionHandshake): void {
    const { messages, listenPort, version } = hello;
    if (version !== undefined && version !== "") this.client = version;
    this.#metadataId = messages.get("ut_metadata") ?? this.#metadataId;
    this.#pexId = messages.get("ut_pex") ?? this.#pexId;
    this.holepunchMessageId = messages.get("ut_holepunch") ?? this.holepunchMessageId;
    if (this.#setup.sharesPeers && this.#pexId !== 0) this.#pex ??= new Pex();
    const liveId = messages.get(LIVE_EXTENSION);
    if (liveId !== undefined && !(this.#isReady && liveId === 0)) this.#liveId = liveId;
    if (this.isIncoming && listenPort !== undefined && !this.#isReady) {
      this.listenAddress = { host: this.remote.host, port: listenPort };
    }
    if (this.#isReady && liveId === 0) this.#events.rejected(this, "left the live network");
    if (this.#isReady || this.#liveId === 0 || !hello.live) return;
    this.#isReady = true;
    const { challenge } = hello.live;
    this.#events.ready(this, this.#aboutOf(hello.live), this.#rttMs ?? this.#incomingRttMs);
    // The swarm may have refused the peer. A signature costs more than all else of a connection.
    if (this.#isClosed || !challenge) return;
    const proof = this.#setup.roles.prove(this.#peerId!, challenge);
    if (proof) this.#control(this.#liveId, proof);
  }

  /** Round-trip time of an incoming connection; unknown if the peer introduced itself before it had our handshake. */
  get #incomingRttMs(): number {
    return this.#now > this.#waitingSince ? this.#now - this.#waitingSince : DEFAULT_RTT_MS;
  }

  /** Returns the peer's description, except for what its peer id determines. */
  #aboutOf(reported: LivePeerInfo): LiveAbout {
    const { sha256, info } = this.#setup;
    const hash = sha256(this.#peerId!);
    return { ...reported, homeStripe: homeStripeOf(hash, info.stripeCount), digest: pathDigest(hash) };
  }

  #metadataReceived(payload: Uint8Array): void {
    const message = decodeMetadataMessage(payload);
    const answer = message && this.#metadata.answer(message);
    if (answer && this.#metadataId !== 0) this.#control(this.#metadataId, answer);
  }

  #pexReceived(payload: Uint8Array): void {
    if (!this.#pex) return;
    const result = this.#pex.limit(this.#now);
    if (result === "close") throw new DecodeError("PEX", 0, "far more than one message a minute");
    if (result === "ignore") return;
    const { added } = decodePexMessage(payload);
    this.#events.peers(
      this,
      added.filter(({ address }) => isPlausibleAddress(address, this.remote)),
    );
  }

  #live(payload: Uint8Array): void {
    if (!this.#isReady) throw new DecodeError("live message", 0, "sent before the introduction");
    if (payload[0] === LIVE_KIND.proof) {
      // Checking one costs two signatures at most, so only the first one counts.
      const role = this.#hasProof
        ? undefined
        : this.#setup.roles.proved(payload, this.#peerId!, this.#challenge);
      this.#hasProof = true;
      if (role) this.#events.proved(this, role);
      return;
    }
    const message = this.#codec.decode(payload);
    if (message) this.#events.message(this, message);
  }

  #control(id: number, payload: Uint8Array): void {
    this.queue.message(framed(id, payload), PRIORITY.control, NEVER, this.#now);
  }
}
