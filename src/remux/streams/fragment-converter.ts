import type { AbortSignalLike } from "../../base/byte-source.ts";
import { trimOldest } from "../../base/trim-oldest.ts";
import { buildFragment } from "../../media/mp4-fragment.ts";
import { asAac, sourceOf } from "../audio/transcoded-reader.ts";
import { type AudioTranscoder, PREROLL_SECONDS, type TranscodePlan } from "../audio/transcoder.ts";
import { BLOCK_SAMPLES } from "../codecs/limiter.ts";
import type { AudioConversion } from "../contract.ts";
import { Fmp4Writer } from "../fmp4-writer.ts";
import type { SourceTrack } from "../media-tracks.ts";
import type { TsMuxPacket } from "../ts-mux-input.ts";

/** Segments whose last audio is kept for the next one: players of one stream are spread over its window. Each has about 50 KiB. */
const KEPT_TAILS = 32;
/** A larger distance between two segments is a break: the decoder starts anew. */
const BREAK_SECONDS = 0.1;

/** One audio track of a segment. */
export interface SegmentTrack {
  readonly track: SourceTrack;
  readonly packets: readonly TsMuxPacket[];
}

/** Converts one audio track of a stream whose fragmented MP4 segments arrive one by one, for all its players. */
export class FragmentConverter {
  readonly #transcoder: AudioTranscoder;
  readonly #conversion: AudioConversion;
  /** By description of the track: a stream can change it at a discontinuity. */
  readonly #plans = new Map<string, Promise<TranscodePlan | undefined>>();
  /** The last audio of recent segments, by index; the oldest is first. */
  readonly #tails = new Map<number, readonly TsMuxPacket[]>();

  constructor(transcoder: AudioTranscoder, conversion: AudioConversion) {
    this.#transcoder = transcoder;
    this.#conversion = conversion;
  }

  /** Returns true if the segment before `index` is known, so that this one continues without a gap. */
  continues(index: number): boolean {
    return this.#tails.has(index - 1);
  }

  /** Remembers the end of a segment for the next one. Its frames are copied. */
  remember(index: number, packets: readonly TsMuxPacket[]): void {
    const end = packets.at(-1)?.ptsSeconds ?? 0;
    const tail = packets.filter(({ ptsSeconds }) => ptsSeconds > end - PREROLL_SECONDS);
    this.#tails.delete(index);
    this.#tails.set(
      index,
      tail.map((packet) => ({ ...packet, data: packet.data.slice() })),
    );
    trimOldest(this.#tails, KEPT_TAILS);
  }

  /** Returns the initialization segment of the converted track; undefined if it cannot be decoded. */
  async init(own: SegmentTrack): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const plan = await this.#plan(own);
    if (!plan) return undefined;
    const first: TsMuxPacket = {
      ...{ track: 0, ptsSeconds: 0, durationSeconds: BLOCK_SAMPLES / plan.sampleRate, isKey: true },
      data: new Uint8Array(1),
    };
    const reader = { first: async () => first, reordering: async () => ({ seconds: 0, frames: 0 }) };
    return new Fmp4Writer(reader, [asAac(own.track, plan)]).init();
  }

  /**
   * Returns the fragment of a segment; no bytes if it has no audio. Times are those of the stream. `isLast`: no segment follows.
   * Rejects with `SluiceError`, or the reason of `signal`.
   */
  async convert(
    index: number,
    own: SegmentTrack,
    isLast: boolean,
    signal: AbortSignalLike,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const { packets } = own;
    this.remember(index, packets);
    const plan = await this.#plan(own);
    const [first] = packets;
    if (!plan || !first) return new Uint8Array(0);
    const tail = this.#tails.get(index - 1) ?? [];
    const last = tail.at(-1);
    const gap = last ? first.ptsSeconds - last.ptsSeconds - last.durationSeconds : 0;
    const before = Math.abs(gap) < BREAK_SECONDS ? tail : [];
    const frames = await this.#transcoder.run(plan, { before, own: packets, isLast }, signal);
    const blockOf = ({ ptsSeconds }: TsMuxPacket) =>
      Math.round((ptsSeconds * plan.sampleRate) / BLOCK_SAMPLES);
    // A decode time cannot be negative.
    const written = frames.filter((frame) => blockOf(frame) >= 0);
    if (written.length === 0) return new Uint8Array(0);
    const samples = written.map(({ data }) => ({
      ...{ data, duration: BLOCK_SAMPLES, isSync: true, compositionOffset: 0 },
    }));
    const decodeTime = blockOf(written[0]!) * BLOCK_SAMPLES;
    return buildFragment(index + 1, [{ id: 1, decodeTime, samples }]);
  }

  #plan({ track, packets }: SegmentTrack): Promise<TranscodePlan | undefined> {
    const source = sourceOf(track);
    const key = JSON.stringify([source.codec, source.sampleRate, source.channels, source.config?.join()]);
    let plan = this.#plans.get(key);
    if (!plan) {
      plan = this.#transcoder.plan(source, packets[0], this.#conversion.channels);
      this.#plans.set(key, plan);
      trimOldest(this.#plans, KEPT_TAILS);
      plan.catch(() => this.#plans.delete(key));
    }
    return plan;
  }
}
