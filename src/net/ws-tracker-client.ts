import { orAborted } from "../async/abort.ts";
import { deferred } from "../async/deferred.ts";
import { addressScope } from "../base/address.ts";
import { latin1Text } from "../base/bytes.ts";
import { DecodeError, messageOf } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import { TokenBucket } from "../base/rate.ts";
import { after, type Instant } from "../base/time.ts";
import { decodeWsSignal, encodeWsAnswer, type WsSignal } from "../protocol/webrtc/tracker-signals.ts";
import type { Clock, HttpClient, TextSocket } from "../runtime/contract.ts";
import type { AnnounceReply, AnnounceRequest, SwarmCounts } from "../wire/tracker/announce.ts";
import type { Offer } from "../wire/tracker/server-ws.ts";
import { decodeWsReply, encodeWsAnnounce, encodeWsScrape, type WsReply } from "../wire/tracker/ws.ts";
import type { WebRtcSignaling } from "./contract.ts";

/** Client of WebSocket trackers, with one connection to each tracker for all swarms. `connectTo` is a verified address of the
 * tracker. */
export interface WsTrackers {
  /** Announces. Rejects with an `Error` if the tracker does not respond, or with the signal's reason. */
  announce(connectTo: string, request: AnnounceRequest, signal: AbortSignal): Promise<AnnounceReply>;
  /** Asks for the size of one swarm; undefined if the tracker does not know it. Rejects like `announce`. */
  scrape(
    connectTo: string,
    url: string,
    infohash: Infohash,
    signal: AbortSignal,
  ): Promise<SwarmCounts | undefined>;
  close(): void;
}

export interface WsTrackersRuntime {
  readonly clock: Clock;
  readonly http: Pick<HttpClient, "openWebSocket">;
}

const OPEN_TIMEOUT_MS = 15_000;
/** An idle connection is kept this long for further requests. With WebRTC it stays open while the tracker introduces peers to us;
 * without, the tracker would send us offers that other peers could accept. */
const IDLE_MS = 10_000;
/** Offers in one announce; browsers make five to ten. */
const OFFERS = 5;
/** Offers of other peers that are answered on one connection, in a burst and per second: each costs a handshake. */
const OFFER_BURST = 50;
const OFFERS_PER_SECOND = 5;
/** Swarms in which a tracker introduces us. One transfer each. */
const MAX_SWARMS = 500;
/** Backoff after the n-th consecutive failed connection: 10 s · 2^n, at most half an hour. */
const BACKOFF_MS = 10_000;
const MAX_BACKOFF_MS = 30 * 60_000;
/** Remembered trackers. One content uses at most 40. */
const MAX_TRACKERS = 200;
/** Pending requests to one tracker: the limit of concurrent announces. */
const MAX_PENDING = 50;
/** Malformed messages until the connection is closed. */
const MAX_MALFORMED = 10;

/** Creates the client; with `webrtc`, the trackers introduce WebRTC peers. */
export function createWsTrackers(runtime: WsTrackersRuntime, webrtc?: WebRtcSignaling): WsTrackers {
  const connections = new Map<string, TrackerConnection>();
  const connectionTo = (connectTo: string, url: string): TrackerConnection => {
    const key = `${connectTo} ${url}`;
    const connection = connections.get(key) ?? new TrackerConnection({ runtime, webrtc, connectTo, url });
    connections.delete(key);
    connections.set(key, connection);
    for (const [oldest, each] of connections) {
      if (connections.size <= MAX_TRACKERS) break;
      each.close();
      connections.delete(oldest);
    }
    return connection;
  };
  return {
    async announce(connectTo, request, signal) {
      const connection = connectionTo(connectTo, request.url);
      const target = { kind: "announce", infohash: request.infohash } as const;
      const offers = await connection.offersFor(request);
      const reply = await connection.send(target, encodeWsAnnounce(request, offers), signal);
      if (reply.kind === "announce") return reply.reply;
      return { ok: false, reason: reply.kind === "failure" ? reply.reason : "the tracker refused" };
    },
    async scrape(connectTo, url, infohash, signal) {
      const connection = connectionTo(connectTo, url);
      const reply = await connection.send({ kind: "scrape", infohash }, encodeWsScrape(infohash), signal);
      if (reply.kind === "failure") throw new Error(reply.reason);
      return reply.kind === "scrape" ? reply.counts.get(infohash) : undefined;
    },
    close() {
      for (const connection of connections.values()) connection.close();
      connections.clear();
    },
  };
}

interface TrackerConnectionOptions {
  readonly runtime: WsTrackersRuntime;
  readonly webrtc: WebRtcSignaling | undefined;
  /** A verified address of the tracker. */
  readonly connectTo: string;
  readonly url: string;
}

interface RequestTarget {
  readonly kind: "announce" | "scrape";
  readonly infohash: Infohash;
}

interface PendingRequest extends RequestTarget {
  received(reply: WsReply): void;
  failed(reason: unknown): void;
}

/** The connection to one tracker, opened on demand. */
class TrackerConnection {
  readonly #runtime: WsTrackersRuntime;
  readonly #webrtc: WebRtcSignaling | undefined;
  readonly #connectTo: string;
  readonly #url: string;
  /** Our peer id, 20 characters, in each swarm in which the tracker introduces us. */
  readonly #swarms = new Map<Infohash, string>();
  readonly #offerRate = new TokenBucket(OFFERS_PER_SECOND, OFFER_BURST);
  /** Unanswered requests, oldest first. */
  readonly #pending = new Set<PendingRequest>();
  #socket: Promise<TextSocket> | undefined;
  #closing = new AbortController();
  #cancelIdle = () => {};
  #failures = 0;
  #retryAt: Instant | undefined;
  #malformed = 0;

  constructor(options: TrackerConnectionOptions) {
    this.#runtime = options.runtime;
    this.#webrtc = options.webrtc;
    this.#connectTo = options.connectTo;
    this.#url = options.url;
  }

  /** Returns the offers for an announce; undefined without WebRTC, and when the swarm is left. */
  async offersFor(request: AnnounceRequest): Promise<readonly Offer[] | undefined> {
    const { infohash, event, numWant, peerId } = request;
    if (event === "stopped") this.#swarms.delete(infohash);
    if (!this.#webrtc || event === "stopped") return undefined;
    if (this.#swarms.size < MAX_SWARMS) this.#swarms.set(infohash, latin1Text(peerId));
    return this.#webrtc.offers(infohash, this.#isLocal, Math.min(OFFERS, numWant));
  }

  /** Sends `text` and resolves to the reply for `target`. */
  async send(target: RequestTarget, text: string, signal: AbortSignal): Promise<WsReply> {
    signal.throwIfAborted();
    if (this.#pending.size >= MAX_PENDING) throw new Error("too many pending requests to the tracker");
    this.#cancelIdle();
    const reply = deferred<WsReply>();
    const request: PendingRequest = { ...target, received: reply.resolve, failed: reply.reject };
    this.#pending.add(request);
    this.#open().then(
      (socket) => {
        if (this.#pending.has(request)) socket.send(text);
      },
      (thrown) => reply.reject(thrown),
    );
    try {
      return await orAborted(reply.promise, signal);
    } finally {
      this.#pending.delete(request);
      if (this.#pending.size === 0) this.#startIdleTimer();
    }
  }

  close(): void {
    this.#cancelIdle();
    this.#closing.abort(new Error("the announcer is closed"));
    this.#socket?.then(
      (socket) => socket.close(),
      () => {}, // The callers got the error of the failed connection.
    );
    this.#connectionClosed("the connection was closed");
  }

  /** Returns the connection; opens it if necessary. */
  #open(): Promise<TextSocket> {
    if (this.#socket) return this.#socket;
    const { clock, http } = this.#runtime;
    if (this.#retryAt !== undefined && clock.now() < this.#retryAt)
      return Promise.reject(new Error("the tracker could not be reached a moment ago"));
    this.#closing = new AbortController();
    const request = {
      url: new URL(this.#url),
      headers: { "user-agent": "Sluice" },
      connectTo: this.#connectTo,
      timeoutMs: OPEN_TIMEOUT_MS,
      signal: this.#closing.signal,
    };
    const opening: Promise<TextSocket> = http.openWebSocket(request, {
      received: (text) => this.#received(text),
      closed: () => {
        if (this.#socket === opening) this.#connectionClosed("the tracker closed the connection");
      },
    });
    this.#socket = opening;
    this.#malformed = 0;
    opening.catch(() => {
      // An attempt that we cancelled is no failure of the tracker.
      if (this.#socket !== opening) return;
      this.#socket = undefined;
      this.#backOff();
    });
    return opening;
  }

  /** A tracker at a local address may introduce peers of local networks. */
  get #isLocal(): boolean {
    return addressScope(this.#connectTo) !== "global";
  }

  /** Answers the offer of a peer, or passes on the answer to ours. */
  async #signaled({ infohash, peerId: toPeerId, signal }: WsSignal): Promise<void> {
    const peerId = this.#swarms.get(infohash);
    const socket = this.#socket;
    if (!this.#webrtc || !socket || peerId === undefined || peerId === toPeerId) return;
    if (signal.description.type === "answer") {
      this.#webrtc.answered(infohash, signal);
      return;
    }
    if (!this.#offerRate.take(1, this.#runtime.clock.now())) return;
    const answer = await this.#webrtc.answer(infohash, this.#isLocal, signal);
    if (answer) (await socket).send(encodeWsAnswer(infohash, peerId, toPeerId, answer));
  }

  #received(text: string): void {
    try {
      const reply = decodeWsReply(text);
      if (reply.kind === "other" && this.#webrtc) {
        // The socket is open: it has just received a message.
        void this.#signaled(decodeWsSignal(text));
        return;
      }
      const request = [...this.#pending].find((each) => isReplyTo(reply, each));
      if (!request) return;
      this.#pending.delete(request);
      this.#failures = 0;
      this.#retryAt = undefined;
      request.received(reply);
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      if (++this.#malformed >= MAX_MALFORMED) this.#disconnect(messageOf(thrown));
    }
  }

  /** Closes the connection soon if no further request follows, and no swarm needs it. */
  #startIdleTimer(): void {
    const { clock } = this.#runtime;
    this.#cancelIdle();
    if (this.#socket && this.#swarms.size === 0)
      this.#cancelIdle = clock.at(after(clock.now(), IDLE_MS), () => this.#disconnect("idle"));
  }

  #disconnect(reason: string): void {
    const socket = this.#socket;
    // Cancels a connection that is still opening.
    this.#closing.abort(new Error(reason));
    this.#connectionClosed(reason);
    socket?.then(
      (open) => open.close(),
      () => {}, // It was never open.
    );
  }

  /** Rejects all pending requests. */
  #connectionClosed(reason: string): void {
    this.#socket = undefined;
    if (this.#pending.size > 0) this.#backOff();
    for (const request of this.#pending) request.failed(new Error(reason));
    this.#pending.clear();
    this.#cancelIdle();
  }

  /** Starts or extends the backoff. */
  #backOff(): void {
    const { clock } = this.#runtime;
    const backoffMs = Math.min(BACKOFF_MS * 2 ** this.#failures, MAX_BACKOFF_MS);
    this.#retryAt = after(clock.now(), backoffMs);
    this.#failures++;
  }
}

function isReplyTo(reply: WsReply, { kind, infohash }: RequestTarget): boolean {
  if (reply.kind === "failure") return true;
  if (reply.kind === "announce") return kind === "announce" && reply.infohash === infohash;
  return reply.kind === "scrape" && kind === "scrape";
}
