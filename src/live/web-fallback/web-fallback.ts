import { linkedAbort } from "../../async/abort.ts";
import { DecodeError, messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { Sha256 } from "../../base/signature.ts";
import { after, type Instant } from "../../base/time.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { FetchedChunks } from "../../protocol/live/contract.ts";
import type { LateMedia, MissingPiece } from "../../protocol/live/fetched.ts";
import type { Clock, Runtime } from "../../runtime/contract.ts";
import type { LiveContent } from "../../transfer/live-content.ts";
import { cutPiece } from "../../wire/live/chunks.ts";
import type { LiveInfo } from "../../wire/live/info.ts";
import type { OriginRequest, WebOrigin } from "../contract.ts";
import { WebCopies } from "./web-copies.ts";
import { type Match, WebMatch } from "./web-match.ts";
import { openOrigin } from "./web-origin.ts";
import { WebTurns } from "./web-turns.ts";

/** What a fallback depends on. */
export interface WebFallbackOptions {
  readonly clock: Clock;
  readonly outbound: Pick<Outbound, "open">;
  readonly log: Log;
  readonly random: Random;
  readonly sha256: Sha256;
  readonly info: LiveInfo;
  /** The copies of the stream that its transport file lists. */
  readonly urls: readonly string[];
  /** Whether the URLs may lead into the local network: true if a local user chose the transport file. */
  readonly allowPrivate: boolean;
  readonly lagMs: number;
}

/** The swarm, as seen by the fallback. */
export interface LateSwarm {
  late(): LateMedia;
  give(found: FetchedChunks): void;
}

/** Fetches from the web what peers deliver too late. */
export interface LiveFallback {
  /** Adds copies that the source announces. */
  learn(urls: readonly string[]): void;
  /** Call this several times a second. */
  round(now: Instant): void;
  /** Releases everything. */
  stop(): void;
}

/** The swarm is given this long to start. */
const GRACE_MS = 500;
/** Without data from any peer for this long, the viewer has no parent. */
const ALONE_MS = 1_000;
/** Timeout of one fetch. A longer one is too late in any case. */
const FETCH_TIMEOUT_MS = 15_000;
/** The copy is closed after this time without use. */
const IDLE_MS = 30_000;
/** After this many pieces that should be in the copy and are not, it is not a copy of this stream. */
const MAX_MISMATCHES = 4;
/** Limit of consecutive fetches that bring no wanted piece. */
const MAX_FRUITLESS = 8;
/** Delay after a fetch found nothing new, doubled each time. */
const PAUSE_MS = 300;
const MAX_PAUSE_MS = 5_000;
/** Buffered part of the copy, also the limit of one segment: half a minute. */
const KEPT_SECONDS = 30;
const LEAST_KEPT_BYTES = 4 * 1024 * 1024;
const MOST_KEPT_BYTES = 32 * 1024 * 1024;

/**
 * The web as the last resort (live protocol: Hybrid). Pieces that peers would deliver too late are searched in a copy
 * of the stream; one segment is fetched at a time. Nothing is requested while the swarm is in time, and every byte is
 * verified by its hash.
 */
export class WebFallback implements LiveFallback {
  readonly #options: WebFallbackOptions;
  readonly #swarm: LateSwarm;
  readonly #copies: WebCopies;
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
  /** Pieces that were searched without success: the end of the stretch at that time, and the result. */
  readonly #searched = new Map<number, { readonly end: number; readonly kind: Match["kind"] }>();
  readonly #mismatches = new Set<number>();
  #fruitlessFetches = 0;
  #emptyFetches = 0;
  #isLogged = false;

  constructor(options: WebFallbackOptions, swarm: LateSwarm) {
    this.#options = options;
    this.#swarm = swarm;
    this.#copies = new WebCopies(options.urls, options.log);
    this.#turns = new WebTurns(options.random);
    const now = options.clock.now();
    this.#receivedAt = now;
    this.#usedAt = now;
    this.#pausedUntil = now;
  }

  learn(urls: readonly string[]): void {
    this.#copies.add(urls);
  }

  round(now: Instant): void {
    if (this.#copies.isEmpty || this.#stopped.signal.aborted) return;
    const late = this.#swarm.late();
    this.#playingSince = late.isPlaying ? (this.#playingSince ?? now) : undefined;
    if (late.receivedBytes !== this.#receivedBytes) this.#receivedAt = now;
    this.#receivedBytes = late.receivedBytes;
    if (this.#origin && now - this.#usedAt > IDLE_MS && !this.#isFetching) this.#closeCopy();
    if (this.#playingSince === undefined || now - this.#playingSince < GRACE_MS) return;
    const { lagMs } = this.#options;
    const isAlone = now - Math.max(this.#receivedAt, this.#playingSince) >= ALONE_MS;
    const withinMs = isAlone ? lagMs : Math.min(lagMs, this.#turns.firstMs);
    const pieces = late.missing(withinMs);
    for (const seq of this.#searched.keys())
      if (pieces.every(({ header }) => header.value.seq !== seq)) this.#searched.delete(seq);
    let request: OriginRequest | undefined;
    for (const piece of pieces) {
      const kind = this.#giveIfFound(piece, late);
      if (request || kind === "found" || kind === "unlike" || kind === "unknown") continue;
      const dueMs = isAlone ? lagMs : this.#turns.dueMs(piece.header.value.seq, late.neighbours);
      if (piece.remainingMs < dueMs) request = requestFor(piece, kind, pieces);
    }
    if (request) this.#startFetch(request, now);
  }

  stop(): void {
    this.#stopped.abort(new SluiceError("session_stopped", "the stream was closed"));
    this.#closeCopy();
  }

  /** Gives the swarm the missing chunks of a piece if the copy has them; undefined while no copy is open. */
  #giveIfFound({ header, missing }: MissingPiece, late: LateMedia): Match["kind"] | undefined {
    const match = this.#matchNow();
    if (!match) return undefined;
    const { seq, epoch } = header.value;
    const { end } = match.stretch;
    const before = this.#searched.get(seq);
    if (before?.end === end) return before.kind;
    const found = match.find(header.value, (of) => late.header(of)?.value);
    if (found.kind === "found") {
      const chunks = cutPiece(found.bytes, this.#options.info.stripeCount)
        .map((bytes, stripe) => ({ bytes, stripe }))
        .filter(({ stripe }) => (missing >>> stripe) % 2 === 1);
      this.#noteSuccess();
      this.#swarm.give({ epoch, seq, chunks });
      return "found";
    }
    this.#searched.set(seq, { end, kind: found.kind });
    if (found.kind === "unlike") {
      this.#mismatches.add(seq);
      if (this.#mismatches.size >= MAX_MISMATCHES) {
        this.#copies.useless("it has different bytes than the stream", this.#options.clock.now());
        this.#closeCopy();
      }
    }
    return found.kind;
  }

  #matchNow(): WebMatch | undefined {
    if (!this.#origin) return undefined;
    const { stretch } = this.#origin;
    if (this.#match?.stretch !== stretch) {
      this.#match = new WebMatch(stretch, this.#options.info.stripeCount, this.#options.sha256);
      this.#searched.clear();
    }
    return this.#match;
  }

  #noteSuccess(): void {
    const { clock, log } = this.#options;
    this.#usedAt = clock.now();
    this.#mismatches.clear();
    this.#fruitlessFetches = 0;
    this.#emptyFetches = 0;
    this.#copies.worked();
    if (!this.#isLogged)
      log.info("peers are late: missing pieces are fetched from the web", { from: this.#copies.host });
    this.#isLogged = true;
  }

  #startFetch(request: OriginRequest, now: Instant): void {
    if (this.#isFetching || now < this.#pausedUntil) return;
    const url = this.#copies.select(now);
    if (url === undefined) return;
    if (this.#fruitlessFetches >= MAX_FRUITLESS) {
      this.#fail("it does not contain the missing pieces");
      return;
    }
    this.#isFetching = true;
    this.#usedAt = now;
    const giveUp = linkedAbort(this.#stopped.signal);
    const cancel = this.#options.clock.at(after(now, FETCH_TIMEOUT_MS), () =>
      giveUp.abort(new SluiceError("url_unreachable", "the server took too long")),
    );
    this.#fetch(url, request, giveUp.signal)
      .then((isMore) => this.#fetched(isMore, now))
      .catch((thrown: unknown) => this.#failed(thrown))
      .finally(() => {
        cancel();
        giveUp.release();
        this.#isFetching = false;
      });
  }

  async #fetch(url: string, request: OriginRequest, signal: AbortSignal): Promise<boolean> {
    const { clock, outbound, log, allowPrivate, info } = this.#options;
    const limitBytes = Math.max(
      LEAST_KEPT_BYTES,
      Math.min(MOST_KEPT_BYTES, KEPT_SECONDS * info.bytesPerSecond),
    );
    const options = { clock, outbound, log, url, allowPrivate, limitBytes, stopped: this.#stopped.signal };
    this.#origin ??= await openOrigin(options, signal);
    if (this.#stopped.signal.aborted) this.#closeCopy();
    return (await this.#origin?.bring(request, signal)) ?? false;
  }

  #fetched(isMore: boolean, since: Instant): void {
    const now = this.#options.clock.now();
    if (isMore) {
      this.#fruitlessFetches++;
      this.#turns.took(now - since);
    } else
      this.#pausedUntil = after(
        now,
        Math.min(MAX_PAUSE_MS, PAUSE_MS * 2 ** Math.min(10, this.#emptyFetches++)),
      );
  }

  #failed(thrown: unknown): void {
    if (this.#stopped.signal.aborted) return;
    if (!(thrown instanceof SluiceError || thrown instanceof DecodeError)) throw thrown;
    this.#fail(messageOf(thrown));
  }

  #fail(reason: string): void {
    this.#copies.failed(reason, this.#options.clock.now());
    this.#closeCopy();
  }

  #closeCopy(): void {
    this.#origin?.release?.();
    this.#origin = undefined;
    this.#match = undefined;
    this.#searched.clear();
    this.#mismatches.clear();
    this.#fruitlessFetches = 0;
    this.#emptyFetches = 0;
    this.#isLogged = false;
  }
}

/** Returns where in the copy a piece is: by its own clock value, or that of a nearby piece. */
function requestFor(
  { header }: MissingPiece,
  kind: Match["kind"] | undefined,
  pieces: readonly MissingPiece[],
): OriginRequest | undefined {
  const clocks = [header.value, ...pieces.map((piece) => piece.header.value)];
  const reference = clocks.find(({ clockReference }) => clockReference !== undefined)?.clockReference;
  const side = kind === "before" || kind === "after" ? kind : undefined;
  return reference === undefined ? undefined : { reference, side };
}

/** Returns the fallback of a stream for its driver; empty for a source, and for a container other than MPEG-TS. */
export function fallbackOf(
  dependencies: {
    readonly runtime: Pick<Runtime, "clock" | "sha256">;
    readonly outbound: Pick<Outbound, "open">;
    readonly random: Random;
    readonly settings: { readonly liveLagMs: number };
  },
  { file, role, allowPrivate = false }: LiveContent,
  log: Log,
): { readonly fallback?: (swarm: LateSwarm) => LiveFallback } {
  const { manifests: urls, info } = file;
  if (role === "source" || info.container !== "mpegts") return {};
  const { clock, sha256 } = dependencies.runtime;
  const { outbound, random, settings } = dependencies;
  const about = { urls, info, allowPrivate, lagMs: settings.liveLagMs };
  return { fallback: (swarm) => new WebFallback({ clock, sha256, outbound, random, log, ...about }, swarm) };
}
