import { onAbort, orAborted } from "../async/abort.ts";
import { resolvesWithin } from "../async/sleep.ts";
import { toHex } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Instant } from "../base/time.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { CacheFigures } from "../transfer/contract.ts";
import type { PlaybackRequest, Session } from "./contract.ts";
import type { Sessions } from "./sessions.ts";
import { WaitingStart } from "./waiting-start.ts";

/** Beyond that, a client waits for the answer until the content of its start is known. */
const MAX_WAITING = 64;
/** Starts whose session exists; those of the oldest have ended. */
const MAX_STARTED = 1_000;

interface WaitingStartsDependencies {
  readonly runtime: Pick<Runtime, "clock" | "randomBytes">;
  readonly sessions: Pick<Sessions, "start" | "get" | "reconnect" | "events">;
  readonly sessionIdleMs: number;
  readonly cacheFigures: () => Promise<CacheFigures>;
}

/** The URL parts of a session. */
type Place = Pick<Session, "infohash" | "key">;

/** A start without a session: it waits for its content, or has failed. */
interface Entry {
  readonly start: WaitingStart;
  readonly started: Promise<Session>;
  failedAt: Instant | undefined;
}

/**
 * The starts whose content was not known in time. CHOICE(waiting-start): their URLs contain an identifier in place of the
 * infohash, and lead to the session once it exists. A start that fails stays for the idle time of sessions, so that `stat`
 * can report the reason.
 */
export class WaitingStarts {
  readonly #dependencies: WaitingStartsDependencies;
  readonly #waiting = new Map<string, Entry>();
  readonly #started = new Map<string, Place>();

  constructor(dependencies: WaitingStartsDependencies) {
    this.#dependencies = dependencies;
  }

  /** See `Engine.begin`. */
  async begin(request: PlaybackRequest, withinMs: number, signal?: AbortSignal): Promise<Session> {
    const { runtime, sessions, cacheFigures } = this.#dependencies;
    const { clock } = runtime;
    const since = clock.now();
    const stop = new AbortController();
    const release = onAbort(signal, () => stop.abort(signal?.reason));
    const started = sessions.start(request, stop.signal);
    try {
      if (this.#isFull() || (await resolvesWithin(started, clock, withinMs))) return await started;
    } finally {
      release();
    }
    const hex = (length: number) => toHex(runtime.randomBytes(length));
    const [infohash, key, id] = [hex(20) as Infohash, hex(16), hex(20)];
    const place = `${infohash}/${key}`;
    const end = () => {
      stop.abort(new SluiceError("session_stopped", "the session was stopped"));
      this.#waiting.delete(place);
    };
    const start = new WaitingStart({
      ...{ request, clock, since, started, cacheFigures, stop: end },
      ...{ infohash, key, id },
    });
    const entry: Entry = { start, started, failedAt: undefined };
    this.#waiting.set(place, entry);
    started.then(
      (session) => {
        this.#waiting.delete(place);
        if (stop.signal.aborted) return session.stop();
        this.#started.set(place, session);
        trimOldest(this.#started, MAX_STARTED);
      },
      () => {
        entry.failedAt = clock.now();
      },
    );
    return start;
  }

  /** Returns the session of these URL parts, or the start that waits for its content. */
  get(infohash: Infohash, key: string): Session | undefined {
    const waiting = this.#entry(infohash, key)?.start;
    if (waiting) return waiting;
    const place = this.#placeOf(infohash, key);
    return this.#dependencies.sessions.get(place.infohash, place.key);
  }

  /** See `Engine.reconnect`. */
  async reconnect(infohash: Infohash, key: string, signal?: AbortSignal): Promise<Session | undefined> {
    const entry = this.#entry(infohash, key);
    if (entry) await orAborted(entry.started, signal);
    const place = this.#placeOf(infohash, key);
    return this.#dependencies.sessions.reconnect(place.infohash, place.key);
  }

  /** See `Engine.events`. */
  events(infohash: Infohash, key: string): Pick<Session, "nextEvent"> | undefined {
    const place = this.#placeOf(infohash, key);
    return this.#entry(infohash, key)?.start ?? this.#dependencies.sessions.events(place.infohash, place.key);
  }

  #entry(infohash: Infohash, key: string): Entry | undefined {
    this.#dropFailed();
    return this.#waiting.get(`${infohash}/${key}`);
  }

  #placeOf(infohash: Infohash, key: string): Place {
    return this.#started.get(`${infohash}/${key}`) ?? { infohash, key };
  }

  #isFull(): boolean {
    this.#dropFailed();
    return this.#waiting.size >= MAX_WAITING;
  }

  #dropFailed(): void {
    const { runtime, sessionIdleMs } = this.#dependencies;
    const now = runtime.clock.now();
    for (const [place, { failedAt }] of this.#waiting)
      if (failedAt !== undefined && now - failedAt > sessionIdleMs) this.#waiting.delete(place);
  }
}
