import { SluiceError } from "../base/errors.ts";
import { after } from "../base/time.ts";
import type { Hold, LiveControl, Transfer } from "../transfer/contract.ts";
import type { SegmentSource, VariantFacts } from "../transfer/segment-source.ts";
import { chooseVariant } from "../web-content/hls-variant.ts";
import type { LiveVariant } from "../wire/live/variants.ts";
import type { Access } from "./access.ts";
import type { PlaybackRequest } from "./contract.ts";
import type { ConvertedSources } from "./converted-source.ts";
import { LiveVariantSource, type Qualities } from "./live-variant-source.ts";
import { awaitFiles } from "./timeouts.ts";

/** A quality without requests for this long is no longer received. Players that adapt return to a quality within seconds or not soon. */
const UNUSED_MS = 20_000;

/** Dependencies of {@link LiveVariants}. */
interface LiveVariantsDependencies {
  readonly access: Access;
  readonly converted: ConvertedSources;
  readonly hold: Hold;
  readonly request: PlaybackRequest;
  /** Fires when the session ends. */
  readonly ended: AbortSignal;
}

/** One quality of a broadcast that the session receives, or is about to. */
interface Received {
  /** Undefined for the stream of the session itself, whose hold belongs to the session. */
  hold: Hold | undefined;
  source: Promise<SegmentSource>;
  cancelTimer: () => void;
}

/**
 * The qualities of a broadcast for one session. Each is a live stream of its own; its transfer is opened when the player first requests
 * it, and released when it has not been requested for a while.
 */
export class LiveVariants implements Qualities {
  readonly #dependencies: LiveVariantsDependencies;
  /** In the order of the description; the first is the stream of the session. Empty: there is only one. */
  #variants: readonly LiveVariant[] = [];
  readonly #received = new Map<number, Received>();
  #chosen: number | undefined;
  #latest = 0;

  constructor(dependencies: LiveVariantsDependencies) {
    this.#dependencies = dependencies;
    dependencies.ended.addEventListener("abort", () => this.#close(), { once: true });
  }

  /** The transfer that delivers what the player requested last. */
  get transfer(): Transfer {
    return this.#received.get(this.#latest)?.hold?.transfer ?? this.#dependencies.hold.transfer;
  }

  /** The chosen quality; undefined if the player chooses by itself. */
  get chosen(): number | undefined {
    return this.#chosen;
  }

  /** The quality that was requested last. */
  get latest(): number {
    return this.#chosen ?? this.#latest;
  }

  /** The source of the quality that was requested last, if it is open. */
  playing: SegmentSource | undefined;

  get facts(): readonly VariantFacts[] {
    return this.#variants.map(({ bytesPerSecond, width, height, codecs }) => ({
      bitsPerSecond: Math.ceil(8 * PEAK_FACTOR * bytesPerSecond),
      averageBitsPerSecond: 8 * bytesPerSecond,
      ...{ width, height, codecs },
      isAudio: false,
    }));
  }

  /**
   * Returns the source for the session. `main` is the stream itself; `variantIndex` as in the request. Waits for its first packets,
   * because the description can come with them. Rejects with `bad_parameter` if there is no such quality.
   */
  async of(
    main: SegmentSource,
    variantIndex: number | undefined,
    signal: AbortSignal,
  ): Promise<SegmentSource> {
    const { request, converted, hold } = this.#dependencies;
    const { maxHeight = 0, output } = request;
    const { live } = hold.transfer;
    const isChosen = (variantIndex ?? -1) >= 0 || maxHeight > 0;
    if (!main.live || !live) return converted.of(main, request, signal);
    if (this.#variants.length === 0) {
      await main.live.cursor(0).next(signal);
      this.#variants = ordered(live.variants);
    }
    if (this.#variants.length === 0) {
      if (variantIndex !== undefined && variantIndex > 0) throw noSuchVariant(0, variantIndex);
      return converted.of(main, request, signal);
    }
    const choice = { variantIndex, maxHeight: (variantIndex ?? -1) >= 0 ? 0 : maxHeight };
    const automatic = output === "hls" ? undefined : 0;
    this.#chosen = isChosen ? chooseVariant({ variants: this.facts }, choice) : automatic;
    if (!this.#received.has(0))
      this.#received.set(0, {
        hold: undefined,
        source: converted.of(main, request, signal, true),
        cancelTimer: () => {},
      });
    const own = await this.source(0, signal);
    if (this.#chosen) await this.source(this.#chosen, signal);
    return new LiveVariantSource(own, main, this, request);
  }

  /** Returns the source of one quality, and receives it from now on. Rejects with `no_such_segment`, or if it is not on air. */
  async source(index: number, signal: AbortSignal): Promise<SegmentSource> {
    const variant = this.#variants[index];
    if (!variant) throw new SluiceError("no_such_segment", `the stream has no variant ${index}`);
    let received = this.#received.get(index);
    if (!received) {
      const hold = this.#open(variant);
      received = { hold, source: this.#opened(hold, signal), cancelTimer: () => {} };
      this.#received.set(index, received);
      received.source.catch(() => this.#drop(index));
    }
    this.#latest = index;
    this.#use(index, received);
    const source = await received.source;
    if (this.#latest === index) this.playing = source;
    return source;
  }

  #open({ infohash }: LiveVariant): Hold {
    const { access, hold, request } = this.#dependencies;
    const { content, reachablePeers } = hold.transfer.live as LiveControl;
    const { trackers, relays, isSigned } = content.file;
    const peers = [...reachablePeers(), ...(isSigned ? relays : [])];
    return access.holds.open({ infohash: infohash!, trackers, peers }, request.isForeign);
  }

  async #opened(hold: Hold, signal: AbortSignal): Promise<SegmentSource> {
    const { access, converted, request, ended } = this.#dependencies;
    await awaitFiles(access, hold.transfer, { signal: ended });
    const { segmentSource, live } = hold.transfer;
    if (!segmentSource || !live)
      throw new SluiceError("unsupported_content", "a quality of this broadcast is not a live stream");
    const source = await segmentSource.call(hold.transfer, signal, request);
    return converted.of(source, request, ended, true);
  }

  #use(index: number, received: Received): void {
    const { clock } = this.#dependencies.access;
    if (index === 0) this.#dependencies.hold.rest?.(false);
    received.cancelTimer();
    received.cancelTimer = clock.at(after(clock.now(), UNUSED_MS), () => {
      // The last one is what the player plays, or has paused.
      if (this.latest === index) return this.#use(index, received);
      if (index === 0) this.#dependencies.hold.rest?.(true);
      else this.#drop(index);
    });
  }

  #drop(index: number): void {
    const received = this.#received.get(index);
    if (!received || index === 0) return;
    received.cancelTimer();
    this.#received.delete(index);
    received.hold?.release();
  }

  #close(): void {
    for (const [index, { cancelTimer }] of this.#received) {
      cancelTimer();
      this.#drop(index);
    }
  }
}

/** Descriptions contain average rates. Segments of an encoder with a fixed rate are up to a quarter larger. */
const PEAK_FACTOR = 1.25;

/** Puts the stream itself first. */
function ordered(variants: readonly LiveVariant[]): readonly LiveVariant[] {
  const own = variants.find(({ infohash }) => infohash === undefined);
  return own ? [own, ...variants.filter((variant) => variant !== own)] : [];
}

function noSuchVariant(most: number, index: number): SluiceError {
  return new SluiceError("bad_parameter", `stream_id: expected at most ${most}, got ${index}`);
}
