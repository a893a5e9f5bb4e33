import { AudioOrder } from "../remux/audio-order.ts";
import type {
  LiveCursor,
  LivePosition,
  LiveStream,
  ManifestPlace,
  ManifestRendition,
  SegmentBytes,
  SegmentName,
  SegmentSource,
  VariantFacts,
} from "../transfer/segment-source.ts";

/** A source of MPEG-TS in which the audio in one language comes first. */
export class OrderedSource implements SegmentSource {
  readonly container = "ts";
  readonly live?: LiveStream;
  readonly #source: SegmentSource;
  readonly #language: string;
  readonly #order: AudioOrder;

  /** `language` is an ISO 639-2 code. */
  constructor(source: SegmentSource, language: string) {
    this.#source = source;
    this.#language = language;
    this.#order = new AudioOrder(language);
    const { live } = source;
    if (!live) return;
    this.live = {
      cursor: (shiftMs, backlogMs) => orderedCursor(live.cursor(shiftMs, backlogMs), language),
      part: async (index, part, signal) => this.#order.apply(await live.part(index, part, signal)),
    };
  }

  get isLive(): boolean {
    return this.#source.isLive;
  }

  get name(): string {
    return `${this.#source.name} ${this.#language}`;
  }

  get bytesPerSecond(): number | undefined {
    return this.#source.bytesPerSecond;
  }

  get variants(): readonly VariantFacts[] {
    return this.#source.variants ?? [];
  }

  get variantIndex(): number {
    return this.#source.variantIndex ?? -1;
  }

  manifest(place: ManifestPlace, rendition: ManifestRendition, signal: AbortSignal): Promise<string> {
    return this.#source.manifest(place, rendition, signal);
  }

  first(signal: AbortSignal): Promise<number> {
    return this.#source.first(signal);
  }

  reach(index: number, signal: AbortSignal): Promise<number | undefined> {
    return this.#source.reach(index, signal);
  }

  find(kind: SegmentName["kind"], number: number, signal: AbortSignal, track?: number): Promise<number> {
    return this.#source.find(kind, number, signal, track);
  }

  livePosition(): LivePosition | undefined {
    return this.#source.livePosition?.();
  }

  async make(
    kind: SegmentName["kind"],
    index: number,
    track: number,
    signal: AbortSignal,
  ): Promise<SegmentBytes> {
    const bytes = await this.#source.make(kind, index, track, signal);
    return kind === "ts" ? this.#order.apply(bytes) : bytes;
  }
}

function orderedCursor(cursor: LiveCursor, language: string): LiveCursor {
  const order = new AudioOrder(language);
  return {
    async next(signal) {
      const packets = await cursor.next(signal);
      return packets && order.apply(packets);
    },
    seek: (at) => cursor.seek(at),
    get position() {
      return cursor.position;
    },
  };
}
