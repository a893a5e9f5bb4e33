import { addressText, type PeerAddress } from "../base/address.ts";
import { readU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import { after, type Instant } from "../base/time.ts";
import type { Runtime, UdpSocket } from "../runtime/contract.ts";
import type { AnnounceReply, AnnounceRequest } from "../wire/tracker.ts";
import type { ScrapeCounts } from "../wire/tracker-reply.ts";
import {
  decodeUdpReply,
  encodeUdpAnnounce,
  encodeUdpConnect,
  encodeUdpScrape,
  type UdpReply,
} from "../wire/tracker-udp.ts";

/** Conversations with UDP trackers (BEP 15), over one socket for each IP version. */
export interface UdpTrackers {
  /** Announces to the tracker at `to`. Rejects with an `Error` where it does not answer, or with the signal's reason. */
  announce(to: PeerAddress, request: AnnounceRequest, signal: AbortSignal): Promise<AnnounceReply>;
  /** Asks for the counts of one swarm. Rejects as `announce` does. */
  scrape(to: PeerAddress, infohash: Infohash, signal: AbortSignal): Promise<ScrapeCounts>;
  close(): void;
}

type Parts = Pick<Runtime, "net" | "clock" | "randomBytes">;

/** A connection id may be used for a minute (BEP 15). */
const CONNECTION_MS = 60_000;
/** Trackers whose connection id is kept. */
const MAX_CONNECTIONS = 200;
/** How long each try waits. BEP 15 begins at 15 s and doubles eight times; a player does not wait for an hour. */
const TRY_MS = [5_000, 10_000, 20_000] as const;

interface Question {
  readonly to: PeerAddress;
  readonly answered: (reply: UdpReply) => void;
}

/** UDP trackers as this machine reaches them. */
export function createUdpTrackers(runtime: Parts): UdpTrackers {
  const conversations = new Conversations(runtime);
  return {
    async announce(to, request, signal) {
      const reply = await conversations.talk(to, signal, (connection, transaction) =>
        encodeUdpAnnounce(connection, transaction, request),
      );
      if (reply.kind === "error") return { ok: false, reason: reply.message || "the tracker refused" };
      if (reply.kind !== "announce") return { ok: false, reason: `the tracker answered with ${reply.kind}` };
      const { peers, intervalSeconds, seeders, leechers } = reply;
      return { ok: true, peers, intervalSeconds, counts: { seeders, leechers } };
    },
    async scrape(to, infohash, signal) {
      const reply = await conversations.talk(to, signal, (connection, transaction) =>
        encodeUdpScrape(connection, transaction, [infohash]),
      );
      const counts = reply.kind === "scrape" ? reply.counts[0] : undefined;
      if (!counts) throw new Error(reply.kind === "error" ? reply.message : "the tracker gave no counts");
      return counts;
    },
    close: () => conversations.close(),
  };
}

class Conversations {
  readonly #runtime: Parts;
  readonly #sockets = new Map<4 | 6, Promise<UdpSocket>>();
  readonly #connections = new Map<string, { readonly id: Uint8Array; readonly until: Instant }>();
  /** Questions without an answer, by transaction; as many as announces run at once. */
  readonly #questions = new Map<number, Question>();
  #isClosed = false;

  constructor(runtime: Parts) {
    this.#runtime = runtime;
  }

  /** Asks a question that needs a connection id, getting one first where there is none. */
  async talk(
    to: PeerAddress,
    signal: AbortSignal,
    question: (connection: Uint8Array, transaction: number) => Uint8Array,
  ): Promise<UdpReply> {
    const held = this.#connections.get(addressText(to));
    const isFresh = held !== undefined && held.until > this.#runtime.clock.now();
    const id = isFresh ? held.id : await this.#connect(to, signal);
    const reply = await this.#ask(to, signal, (transaction) => question(id, transaction));
    if (reply.kind !== "error") return reply;
    // The error may mean that the tracker forgot the connection: the next question gets a new one, and this one too
    // where the connection was not made for it.
    this.#connections.delete(addressText(to));
    if (!isFresh) return reply;
    const renewed = await this.#connect(to, signal);
    return this.#ask(to, signal, (transaction) => question(renewed, transaction));
  }

  close(): void {
    this.#isClosed = true;
    for (const socket of this.#sockets.values()) {
      socket.then(
        (bound) => bound.close(),
        () => {}, // It was never bound, and whoever asked has been told.
      );
    }
    this.#sockets.clear();
  }

  async #connect(to: PeerAddress, signal: AbortSignal): Promise<Uint8Array> {
    const reply = await this.#ask(to, signal, encodeUdpConnect);
    if (reply.kind === "error") throw new Error(reply.message || "the tracker refused");
    if (reply.kind !== "connect")
      throw new Error(`expected a connection, the tracker answered with ${reply.kind}`);
    for (const [key, { until }] of this.#connections) {
      const isSpent = until <= this.#runtime.clock.now() || this.#connections.size >= MAX_CONNECTIONS;
      if (isSpent) this.#connections.delete(key);
    }
    const until = after(this.#runtime.clock.now(), CONNECTION_MS);
    this.#connections.set(addressText(to), { id: reply.connectionId, until });
    return reply.connectionId;
  }

  /** Sends a question until it is answered. All tries carry one transaction, so that a late answer still counts. */
  async #ask(
    to: PeerAddress,
    signal: AbortSignal,
    question: (transaction: number) => Uint8Array,
  ): Promise<UdpReply> {
    const socket = await this.#socket(to);
    signal.throwIfAborted();
    const transaction = this.#newTransaction();
    const bytes = question(transaction);
    return new Promise<UdpReply>((resolve, reject) => {
      let stopTimer = () => {};
      const finish = () => {
        stopTimer();
        this.#questions.delete(transaction);
        signal.removeEventListener("abort", abort);
      };
      const abort = () => {
        finish();
        reject(signal.reason);
      };
      const attempt = (number: number) => {
        const waitMs = TRY_MS[number];
        if (waitMs === undefined) {
          finish();
          reject(new Error(`no answer to ${TRY_MS.length} tries`));
          return;
        }
        socket.send(bytes, to);
        const due = after(this.#runtime.clock.now(), waitMs);
        stopTimer = this.#runtime.clock.at(due, () => attempt(number + 1));
      };
      const answered = (reply: UdpReply) => {
        finish();
        resolve(reply);
      };
      this.#questions.set(transaction, { to, answered });
      signal.addEventListener("abort", abort, { once: true });
      attempt(0);
    });
  }

  #socket(to: PeerAddress): Promise<UdpSocket> {
    if (this.#isClosed) return Promise.reject(new Error("the announcer is closed"));
    const family = to.host.includes(":") ? 6 : 4;
    const held = this.#sockets.get(family);
    if (held) return held;
    const address = { host: family === 6 ? "::" : "0.0.0.0", port: 0 };
    const made = this.#runtime.net.bindUdp(address, (bytes, from, actual) =>
      this.#received(bytes, from, actual),
    );
    this.#sockets.set(family, made);
    // Without this a machine that has no IPv6 now would have none for ever.
    made.catch(() => this.#sockets.delete(family));
    return made;
  }

  /** Takes an answer only from the very address that was asked, and only to a question that is open: anybody can send
   * us datagrams. The peers in it are of the IP version that it came by. */
  #received(bytes: Uint8Array, from: PeerAddress, actual = from): void {
    const question = bytes.length >= 8 ? this.#questions.get(readU32(bytes, 4)) : undefined;
    if (question?.to.host !== from.host || question.to.port !== from.port) return;
    try {
      question.answered(decodeUdpReply(bytes, actual.host.includes(":") ? 6 : 4));
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      const transaction = readU32(bytes, 4);
      question.answered({ kind: "error", transaction, message: thrown.message });
    }
  }

  /** Strong, so that nobody off the path can guess it (BEP 15). */
  #newTransaction(): number {
    for (;;) {
      const transaction = readU32(this.#runtime.randomBytes(4), 0);
      if (!this.#questions.has(transaction)) return transaction;
    }
  }
}
