import { orAborted } from "../async/abort.ts";
import { deferred } from "../async/deferred.ts";
import { addressText, type PeerAddress } from "../base/address.ts";
import { readU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import { after, type Instant } from "../base/time.ts";
import type { Runtime, UdpSocket } from "../runtime/contract.ts";
import type { AnnounceReply, AnnounceRequest, ScrapeCounts } from "../wire/tracker/announce.ts";
import {
  decodeUdpReply,
  encodeUdpAnnounce,
  encodeUdpConnect,
  encodeUdpScrape,
  type UdpReply,
} from "../wire/tracker/udp.ts";

/** Client of UDP trackers (BEP 15), with one socket for each IP version. */
export interface UdpTrackers {
  /** Announces to the tracker at `to`. Rejects with an `Error` if it does not respond, or with the signal's reason. */
  announce(to: PeerAddress, request: AnnounceRequest, signal: AbortSignal): Promise<AnnounceReply>;
  /** Asks for the size of one swarm. Rejects like `announce`. */
  scrape(to: PeerAddress, infohash: Infohash, signal: AbortSignal): Promise<ScrapeCounts>;
  close(): void;
}

type UdpTrackersRuntime = Pick<Runtime, "net" | "clock" | "randomBytes">;

/** Lifetime of a connection id (BEP 15). */
const CONNECTION_MS = 60_000;
/** Cached connection ids. */
const MAX_CONNECTIONS = 200;
/** Response timeout of each attempt. BEP 15 starts at 15 s and doubles eight times, too long for a player. */
const ATTEMPT_MS = [5_000, 10_000, 20_000] as const;

interface PendingRequest {
  readonly to: PeerAddress;
  readonly received: (reply: UdpReply) => void;
}

/** Creates the client. */
export function createUdpTrackers(runtime: UdpTrackersRuntime): UdpTrackers {
  const requests = new TrackerRequests(runtime);
  return {
    async announce(to, request, signal) {
      const reply = await requests.send(to, signal, (connection, transaction) =>
        encodeUdpAnnounce(connection, transaction, request),
      );
      if (reply.kind === "error") return { ok: false, reason: reply.message || "the tracker refused" };
      if (reply.kind !== "announce") return { ok: false, reason: `the tracker answered with ${reply.kind}` };
      const { peers, intervalSeconds, seeders, leechers } = reply;
      return { ok: true, peers, intervalSeconds, counts: { seeders, leechers } };
    },
    async scrape(to, infohash, signal) {
      const reply = await requests.send(to, signal, (connection, transaction) =>
        encodeUdpScrape(connection, transaction, [infohash]),
      );
      const counts = reply.kind === "scrape" ? reply.counts[0] : undefined;
      if (!counts) throw new Error(reply.kind === "error" ? reply.message : "the tracker gave no counts");
      return counts;
    },
    close: () => requests.close(),
  };
}

class TrackerRequests {
  readonly #runtime: UdpTrackersRuntime;
  readonly #sockets = new Map<4 | 6, Promise<UdpSocket>>();
  readonly #connections = new Map<string, { readonly id: Uint8Array; readonly until: Instant }>();
  /** Unanswered requests by transaction id; at most one for each concurrent announce. */
  readonly #pending = new Map<number, PendingRequest>();
  #isClosed = false;

  constructor(runtime: UdpTrackersRuntime) {
    this.#runtime = runtime;
  }

  /** Sends a request that needs a connection id; requests an id first unless one is cached. */
  async send(
    to: PeerAddress,
    signal: AbortSignal,
    encode: (connection: Uint8Array, transaction: number) => Uint8Array,
  ): Promise<UdpReply> {
    const cached = this.#connections.get(addressText(to));
    const isFresh = cached !== undefined && cached.until > this.#runtime.clock.now();
    const id = isFresh ? cached.id : await this.#connect(to, signal);
    const reply = await this.#exchange(to, signal, (transaction) => encode(id, transaction));
    if (reply.kind !== "error") return reply;
    // The tracker may have dropped a cached connection id: retry once with a new one.
    this.#connections.delete(addressText(to));
    if (!isFresh) return reply;
    const renewed = await this.#connect(to, signal);
    return this.#exchange(to, signal, (transaction) => encode(renewed, transaction));
  }

  close(): void {
    this.#isClosed = true;
    for (const socket of this.#sockets.values()) {
      socket.then(
        (bound) => bound.close(),
        () => {}, // The bind error was reported to the caller.
      );
    }
    this.#sockets.clear();
  }

  async #connect(to: PeerAddress, signal: AbortSignal): Promise<Uint8Array> {
    const reply = await this.#exchange(to, signal, encodeUdpConnect);
    if (reply.kind === "error") throw new Error(reply.message || "the tracker refused");
    if (reply.kind !== "connect")
      throw new Error(`expected a connection, the tracker answered with ${reply.kind}`);
    for (const [key, { until }] of this.#connections) {
      const isExpired = until <= this.#runtime.clock.now() || this.#connections.size >= MAX_CONNECTIONS;
      if (isExpired) this.#connections.delete(key);
    }
    const until = after(this.#runtime.clock.now(), CONNECTION_MS);
    this.#connections.set(addressText(to), { id: reply.connectionId, until });
    return reply.connectionId;
  }

  /** Sends a request until it is answered. All attempts use one transaction id, so that a late response is accepted. */
  async #exchange(
    to: PeerAddress,
    signal: AbortSignal,
    encode: (transaction: number) => Uint8Array,
  ): Promise<UdpReply> {
    const socket = await this.#socket(to);
    signal.throwIfAborted();
    const transaction = this.#newTransaction();
    const bytes = encode(transaction);
    const reply = deferred<UdpReply>();
    let cancelTimer = () => {};
    const attempt = (number: number) => {
      const waitMs = ATTEMPT_MS[number];
      if (waitMs === undefined) {
        reply.reject(new Error(`no response to ${ATTEMPT_MS.length} attempts`));
        return;
      }
      socket.send(bytes, to);
      const due = after(this.#runtime.clock.now(), waitMs);
      cancelTimer = this.#runtime.clock.at(due, () => attempt(number + 1));
    };
    this.#pending.set(transaction, { to, received: reply.resolve });
    attempt(0);
    try {
      return await orAborted(reply.promise, signal);
    } finally {
      cancelTimer();
      this.#pending.delete(transaction);
    }
  }

  #socket(to: PeerAddress): Promise<UdpSocket> {
    if (this.#isClosed) return Promise.reject(new Error("the announcer is closed"));
    const family = to.host.includes(":") ? 6 : 4;
    const open = this.#sockets.get(family);
    if (open) return open;
    const address = { host: family === 6 ? "::" : "0.0.0.0", port: 0 };
    const made = this.#runtime.net.bindUdp(address, (bytes, from, actual) =>
      this.#received(bytes, from, actual),
    );
    this.#sockets.set(family, made);
    // Lets a later request try again, for example when IPv6 has become available.
    made.catch(() => this.#sockets.delete(family));
    return made;
  }

  /** Accepts a response only to a pending request and from the address it was sent to, because source addresses can be forged.
   * The response contains peers of the IP version it arrived over. */
  #received(bytes: Uint8Array, from: PeerAddress, actual = from): void {
    const pending = bytes.length >= 8 ? this.#pending.get(readU32(bytes, 4)) : undefined;
    if (pending?.to.host !== from.host || pending.to.port !== from.port) return;
    try {
      pending.received(decodeUdpReply(bytes, actual.host.includes(":") ? 6 : 4));
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      const transaction = readU32(bytes, 4);
      pending.received({ kind: "error", transaction, message: thrown.message });
    }
  }

  /** Returns an unpredictable id, which prevents forged responses (BEP 15). */
  #newTransaction(): number {
    for (;;) {
      const transaction = readU32(this.#runtime.randomBytes(4), 0);
      if (!this.#pending.has(transaction)) return transaction;
    }
  }
}
