import { addressScope, familyOf, type PeerAddress } from "../../base/address.ts";
import { equalBytes, latin1Text } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import { TokenBucket } from "../../base/rate.ts";
import type { Sha256 } from "../../base/signature.ts";
import { type Instant, instant } from "../../base/time.ts";
import { CLIENT } from "../../swarm/extensions.ts";
import type { PunchPeer } from "../../swarm/holepunch.ts";
import { type LivePriority, PRIORITY } from "../../swarm/live/contract.ts";
import type { LiveAbout, LiveWord } from "../../swarm/live/messages.ts";
import { Pex } from "../../swarm/pex.ts";
import {
  decodeExtensionHandshake,
  type ExtensionHandshake,
  encodeExtensionHandshake,
} from "../../wire/extension-handshake.ts";
import { decodeHandshake, encodeHandshake, HANDSHAKE_BYTES } from "../../wire/handshake.ts";
import { homeStripeOf, LIVE_EXTENSION, type LivePeerInfo } from "../../wire/live-hello.ts";
import type { LiveInfo } from "../../wire/live-info.ts";
import { LIVE_KIND } from "../../wire/live-kinds.ts";
import { pathDigest } from "../../wire/live-paths.ts";
import { decodeMetadataMessage } from "../../wire/metadata-message.ts";
import { clientName } from "../../wire/peer-id.ts";
import { PeerMessageDecoder } from "../../wire/peer-message.ts";
import { decodePexMessage, encodePexMessage, type PexPeer } from "../../wire/pex-message.ts";
import { extendedOnly } from "./extended-only.ts";
import { LiveMetadata } from "./live-metadata.ts";
import { isBelievable, LiveWords } from "./live-words.ts";
import { framed, type SendQueue } from "./send-queue.ts";

/** What all links of one stream have in common. */
export interface PeerLinkSetup {
  readonly infohash: Infohash;
  readonly info: LiveInfo;
  readonly infoBytes: Uint8Array;
  readonly peerId: Uint8Array;
  /** What we say of ourselves. */
  readonly about: LivePeerInfo;
  /** 0: nobody can call us. */
  readonly listenPort: number;
  /** Peers are told of each other (BEP 11): not in private streams. */
  readonly sharesPeers: boolean;
  /** Whether uTP is spoken, over which peers that cannot be called are met halfway (BEP 55). */
  readonly punches?: boolean;
  readonly sha256: Sha256;
}

/** What happens on a link. */
export interface PeerLinkEvents {
  /** Its handshake has come; why not to go on with it, or undefined. */
  greeted(link: PeerLink): string | undefined;
  /** Both have said what they are to the stream. */
  ready(link: PeerLink, about: LiveAbout, rttMs: number): void;
  heard(link: PeerLink, word: LiveWord): void;
  /** It tells of other peers. */
  told(link: PeerLink, peers: readonly PexPeer[]): void;
  /** It asks for a peer, or tells that one calls us (BEP 55). Throws `DecodeError`. */
  punched(link: PeerLink, payload: Uint8Array): void;
  /** It is of no use, without being at fault. */
  unfit(link: PeerLink, reason: string): void;
}

/** A handshake is complete by then, and `sl` has come: who has the info dictionary sends both at once. */
const GREETING_MS = 10_000;
const ABOUT_MS = 5_000;
/** Who fetches the metadata first is borne so long. */
const FETCHING_MS = 60_000;
/** The largest message of the protocol has 16,398 bytes; metadata and peers are no larger. */
const MAX_MESSAGE_BYTES = 20 * 1024;
/** Messages that are no chunks, in a second and in a burst. A parent of all stripes sends some 60 a second at most, and
 * some hundred headers at once where they were asked for. */
const MESSAGES_PER_SECOND = 300;
const MESSAGE_BURST = 3_000;
/** The numbers that others are to use towards us. */
const METADATA_ID = 1;
const PEX_ID = 2;
const LIVE_ID = 3;
const HOLEPUNCH_ID = 4;
/** A round trip that nobody has measured yet; the swarm's own pings correct it. */
const USUAL_RTT_MS = 100;
const NEVER = instant(Number.POSITIVE_INFINITY);

/**
 * The protocol on one connection, without its socket: handshakes (BEP 3, 10), metadata (BEP 9), peers (BEP 11), and live
 * messages as bytes on one side and as words on the other. What is to be sent goes to the queue.
 */
export class PeerLink implements PunchPeer {
  readonly isIncoming: boolean;
  readonly remote: PeerAddress;
  readonly queue: SendQueue;
  readonly #setup: PeerLinkSetup;
  readonly #events: PeerLinkEvents;
  readonly #openedAt: Instant;
  readonly #decoder: PeerMessageDecoder;
  readonly #words: LiveWords;
  readonly #metadata: LiveMetadata;
  readonly #patience = new TokenBucket(MESSAGES_PER_SECOND, MESSAGE_BURST);
  readonly #greeting = new Uint8Array(HANDSHAKE_BYTES);
  #greetingFilled = 0;
  #askedAt: Instant;
  #now: Instant;
  #peerId: Uint8Array | undefined;
  #liveId = 0;
  #metadataId = 0;
  #pexId = 0;
  #pex: Pex | undefined;
  holepunchMessageId = 0;
  /** Of an outgoing connection, by its handshake. */
  #rttMs: number | undefined;
  #isReady = false;
  #isClosed = false;
  client = "unknown";
  /** Where the peer listens: where we called it, or where it says. */
  listenAddress: PeerAddress | undefined;

  /** `now` is when the connection stands, or was asked for. */
  constructor(
    setup: PeerLinkSetup,
    events: PeerLinkEvents,
    queue: SendQueue,
    connection: { readonly isIncoming: boolean; readonly remote: PeerAddress },
    now: Instant,
  ) {
    this.#setup = setup;
    this.#events = events;
    this.queue = queue;
    this.isIncoming = connection.isIncoming;
    this.remote = connection.remote;
    if (!connection.isIncoming) this.listenAddress = connection.remote;
    this.#openedAt = this.#askedAt = this.#now = now;
    this.#metadata = new LiveMetadata(setup.infoBytes);
    this.#words = new LiveWords(setup.info, connection.remote);
    this.#decoder = new PeerMessageDecoder(
      extendedOnly((id, payload) => this.#extended(id, payload)),
      { maxBitfieldBytes: 256 * 1024, maxExtendedBytes: MAX_MESSAGE_BYTES, maxBlockBytes: 128 * 1024 },
    );
  }

  /** Live messages may be sent. */
  get isReady(): boolean {
    return this.#isReady && !this.#isClosed;
  }

  get isOpen(): boolean {
    return this.isReady;
  }

  get address(): PeerAddress {
    return this.remote;
  }

  /** Its handshake has come. */
  get isGreeted(): boolean {
    return this.#peerId !== undefined;
  }

  /** Whether both are connections to one program: its peer id, at hosts that may be one. Anybody can claim anybody's peer
   * id, so another host does not count as the same unless it is the same machine's other family, or this machine. */
  isSamePeer(other: PeerLink): boolean {
    if (!this.#peerId || !other.#peerId || !equalBytes(this.#peerId, other.#peerId)) return false;
    const [a, b] = [this.remote.host, other.remote.host];
    if (a === b || familyOf(a) !== familyOf(b)) return true;
    return addressScope(a) === "loopback" && addressScope(b) === "loopback";
  }

  /** Whether we are at both ends. */
  get isOurselves(): boolean {
    return this.#peerId !== undefined && equalBytes(this.#peerId, this.#setup.peerId);
  }

  /** Of two connections that crossed, the one dialled by the smaller peer id is kept, so that both ends decide alike. */
  get isKeptWhenCrossed(): boolean {
    const theirsIsSmaller = latin1Text(this.#peerId!) < latin1Text(this.#setup.peerId);
    return this.isIncoming === theirsIsSmaller;
  }

  /** The connection that we asked for stands. */
  opened(now: Instant): void {
    this.#askedAt = this.#now = now;
    this.#sendHandshake();
  }

  /** Takes bytes of the peer. Throws `DecodeError` where it is at fault; nothing may follow then. */
  received(bytes: Uint8Array, now: Instant): void {
    this.#now = now;
    let rest = bytes;
    if (this.#greetingFilled < HANDSHAKE_BYTES) {
      const part = bytes.subarray(0, HANDSHAKE_BYTES - this.#greetingFilled);
      this.#greeting.set(part, this.#greetingFilled);
      this.#greetingFilled += part.length;
      if (this.#greetingFilled < HANDSHAKE_BYTES) return;
      this.#greeted();
      rest = bytes.subarray(part.length);
    }
    if (!this.#isClosed) this.#decoder.feed(rest);
  }

  /** Queues a word; false where the peer takes nothing any more. Only when the link is ready. */
  send(word: LiveWord, priority: LivePriority, expiresAt: Instant, now: Instant): boolean {
    if (word.kind === "chunk") return this.queue.chunk(word, this.#liveId, priority, expiresAt, now);
    const payload = this.#words.encode(word);
    return !payload || this.queue.message(framed(this.#liveId, payload), priority, expiresAt, now);
  }

  /** Tells of those who can be called and were not told yet, at most once a minute. */
  tellPeers(known: readonly PexPeer[], now: Instant): void {
    if (!this.isReady || !this.#pex || this.#pexId === 0) return;
    const next = this.#pex.nextWake();
    if (next !== undefined && now < next) return;
    const isNear = addressScope(this.remote.host) !== "global";
    const tellable = isNear ? known : known.filter(({ address }) => addressScope(address.host) === "global");
    const message = this.#pex.delta(tellable, this.listenAddress, now);
    if (message) this.#control(this.#pexId, encodePexMessage(message));
  }

  /** Sends a message of BEP 55; only to who knows it. */
  punch(payload: Uint8Array): void {
    this.#control(this.holepunchMessageId, payload);
  }

  /** Why the link has lasted long enough at `now`, or undefined. */
  overdue(now: Instant): string | undefined {
    if (this.#isReady) return undefined;
    const ageMs = now - this.#openedAt;
    if (!this.#peerId) return ageMs > GREETING_MS ? "no handshake" : undefined;
    if (this.#metadata.wasAsked) return ageMs > FETCHING_MS ? "fetched metadata and stayed" : undefined;
    return now - this.#askedAt > ABOUT_MS ? "not of the live network" : undefined;
  }

  /** Nothing more is read or sent. */
  close(): void {
    this.#isClosed = true;
    this.#decoder.stop();
  }

  #greeted(): void {
    const handshake = decodeHandshake(this.#greeting);
    if (handshake.infohash !== this.#setup.infohash) {
      throw new DecodeError("handshake", 28, "another infohash");
    }
    this.#peerId = handshake.peerId;
    this.client = clientName(handshake.peerId);
    const problem = handshake.extensions ? this.#events.greeted(this) : "speaks no extensions";
    if (problem !== undefined) {
      this.#events.unfit(this, problem);
      return;
    }
    if (!this.isIncoming) this.#rttMs = this.#now - this.#askedAt;
    else {
      this.#askedAt = this.#now;
      this.#sendHandshake();
    }
  }

  /** Both handshakes at once, whether or not the other end knows the second: whoever calls us then hears of the stream a
   * round trip sooner, and who does not know it is of no use. */
  #sendHandshake(): void {
    const { infohash, peerId } = this.#setup;
    const bytes = encodeHandshake({ infohash, peerId, extensions: true, fast: false, dht: false });
    this.queue.message(bytes, PRIORITY.control, NEVER, this.#now);
    this.#introduce();
  }

  #introduce(): void {
    const { about, infoBytes, listenPort, sharesPeers } = this.#setup;
    const messages = new Map([
      [LIVE_EXTENSION, LIVE_ID],
      ["ut_metadata", METADATA_ID],
    ]);
    if (sharesPeers) messages.set("ut_pex", PEX_ID);
    if (sharesPeers && this.#setup.punches) messages.set("ut_holepunch", HOLEPUNCH_ID);
    const hello = encodeExtensionHandshake({
      messages,
      version: CLIENT,
      yourAddress: this.remote.host,
      metadataBytes: infoBytes.length,
      live: about,
      ...(listenPort > 0 && { listenPort }),
    });
    this.#control(0, hello);
  }

  #extended(id: number, payload: Uint8Array): void {
    if (this.#isClosed) return;
    // Chunks cost their sender as much as us; the rest is short, and an answer may be long.
    const isChunk = id === LIVE_ID && payload[0] === LIVE_KIND.chunk;
    if (!isChunk && !this.#patience.take(1, this.#now)) {
      throw new DecodeError("live message", 0, `more than ${MESSAGES_PER_SECOND} messages a second`);
    }
    if (id === 0) this.#introduced(decodeExtensionHandshake(payload));
    else if (id === LIVE_ID) this.#live(payload);
    else if (id === METADATA_ID) this.#metadataAsked(payload);
    else if (id === PEX_ID) this.#peersTold(payload);
    else if (id === HOLEPUNCH_ID && this.#setup.sharesPeers) this.#events.punched(this, payload);
  }

  #introduced(hello: ExtensionHandshake): void {
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
    if (this.#isReady && liveId === 0) this.#events.unfit(this, "left the live network");
    if (this.#isReady || this.#liveId === 0 || !hello.live) return;
    this.#isReady = true;
    this.#events.ready(this, this.#aboutOf(hello.live), this.#rttMs ?? this.#waitedMs);
  }

  /** The round trip to one who called us: unknown where it said all before it could have our answer. */
  get #waitedMs(): number {
    return this.#now > this.#askedAt ? this.#now - this.#askedAt : USUAL_RTT_MS;
  }

  /** What it says of itself, but for what its peer id decides. */
  #aboutOf(told: LivePeerInfo): LiveAbout {
    const { sha256, info } = this.#setup;
    const hash = sha256(this.#peerId!);
    return { ...told, homeStripe: homeStripeOf(hash, info.stripeCount), digest: pathDigest(hash) };
  }

  #metadataAsked(payload: Uint8Array): void {
    const message = decodeMetadataMessage(payload);
    const answer = message && this.#metadata.answer(message);
    if (answer && this.#metadataId !== 0) this.#control(this.#metadataId, answer);
  }

  #peersTold(payload: Uint8Array): void {
    if (!this.#pex) return;
    const verdict = this.#pex.judge(this.#now);
    if (verdict === "close") throw new DecodeError("PEX", 0, "far more than one message a minute");
    if (verdict === "ignore") return;
    const { added } = decodePexMessage(payload);
    this.#events.told(
      this,
      added.filter(({ address }) => isBelievable(address, this.remote)),
    );
  }

  #live(payload: Uint8Array): void {
    if (!this.#isReady) throw new DecodeError("live message", 0, "before both have said what they are");
    const word = this.#words.decode(payload);
    if (word) this.#events.heard(this, word);
  }

  #control(id: number, payload: Uint8Array): void {
    this.queue.message(framed(id, payload), PRIORITY.control, NEVER, this.#now);
  }
}
