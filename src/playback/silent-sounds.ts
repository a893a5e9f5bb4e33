import { languageCode } from "../media/language.ts";
import { isLatm, isUnsupportedLatm } from "../remux/audio/latm-frames.ts";
import { type AudioTranscoder, converts } from "../remux/audio/transcoder.ts";
import { audioUnits } from "../remux/audio/ts-audio.ts";
import { TsConverter } from "../remux/audio/ts-converter.ts";
import type { AudioConversion } from "../remux/contract.ts";
import { readPiece } from "../remux/ts-interleave.ts";
import type { SegmentSource } from "../transfer/segment-source.ts";
import { BROWSER_AUDIO } from "./contract.ts";
import type { SegmentCache } from "./segment-cache.ts";

/** An audio track, named for the user. */
export interface NamedSound {
  /** ISO 639-2. */
  readonly language: string;
  readonly codec: string;
}

/** A track, and whether browsers play it, converted or not. */
interface Sound extends NamedSound {
  readonly isHeard: boolean;
}

/** How the page plays the audio of a stream. */
interface PagePlayback {
  readonly conversion: AudioConversion;
  readonly transcoder: AudioTranscoder | undefined;
  /** The segments that sessions play. */
  readonly segments: SegmentCache;
}

/** Returns the audio tracks in languages of which none can be heard in a browser. */
function silentOf(sounds: readonly Sound[]): NamedSound[] {
  return sounds
    .filter(({ language }) => !sounds.some((other) => other.language === language && other.isHeard))
    .map(({ language, codec }) => ({ language, codec }));
}

/** Returns the audio of a stream that the page cannot play. Waits for the first bytes of the stream. Rejects with `SluiceError`. */
export async function silentSounds(
  source: SegmentSource,
  playback: PagePlayback,
  signal: AbortSignal,
): Promise<NamedSound[]> {
  if (source.container === "ts") {
    const packets = source.live
      ? await source.live.cursor(0).next(signal)
      : await firstSegment(source, "ts", playback, signal);
    return packets ? silentOf(soundsOfTs(packets, playback)) : [];
  }
  const { transcoder, conversion } = playback;
  const init = await firstSegment(source, "mp4", playback, signal);
  const segment = await firstSegment(source, "m4s", playback, signal);
  // A dynamic import, because the engine starts without the reader of media files.
  const { FragmentedStream } = await import("../remux/streams/fragmented-segments.ts");
  const { tracks } = await FragmentedStream.open(init, segment, "und");
  const sounds = tracks
    .filter(({ kind }) => kind === "audio")
    .map(({ described: { language, codec } }) => {
      const isConverted = converts(conversion, codec) && transcoder?.decodes(codec) === true;
      return { language: languageCode(language), codec, isHeard: BROWSER_AUDIO.has(codec) || isConverted };
    });
  return silentOf(sounds);
}

function soundsOfTs(packets: Uint8Array, { conversion, transcoder }: PagePlayback): Sound[] {
  const converter = transcoder && new TsConverter(transcoder, conversion);
  const piece = readPiece(packets);
  return piece.streams
    .filter(({ kind }) => kind === "audio")
    .map(({ pid, language, codec }) => {
      const isConverted =
        converter?.needs(codec) === true &&
        !(isLatm(codec) && isUnsupportedLatm(audioUnits(piece.packets, pid)));
      return { language, codec, isHeard: isConverted || codec === "aac" };
    });
}

async function firstSegment(
  source: SegmentSource,
  kind: "ts" | "mp4" | "m4s",
  { segments }: PagePlayback,
  signal: AbortSignal,
) {
  const index = await source.first(signal);
  const make = (stop: AbortSignal) => source.make(kind, index, 0, stop);
  return segments.get(`${source.name}/0/${index}.${kind}`, make, signal);
}
