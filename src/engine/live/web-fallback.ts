import { DecodeError, messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { Sha256 } from "../../base/signature.ts";
import { after, type Instant } from "../../base/time.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Clock, Runtime } from "../../runtime/contract.ts";
import type { FetchedChunks, LateMedia, MissingPiece } from "../../swarm/live/fetched.ts";
import { cutPiece } from "../../wire/live-chunks.ts";
import type { LiveInfo } from "../../wire/live-info.ts";
import type { LiveContent } from "./contract.ts";
import { type Match, WebMatch } from "./web-match.ts";
import { type OriginWish, openOrigin, type WebOrigin } from "./web-origin.ts";
import { WebPlaces } from "./web-places.ts";
import { WebTurns } from "./web-turns.ts";

/** What a fallback is made of. */
export interface WebFallbackParts {
  readonly clock: Clock;
  readonly outbound: Pick<Outbound, "open">;
  readonly log: Log;
  readonly random: Random;
  readonly sha256: Sha256;
  readonly info: LiveInfo;
  /** Where the stream's copies are, by its transport file. */
  readonly urls: readonly string[];
  /** Whether those may be at home: where somebody here has named the transport file. */
  readonly allowPrivate: boolean;
  readonly lagMs: number;
}

/** The swarm as the fallback sees it. */
export interface LateSwarm {
  late(): LateMedia;
  give(found: FetchedChunks): void;
}

/** What looks elsewhere for what peers bring too late. */
export interface LiveFallback {
  /** The source names more copies of its stream. */
  learn(urls: readonly string[]): void;
  /** To be called some times a second. */
  round(now: Instant): void;
  /** Lets everything go. */
  stop(): void;
}

/** The swarm has so long to begin. */
const GRACE_MS = 500;
/** Nobody gives us anything where nothing came for so long. */
const ALONE_MS = 1_000;
/** All of one fetch: what takes longer comes too late in any case. */
const BRING_MS = 15_000;
/** What was fetched is let go when it was of no use for so long. */
const IDLE_MS = 30_000;
/** Pieces that should be there and are not, one after another, until it is no copy of this stream. */
const MAX_UNLIKE = 4;
/** Fetches that bring nothing that is wanted. */
const MAX_VAIN = 8;
/** What is not there yet is asked for again after this, then later and later. */
const PAUSE_MS = 300;
const MAX_PAUSE_MS = 5_000;
/** Kept of the copy, and the most of one segment: half a minute. */
const KEPT_SECONDS = 30;
const LEAST_KEPT_BYTES = 4 * 1024 * 1024;
const MOST_KEPT_BYTES = 32 * 1024 * 1024;

/**
 * The web as a last resort (live protocol: Hybrid). What peers would bring too late is looked for in a copy of the stream, of which a segment at a time
 * is fetched, one fetch at once. Nothing is asked while the swarm is in time, and nothing is believed but by its hash.
 */
export class WebFallback implements LiveFallback {
  readonly #parts: WebFallbackParts;
  readonly #swarm: LateSwarm;
  readonly #places: WebPlaces;
  readonly #turns: WebTurns;
  readonly #stopped = new AbortController();
  #origin: WebOrigin | undefined;
  #match: WebMatch | undefined;
  #isFetching = false;
  #playingSince: Instant | undefined;
  #receivedBytes = 0;
  #receivedAt: Instant;
  #usedAt: Instant;
  #pausedUntil: Instant;
  /** Pieces that were looked for in vain: where, and what came of it. */
  readonly #tried = new Map<number, { readonly end: number; readonly kind: Match["kind"] }>();
  readonly #unlike = new Set<number>();
  #vain = 0;
  #waits = 0;
  #isTold = false;

  constructor(parts: WebFallbackParts, swarm: LateSwarm) {
    this.#parts = parts;
    this.#swarm = swarm;
    this.#places = new WebPlaces(parts.urls, parts.log);
    this.#turns = new WebTurns(parts.random);
    const now = parts.clock.now();
    this.#receivedAt = now;
    this.#usedAt = now;
    this.#pausedUntil = now;
  }

  learn(urls: readonly string[]): void {
    this.#places.learn(urls);
  }

  round(now: Instant): void {
    if (this.#places.isEmpty || this.#stopped.signal.aborted) return;
    const late = this.#swarm.late();
    this.#playingSince = late.isPlaying ? (this.#playingSince ?? now) : undefined;
    if (late.receivedBytes !== this.#receivedBytes) this.#receivedAt = now;
    this.#receivedBytes = late.receivedBytes;
    if (this.#origin && now - this.#usedAt > IDLE_MS && !this.#isFetching) this.#forget();
    if (this.#playingSince === undefined || now - this.#playingSince < GRACE_MS) return;
    const { lagMs } = this.#parts;
    const isAlone = now - Math.max(this.#receivedAt, this.#playingSince) >= ALONE_MS;
    const withinMs = isAlone ? lagMs : Math.min(lagMs, this.#turns.firstMs);
    const pieces = late.missing(withinMs);
    for (const seq of this.#tried.keys())
      if (pieces.every(({ header }) => header.value.seq !== seq)) this.#tried.delete(seq);
    let wish: OriginWish | undefined;
    for (const piece of pieces) {
      const kind = this.#taken(piece, late);
      if (wish || kind === "found" || kind === "unlike" || kind === "unknown") continue;
      const dueMs = isAlone ? lagMs : this.#turns.dueMs(piece.header.value.seq, late.neighbours);
      if (piece.remainingMs < dueMs) wish = wishFor(piece, kind, pieces);
    }
    if (wish) this.#bring(wish, now);
  }

  stop(): void {
    this.#stopped.abort(new SluiceError("session_stopped", "the stream was left"));
    this.#forget();
  }

  /** Gives the swarm what is missing of a piece, where it is here; undefined before anything is. */
  #taken({ header, missing }: MissingPiece, late: LateMedia): Match["kind"] | undefined {
    const match = this.#matchNow();
    if (!match) return undefined;
    const { seq, epoch } = header.value;
    const { end } = match.stretch;
    const before = this.#tried.get(seq);
    if (before?.end === end) return before.kind;
    const found = match.find(header.value, (of) => late.header(of)?.value);
    if (found.kind === "found") {
      const chunks = cutPiece(found.bytes, this.#parts.info.stripeCount)
        .map((bytes, stripe) => ({ bytes, stripe }))
        .filter(({ stripe }) => (missing >>> stripe) % 2 === 1);
      this.#worked();
      this.#swarm.give({ epoch, seq, chunks });
      return "found";
    }
    this.#tried.set(seq, { end, kind: found.kind });
    if (found.kind === "unlike") {
      this.#unlike.add(seq);
      if (this.#unlike.size >= MAX_UNLIKE) {
        this.#places.useless("it has other bytes than the stream", this.#parts.clock.now());
        this.#forget();
      }
    }
    return found.kind;
  }

  #matchNow(): WebMatch | undefined {
    if (!this.#origin) return undefined;
    const { stretch } = this.#origin;
    if (this.#match?.stretch !== stretch) {
      this.#match = new WebMatch(stretch, this.#parts.info.stripeCount, this.#parts.sha256);
      this.#tried.clear();
    }
    return this.#match;
  }

  #worked(): void {
    const { clock, log } = this.#parts;
    this.#usedAt = clock.now();
    this.#unlike.clear();
    this.#vain = 0;
    this.#waits = 0;
    this.#places.worked();
    if (!this.#isTold)
      log.info("peers are late: what is missing comes from the web", { from: this.#places.shown });
    this.#isTold = true;
  }

  #bring(wish: OriginWish, now: Instant): void {
    if (this.#isFetching || now < this.#pausedUntil) return;
    const url = this.#places.use(now);
    if (url === undefined) return;
    if (this.#vain >= MAX_VAIN) {
      this.#fail("it does not have what is missing");
      return;
    }
    this.#isFetching = true;
    this.#usedAt = now;
    const giveUp = new AbortController();
    const stop = () => giveUp.abort(this.#stopped.signal.reason);
    this.#stopped.signal.addEventListener("abort", stop, { once: true });
    const cancel = this.#parts.clock.at(after(now, BRING_MS), () =>
      giveUp.abort(new SluiceError("url_unreachable", "the server takes too long")),
    );
    this.#fetch(url, wish, giveUp.signal)
      .then((isMore) => this.#brought(isMore, now))
      .catch((thrown: unknown) => this.#failed(thrown))
      .finally(() => {
        cancel();
        this.#stopped.signal.removeEventListener("abort", stop);
        this.#isFetching = false;
      });
  }

  async #fetch(url: string, wish: OriginWish, signal: AbortSignal): Promise<boolean> {
    const { clock, outbound, log, allowPrivate, info } = this.#parts;
    const limitBytes = Math.max(
      LEAST_KEPT_BYTES,
      Math.min(MOST_KEPT_BYTES, KEPT_SECONDS * info.bytesPerSecond),
    );
    const parts = { clock, outbound, log, url, allowPrivate, limitBytes, stopped: this.#stopped.signal };
    this.#origin ??= await openOrigin(parts, signal);
    if (this.#stopped.signal.aborted) this.#forget();
    return (await this.#origin?.bring(wish, signal)) ?? false;
  }

  #brought(isMore: boolean, since: Instant): void {
    const now = this.#parts.clock.now();
    if (isMore) {
      this.#vain++;
      this.#turns.took(now - since);
    } else
      this.#pausedUntil = after(now, Math.min(MAX_PAUSE_MS, PAUSE_MS * 2 ** Math.min(10, this.#waits++)));
  }

  #failed(thrown: unknown): void {
    if (this.#stopped.signal.aborted) return;
    if (!(thrown instanceof SluiceError || thrown instanceof DecodeError)) throw thrown;
    this.#fail(messageOf(thrown));
  }

  #fail(reason: string): void {
    this.#places.failed(reason, this.#parts.clock.now());
    this.#forget();
  }

  #forget(): void {
    this.#origin?.rest();
    this.#origin = undefined;
    this.#match = undefined;
    this.#tried.clear();
    this.#unlike.clear();
    this.#vain = 0;
    this.#waits = 0;
    this.#isTold = false;
  }
}

/** Where in the copy a piece is: by its own clock, or that of one near it. */
function wishFor(
  { header }: MissingPiece,
  kind: Match["kind"] | undefined,
  pieces: readonly MissingPiece[],
): OriginWish | undefined {
  const clocks = [header.value, ...pieces.map((piece) => piece.header.value)];
  const reference = clocks.find(({ clockReference }) => clockReference !== undefined)?.clockReference;
  const side = kind === "before" || kind === "after" ? kind : undefined;
  return reference === undefined ? undefined : { reference, side };
}

/** The fallback of a stream for its driver; nothing where the stream is made here, or is none of packets. */
export function fallbackOf(
  house: {
    readonly runtime: Pick<Runtime, "clock" | "sha256">;
    readonly outbound: Pick<Outbound, "open">;
    readonly random: Random;
    readonly settings: { readonly liveLagMs: number };
  },
  { file, role, mayLeadHome = false }: LiveContent,
  log: Log,
): { readonly fallback?: (swarm: LateSwarm) => LiveFallback } {
  const { manifests: urls, info } = file;
  if (role === "source" || info.container !== "mpegts") return {};
  const { clock, sha256 } = house.runtime;
  const { outbound, random, settings } = house;
  const about = { urls, info, allowPrivate: mayLeadHome, lagMs: settings.liveLagMs };
  return { fallback: (swarm) => new WebFallback({ clock, sha256, outbound, random, log, ...about }, swarm) };
}
