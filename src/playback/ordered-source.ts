import { AudioOrder } from "../remux/audio-order.ts";
import type {
  LiveCursor,
  LiveStream,
  SegmentBytes,
  SegmentName,
  SegmentSource,
} from "../transfer/segment-source.ts";
import { DerivedSource } from "./derived-source.ts";

/** A source of MPEG-TS in which the audio in one language comes first. */
export class OrderedSource extends DerivedSource {
  readonly live?: LiveStream;
  readonly #language: string;
  readonly #order: AudioOrder;

  /** `language` is an ISO 639-2 code. */
  constructor(source: SegmentSource, language: string) {
    super(source);
    this.#language = language;
    this.#order = new AudioOrder(language);
    const { live } = source;
    if (!live) return;
    this.live = {
      cursor: (shiftMs, backlogMs) => orderedCursor(live.cursor(shiftMs, backlogMs), language),
      part: async (index, part, signal) => this.#order.apply(await live.part(index, part, signal)),
    };
  }

  override get name(): string {
    return `${this.source.name} ${this.#language}`;
  }

  override async make(
    kind: SegmentName["kind"],
    index: number,
    track: number,
    signal: AbortSignal,
  ): Promise<SegmentBytes> {
    const bytes = await this.source.make(kind, index, track, signal);
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
