import type { AbortSignalLike } from "../../base/byte-source.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../../media/timestamps.ts";
import type { AudioConversion } from "../contract.ts";
import { readPiece } from "../ts-interleave.ts";
import { type AudioTranscoder, PREROLL_SECONDS } from "./transcoder.ts";
import { type AudioUnit, audioUnits } from "./ts-audio.ts";
import { TsConverter } from "./ts-converter.ts";

/** Segments whose last audio is kept for the next one: players of one stream are spread over its window. Each has about 50 KiB. */
const KEPT_TAILS = 32;

/** Options of {@link StreamConverter}. */
export interface StreamConverterOptions {
  readonly transcoder: AudioTranscoder;
  readonly conversion: AudioConversion;
  /** ISO 639-2; the audio in this language is converted if the stream has it, otherwise the first one. */
  readonly language: string;
}

/** Converts the audio of a stream whose segments arrive one by one, for all its players. */
export class StreamConverter {
  readonly #converter: TsConverter;
  readonly #language: string;
  /** The last audio of recent segments, by index; the oldest is first. */
  readonly #tails = new Map<number, readonly AudioUnit[]>();

  constructor({ transcoder, conversion, language }: StreamConverterOptions) {
    this.#converter = new TsConverter(transcoder, conversion);
    this.#language = language;
  }

  /** Returns true if the packets name audio that is converted. Throws `broken_media` if they have no tables. */
  needs(packets: Uint8Array): boolean {
    const audio = this.#audioOf(readPiece(packets));
    return audio !== undefined && this.#converter.needs(audio.codec);
  }

  /** Returns true if the segment before `index` was converted, so that this one continues without a gap. */
  continues(index: number): boolean {
    return this.#tails.has(index - 1);
  }

  /** Remembers the audio of a segment before one that is converted. */
  remember(index: number, segment: Uint8Array): void {
    const piece = readPiece(segment);
    const audio = this.#audioOf(piece);
    if (audio) this.#keep(index, audioUnits(piece.packets, audio.pid));
  }

  /** Returns the segment with AAC audio. Rejects with `SluiceError`, or the reason of `signal`. */
  async convert(
    index: number,
    segment: Uint8Array<ArrayBuffer>,
    signal: AbortSignalLike,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const piece = readPiece(segment);
    const audio = this.#audioOf(piece);
    if (!audio) return segment;
    const own = audioUnits(piece.packets, audio.pid);
    this.#keep(index, own);
    const hasVideo = piece.streams.some(({ kind }) => kind === "video");
    const before = this.#tails.get(index - 1) ?? [];
    const { language } = audio;
    return this.#converter.convert({ segment, before, own, language, hasVideo, isLast: false }, signal);
  }

  #audioOf({ streams }: ReturnType<typeof readPiece>) {
    const audio = streams.filter(({ kind }) => kind === "audio");
    return audio.find(({ language }) => language === this.#language) ?? audio[0];
  }

  #keep(index: number, units: readonly AudioUnit[]): void {
    const last = units.findLast(({ pts }) => pts !== undefined)?.pts;
    const from = units.findIndex(
      ({ pts }) => pts !== undefined && deltaTicks(last!, pts) < 2 * PREROLL_SECONDS * TICKS_PER_SECOND,
    );
    this.#tails.delete(index);
    this.#tails.set(index, from < 0 ? [] : units.slice(from));
    for (const [oldest] of this.#tails) if (this.#tails.size > KEPT_TAILS) this.#tails.delete(oldest);
  }
}
