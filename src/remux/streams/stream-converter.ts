import type { AbortSignalLike } from "../../base/byte-source.ts";
import { trimOldest } from "../../base/trim-oldest.ts";
import { languageCode } from "../../media/language.ts";
import type { TsStream } from "../../media/ts-programme.ts";
import { type AudioTranscoder, PREROLL_SECONDS } from "../audio/transcoder.ts";
import { type AudioUnit, audioUnits, lastUnits } from "../audio/ts-audio.ts";
import { audioAlone, type SegmentAudio, TsConverter, withAudio } from "../audio/ts-converter.ts";
import type { AudioConversion } from "../contract.ts";
import { readPiece } from "../ts-interleave.ts";

/** Segments whose last audio is kept for the next one: players of one stream are spread over its window. Each has about 50 KiB. */
const KEPT_TAILS = 32;

/** Options of {@link StreamConverter}. */
export interface StreamConverterOptions {
  readonly transcoder: AudioTranscoder;
  /** Undefined: the audio is delivered as it is. */
  readonly conversion: AudioConversion | undefined;
  /** Chooses the audio of a segment. */
  readonly choose: (audio: readonly TsStream[]) => TsStream | undefined;
}

/** Chooses the audio in a language, as {@link languageCode} returns it; the first one if there is none. Streams name German `ger` or `deu`. */
export function inLanguage(wanted: string): StreamConverterOptions["choose"] {
  return (audio) => audio.find(({ language }) => languageCode(language) === wanted) ?? audio[0];
}

/** Converts one audio track of a stream whose segments arrive one by one, for all its players. */
export class StreamConverter {
  readonly #converter: TsConverter | undefined;
  readonly #choose: StreamConverterOptions["choose"];
  /** The last audio of recent segments, by index; the oldest is first. */
  readonly #tails = new Map<number, readonly AudioUnit[]>();

  constructor({ transcoder, conversion, choose }: StreamConverterOptions) {
    this.#converter = conversion && new TsConverter(transcoder, conversion);
    this.#choose = choose;
  }

  /** Returns true if the packets name audio that is converted, and loads what that needs. Throws `broken_media` if they have no tables. */
  needs(packets: Uint8Array): boolean {
    const audio = this.#audioOf(readPiece(packets));
    if (audio === undefined || this.#converter?.needs(audio.codec) !== true) return false;
    this.#converter.prepare(audio.codec);
    return true;
  }

  /** Returns true if the segment before `index` is known, so that this one continues without a gap. */
  continues(index: number): boolean {
    return this.#tails.has(index - 1);
  }

  /** Remembers the audio of a segment before one that is converted. */
  remember(index: number, segment: Uint8Array): void {
    const piece = readPiece(segment);
    const audio = this.#audioOf(piece);
    if (audio) this.#keep(index, audioUnits(piece.packets, audio.pid));
  }

  /** Returns the segment with the audio as AAC, in place of all its audio. Rejects with `SluiceError`, or the reason of `signal`. */
  async convert(
    index: number,
    segment: Uint8Array<ArrayBuffer>,
    signal: AbortSignalLike,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const audio = this.#read(index, segment);
    const aac = audio && (await this.#converter?.convert(audio, signal));
    return aac ? withAudio(segment, aac, audio.language) : segment;
  }

  /** Returns the audio of the segment as a transport stream of its own; no packets if it has no frames. Rejects like `convert`. */
  async alone(
    index: number,
    segment: Uint8Array<ArrayBuffer>,
    signal: AbortSignalLike,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const audio = this.#read(index, segment);
    const made = audio && ((await this.#converter?.convert(audio, signal)) ?? audioAlone(audio));
    return made ?? new Uint8Array(0);
  }

  #read(index: number, segment: Uint8Array<ArrayBuffer>): SegmentAudio | undefined {
    const piece = readPiece(segment);
    const audio = this.#audioOf(piece);
    if (!audio) return undefined;
    const own = audioUnits(piece.packets, audio.pid);
    this.#keep(index, own);
    const { language, codec } = audio;
    return { before: this.#tails.get(index - 1) ?? [], own, language, codec, isLast: false };
  }

  #audioOf({ streams }: ReturnType<typeof readPiece>): TsStream | undefined {
    return this.#choose(streams.filter(({ kind }) => kind === "audio"));
  }

  #keep(index: number, units: readonly AudioUnit[]): void {
    this.#tails.delete(index);
    this.#tails.set(index, lastUnits(units, 2 * PREROLL_SECONDS));
    trimOldest(this.#tails, KEPT_TAILS);
  }
}
