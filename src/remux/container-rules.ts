import { DecodeError, SluiceError } from "../base/errors.ts";
import { adtsProblem, parseAacConfig } from "../media/aac.ts";
import type { SourceTrack } from "./media-tracks.ts";
import type { TsCodec } from "./ts-mux-input.ts";

const TS_VIDEO = new Set(["h264", "hevc"]);
const TS_AUDIO = new Set(["aac", "mp3", "mp2", "ac3", "eac3", "dts"]);
const FMP4_VIDEO = new Set(["h264", "hevc", "av1", "vp9"]);
const FMP4_AUDIO = new Set(["aac", "ac3", "eac3", "mp3", "opus", "flac"]);

/** Codec names for error messages. */
const DISPLAY_NAMES: Readonly<Record<string, string>> = {
  h264: "H.264", hevc: "HEVC", av1: "AV1", vp8: "VP8", vp9: "VP9", prores: "ProRes", aac: "AAC", mp2: "MP2",
  mp3: "MP3", ac3: "AC-3", eac3: "E-AC-3", opus: "Opus", vorbis: "Vorbis", flac: "FLAC", dts: "DTS",
  mp4v: "MPEG-4 Part 2", "V_MPEG4/ISO/ASP": "MPEG-4 Part 2", V_MPEG2: "MPEG-2", A_TRUEHD: "TrueHD",
}; // biome-ignore format: a table

/** Returns true if MPEG-TS can carry this codec (ISO 13818-1 table 2-34; ETSI TS 101 154 for AC-3 and DTS). */
export function isTsCodec(codec: string): codec is TsCodec {
  return TS_VIDEO.has(codec) || TS_AUDIO.has(codec);
}

/** Returns true if the engine writes this codec into fragmented MP4 and players support that. */
export function isFmp4Codec(codec: string): boolean {
  return FMP4_VIDEO.has(codec) || FMP4_AUDIO.has(codec);
}

/** The tracks that a container carries, and what it cannot serve. */
export interface ContainerFit {
  /** Video first, then the audio tracks that the container can carry. */
  readonly tracks: readonly SourceTrack[];
  /** Why the file cannot be served at all. Audio that does not fit is no reason: the picture plays without sound. */
  readonly problem: SluiceError | undefined;
  /** True if the file has audio but none of its audio tracks fits. */
  readonly isSilent: boolean;
}

/** Returns what MPEG-TS carries of a file: all its tracks with a suitable codec. */
export function fitTs(tracks: readonly SourceTrack[]): ContainerFit {
  return fit(
    tracks,
    ({ described, config }) =>
      isTsCodec(described.codec) && (described.codec !== "aac" || !config || !adtsProblemOf(config)),
    (codec) =>
      isFmp4Codec(codec)
        ? "cannot be carried in MPEG-TS; request HLS with container=fmp4, or the raw file"
        : "cannot be carried in MPEG-TS; request the raw file",
  );
}

/** Returns what fragmented MP4 carries of a file: the video and the first suitable audio track. */
export function fitFmp4(tracks: readonly SourceTrack[]): ContainerFit {
  const fits = fit(
    tracks,
    ({ described }) => isFmp4Codec(described.codec),
    (codec) =>
      isTsCodec(codec)
        ? "cannot be carried in fragmented MP4; request MPEG-TS, or the raw file"
        : "cannot be carried in fragmented MP4; request the raw file",
  );
  const audio = fits.tracks.find(({ kind }) => kind === "audio");
  return { ...fits, tracks: fits.tracks.filter((track) => track.kind === "video" || track === audio) };
}

/** Why ADTS cannot carry AAC with this configuration; undefined if it can. */
function adtsProblemOf(config: Uint8Array): string | undefined {
  try {
    return adtsProblem(parseAacConfig(config));
  } catch (error) {
    if (error instanceof DecodeError) return error.message;
    throw error;
  }
}

function fit(
  tracks: readonly SourceTrack[],
  carries: (track: SourceTrack) => boolean,
  advice: (codec: string) => string,
): ContainerFit {
  const video = tracks.find(({ kind }) => kind === "video");
  const audio = tracks.filter(({ kind }) => kind === "audio");
  const carried = tracks.filter(carries);
  const hasAudio = carried.some(({ kind }) => kind === "audio");
  const leading = video ?? (hasAudio ? undefined : audio[0]);
  return {
    tracks: carried,
    problem: leading && !carried.includes(leading) ? problemOf(leading, advice) : undefined,
    isSilent: audio.length > 0 && !hasAudio,
  };
}

function problemOf(
  { described: { codec, kind } }: SourceTrack,
  advice: (codec: string) => string,
): SluiceError {
  return new SluiceError("unsupported_codec", `${DISPLAY_NAMES[codec] ?? codec} ${kind} ${advice(codec)}`);
}
