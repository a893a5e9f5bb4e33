import { SluiceError } from "../base/errors.ts";
import type { SourceTrack } from "./media-tracks.ts";
import type { TsCodec } from "./ts-mux-input.ts";

const TS_VIDEO = new Set(["h264", "hevc"]);
const TS_AUDIO = new Set(["aac", "mp3", "mp2", "ac3", "eac3"]);
const FMP4_VIDEO = new Set(["h264", "hevc", "av1", "vp9"]);
const FMP4_AUDIO = new Set(["aac", "ac3", "eac3", "mp3", "opus", "flac"]);

/** Names as people know them. */
const PLAIN: Readonly<Record<string, string>> = {
  h264: "H.264", hevc: "HEVC", av1: "AV1", vp8: "VP8", vp9: "VP9", prores: "ProRes", aac: "AAC", mp2: "MP2",
  mp3: "MP3", ac3: "AC-3", eac3: "E-AC-3", opus: "Opus", vorbis: "Vorbis", flac: "FLAC", dts: "DTS",
  mp4v: "MPEG-4 Part 2", "V_MPEG4/ISO/ASP": "MPEG-4 Part 2", V_MPEG2: "MPEG-2", A_TRUEHD: "TrueHD",
}; // biome-ignore format: a table

/** Whether MPEG-TS has a place for this codec (ISO 13818-1 table 2-34; ETSI TS 101 154 for AC-3). */
export function isTsCodec(codec: string): codec is TsCodec {
  return TS_VIDEO.has(codec) || TS_AUDIO.has(codec);
}

/** Whether we write this codec into fragmented MP4, and players can take it from there. */
export function isFmp4Codec(codec: string): boolean {
  return FMP4_VIDEO.has(codec) || FMP4_AUDIO.has(codec);
}

/** Why a file cannot be served as MPEG-TS, or undefined where it can: the video, and at least one audio track. */
export function tsProblemOf(tracks: readonly SourceTrack[]): SluiceError | undefined {
  return problem(tracks, isTsCodec, (track, fits) =>
    track && isFmp4Codec(track) && fits
      ? "cannot be carried in MPEG-TS; ask for HLS with container=fmp4, or for the raw file"
      : "cannot be carried in MPEG-TS; ask for the raw file",
  );
}

/** Why a file cannot be served as fragmented MP4, or undefined where it can. */
export function fmp4ProblemOf(tracks: readonly SourceTrack[]): SluiceError | undefined {
  return problem(tracks, isFmp4Codec, (track) =>
    isTsCodec(track)
      ? "cannot be carried in fragmented MP4; ask for MPEG-TS, or for the raw file"
      : "cannot be carried in fragmented MP4; ask for the raw file",
  );
}

function problem(
  tracks: readonly SourceTrack[],
  carries: (codec: string) => boolean,
  advice: (codec: string, otherFits: boolean) => string,
): SluiceError | undefined {
  const video = tracks.find((track) => track.kind === "video");
  const audio = tracks.filter((track) => track.kind === "audio");
  const fits = (list: readonly SourceTrack[]) =>
    list.length === 0 || list.some((one) => isFmp4Codec(one.described.codec));
  const bothFit = (!video || isFmp4Codec(video.described.codec)) && fits(audio);
  const wrong =
    video && !carries(video.described.codec)
      ? video
      : audio.length > 0 && !audio.some((track) => carries(track.described.codec))
        ? audio[0]
        : undefined;
  if (!wrong) return undefined;
  const { codec, kind } = wrong.described;
  return new SluiceError("unsupported_codec", `${PLAIN[codec] ?? codec} ${kind} ${advice(codec, bothFit)}`);
}
