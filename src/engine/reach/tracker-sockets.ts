import { DecodeError, messageOf } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import { after, type Instant } from "../../base/time.ts";
import type { Clock, HttpClient, TextSocket } from "../../runtime/contract.ts";
import type { AnnounceReply, AnnounceRequest, SwarmCounts } from "../../wire/tracker.ts";
import { decodeWsReply, encodeWsAnnounce, encodeWsScrape, type WsReply } from "../../wire/tracker-ws.ts";

/** Conversations with WebSocket trackers, over one connection to each for all swarms. `connectTo` is an address of the
 * tracker that has been checked. */
export interface TrackerSockets {
  /** Announces. Rejects with an `Error` where the tracker does not answer, or with the signal's reason. */
  announce(connectTo: string, request: AnnounceRequest, signal: AbortSignal): Promise<AnnounceReply>;
  /** Asks for the counts of one swarm; undefined where the tracker does not know it. Rejects as `announce` does. */
  scrape(
    connectTo: string,
    url: string,
    infohash: Infohash,
    signal: AbortSignal,
  ): Promise<SwarmCounts | undefined>;
  close(): void;
}

/** What they need of the machine. */
export interface TrackerSocketsRuntime {
  readonly clock: Clock;
  readonly http: Pick<HttpClient, "openWebSocket">;
}

/** A server that does not become a WebSocket by then will not. */
const OPEN_TIMEOUT_MS = 15_000;
/** The connection is kept for the next question. Not for longer: as long as it stands the tracker sends us offers of WebRTC,
 * which those who made them would better give to others. */
const IDLE_MS = 10_000;
/** After the n-th connection in a row that came to nothing no other is tried for 10 s · 2^n, half an hour at most. */
const REST_MS = 10_000;
const MAX_REST_MS = 30 * 60_000;
/** Trackers that are remembered; more than 40 for one content nobody is asked by. */
const MAX_TALKS = 200;
/** Questions that wait for one tracker's answer: as many as are asked at once in all. */
const MAX_WAITING = 50;
/** Messages that break the format, before the connection is ended. */
const MAX_FAULTS = 10;

/** WebSocket trackers as this machine reaches them. */
export function createTrackerSockets(runtime: TrackerSocketsRuntime): TrackerSockets {
  const talks = new Map<string, Talk>();
  const talkWith = (connectTo: string, url: string): Talk => {
    const key = `${connectTo} ${url}`;
    const talk = talks.get(key) ?? new Talk(runtime, connectTo, url);
    talks.delete(key);
    talks.set(key, talk);
    for (const [oldest, each] of talks) {
      if (talks.size <= MAX_TALKS) break;
      each.close();
      talks.delete(oldest);
    }
    return talk;
  };
  return {
    async announce(connectTo, request, signal) {
      const talk = talkWith(connectTo, request.url);
      const asked = { kind: "announce", infohash: request.infohash } as const;
      const reply = await talk.ask(asked, encodeWsAnnounce(request), signal);
      if (reply.kind === "announce") return reply.reply;
      return { ok: false, reason: reply.kind === "failure" ? reply.reason : "the tracker refused" };
    },
    async scrape(connectTo, url, infohash, signal) {
      const talk = talkWith(connectTo, url);
      const reply = await talk.ask({ kind: "scrape", infohash }, encodeWsScrape(infohash), signal);
      if (reply.kind === "failure") throw new Error(reply.reason);
      return reply.kind === "scrape" ? reply.counts.get(infohash) : undefined;
    },
    close() {
      for (const talk of talks.values()) talk.close();
      talks.clear();
    },
  };
}

interface Question {
  readonly kind: "announce" | "scrape";
  readonly infohash: Infohash;
}

interface Waiting extends Question {
  answered(reply: WsReply): void;
  failed(reason: unknown): void;
}

/** The conversation with one tracker. */
class Talk {
  readonly #runtime: TrackerSocketsRuntime;
  readonly #connectTo: string;
  readonly #url: string;
  /** Without an answer, in the order in which they were asked. */
  readonly #waiting = new Set<Waiting>();
  #socket: Promise<TextSocket> | undefined;
  #closing = new AbortController();
  #cancelIdle = () => {};
  #failures = 0;
  #restUntil: Instant | undefined;
  #faults = 0;

  constructor(runtime: TrackerSocketsRuntime, connectTo: string, url: string) {
    this.#runtime = runtime;
    this.#connectTo = connectTo;
    this.#url = url;
  }

  async ask(question: Question, text: string, signal: AbortSignal): Promise<WsReply> {
    signal.throwIfAborted();
    if (this.#waiting.size >= MAX_WAITING) throw new Error("too many questions at once");
    this.#cancelIdle();
    return new Promise<WsReply>((resolve, reject) => {
      const end = () => {
        this.#waiting.delete(waiting);
        signal.removeEventListener("abort", abort);
        if (this.#waiting.size === 0) this.#rest();
      };
      const waiting: Waiting = {
        ...question,
        answered: (reply) => {
          end();
          resolve(reply);
        },
        failed: (reason) => {
          end();
          reject(reason);
        },
      };
      const abort = () => waiting.failed(signal.reason);
      signal.addEventListener("abort", abort, { once: true });
      this.#waiting.add(waiting);
      this.#open().then(
        (socket) => {
          if (this.#waiting.has(waiting)) socket.send(text);
        },
        (thrown) => waiting.failed(thrown),
      );
    });
  }

  close(): void {
    this.#cancelIdle();
    this.#closing.abort(new Error("the announcer is closed"));
    this.#socket?.then(
      (socket) => socket.close(),
      () => {}, // It never stood, and whoever asked has been told.
    );
    this.#over("the connection was closed");
  }

  /** The connection, made where there is none. */
  #open(): Promise<TextSocket> {
    if (this.#socket) return this.#socket;
    const { clock, http } = this.#runtime;
    if (this.#restUntil !== undefined && clock.now() < this.#restUntil)
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
        if (this.#socket === opening) this.#over("the tracker closed the connection");
      },
    });
    this.#socket = opening;
    this.#faults = 0;
    opening.catch(() => {
      // Given up by us is no failure of the tracker.
      if (this.#socket !== opening) return;
      this.#socket = undefined;
      this.#failed();
    });
    return opening;
  }

  #received(text: string): void {
    try {
      const reply = decodeWsReply(text);
      const waiting = [...this.#waiting].find((each) => isAnswer(reply, each));
      if (!waiting) return;
      this.#failures = 0;
      this.#restUntil = undefined;
      waiting.answered(reply);
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      if (++this.#faults >= MAX_FAULTS) this.#hangUp(messageOf(thrown));
    }
  }

  /** Nobody waits: the connection may end soon. */
  #rest(): void {
    const { clock } = this.#runtime;
    this.#cancelIdle();
    if (this.#socket) this.#cancelIdle = clock.at(after(clock.now(), IDLE_MS), () => this.#hangUp("idle"));
  }

  #hangUp(reason: string): void {
    const socket = this.#socket;
    // One that does not stand yet is given up.
    this.#closing.abort(new Error(reason));
    this.#over(reason);
    socket?.then(
      (open) => open.close(),
      () => {}, // It never stood.
    );
  }

  /** The connection is no more; who waits is told. */
  #over(reason: string): void {
    this.#socket = undefined;
    if (this.#waiting.size > 0) this.#failed();
    for (const waiting of [...this.#waiting]) waiting.failed(new Error(reason));
    this.#cancelIdle();
  }

  /** It came to nothing: for a while nobody tries. */
  #failed(): void {
    const { clock } = this.#runtime;
    const restMs = Math.min(REST_MS * 2 ** this.#failures, MAX_REST_MS);
    this.#restUntil = after(clock.now(), restMs);
    this.#failures++;
  }
}

function isAnswer(reply: WsReply, { kind, infohash }: Question): boolean {
  if (reply.kind === "failure") return true;
  if (reply.kind === "announce") return kind === "announce" && reply.infohash === infohash;
  return reply.kind === "scrape" && kind === "scrape";
}
