import { DecodeError } from "../base/errors.ts";
import { readAdtsHeader } from "../media/aac.ts";
import { readAc3Header } from "../media/ac3.ts";
import { readMpegAudioHeader } from "../media/audio-headers.ts";
import { parseH264Sps } from "../media/h264.ts";
import { HEVC_NAL, hevcNalType, parseHevcSps } from "../media/hevc.ts";
import { languageCode, trackLanguage } from "../media/language.ts";
import { annexBNals } from "../media/nal.ts";
import { TS_PACKET_BYTES } from "../media/ts-packet.ts";
import type { DvbSubtitles, SubtitlePage, TsStream } from "../media/ts-programme.ts";
import { nextUnit, unitHead } from "../media/ts-units.ts";
import type { MediaTrack } from "./contract.ts";
import { areOnly708, captionsIn } from "./ts-captions.ts";

/** The description of a track of a transport stream, with its PID. */
export interface TsTrack {
  readonly pid: number;
  readonly described: MediaTrack;
  /** The teletext page of subtitles. */
  readonly page?: SubtitlePage;
  /** The pages of DVB subtitles. */
  readonly pictures?: DvbSubtitles;
  /** The video stream with captions. */
  readonly captions?: TsStream;
}

/** How much of a frame is searched for parameter sets. */
const HEAD_BYTES = 4096;
/** Limit of frames searched, because a recording can begin anywhere. */
const MAX_UNITS = 300;

/**
 * Describes the tracks in the order for players: video, then audio with the preferred language first and as default, then
 * subtitles. Frame size, profile and MPEG audio layer are read from the frames in `packets`, the head of the file.
 */
export function describeTracks(
  streams: readonly TsStream[],
  packets: Uint8Array,
  language: string,
): TsTrack[] {
  const video = streams.filter(({ kind }) => kind === "video").slice(0, 1);
  const audio = streams.filter(({ kind }) => kind === "audio");
  const preferred =
    language === "und" ? undefined : audio.find((stream) => languageCode(stream.language) === language);
  const first = preferred ?? audio[0];
  const ordered = [...(first ? [first] : []), ...audio.filter((stream) => stream !== first)];
  const subtitles = streams.filter(({ kind }) => kind === "subtitle");
  const described = (stream: TsStream): TsTrack => ({
    pid: stream.pid,
    described: {
      kind: stream.kind as MediaTrack["kind"],
      codec: stream.codec,
      codecString: CODEC_STRINGS[stream.codec],
      language: trackLanguage(stream.language),
      title: undefined,
      isDefault: stream === first || stream.kind === "video",
      ...(stream.kind === "subtitle" && {
        isOpaque: true,
        ...(stream.codec === "pgs" && { isPicture: true }),
      }),
      ...detailsOf(stream, packets),
    },
  });
  return [
    ...[...video, ...ordered].map(described),
    ...subtitles.flatMap(pageTracks),
    ...subtitles.flatMap(dvbTracks),
    ...video.filter((stream) => areOnly708(captionsIn(packets, stream))).map(captionTrack),
    ...subtitles.filter(({ pages, pictures }) => !pages && !pictures).map(described),
  ];
}

/** Captions in the picture do not name their language. */
function captionTrack(stream: TsStream): TsTrack {
  const described = { kind: "subtitle", codec: "cea708", codecString: "wvtt", isDefault: false } as const;
  return {
    ...{ pid: stream.pid, captions: stream },
    described: { ...described, language: "und", title: CAPTIONS_TITLE },
  };
}

/** The tracks of a stream of DVB subtitles: its languages. */
function dvbTracks({ pid, codec, pictures = [] }: TsStream): TsTrack[] {
  return pictures.map((own) => ({
    ...{ pid, pictures: own },
    described: {
      ...{
        kind: "subtitle",
        codec,
        codecString: undefined,
        isDefault: false,
        isOpaque: true,
        isPicture: true,
      },
      ...{ language: own.language, title: own.isHearingImpaired ? "Hearing impaired" : undefined },
    },
  }));
}

/** The tracks of a teletext stream: its pages with subtitles. */
function pageTracks({ pid, codec, pages = [] }: TsStream): TsTrack[] {
  return pages.map((page) => {
    const described = { kind: "subtitle", codec, codecString: "wvtt", isDefault: false } as const;
    const title = page.isHearingImpaired ? "Hearing impaired" : undefined;
    return { pid, page, described: { ...described, language: page.language, title } };
  });
}

/** The name of captions (CEA-708). */
export const CAPTIONS_TITLE = "Captions";

const CODEC_STRINGS: Readonly<Record<string, string>> = {
  ac3: "ac-3",
  eac3: "ec-3",
  mp2: "mp4a.40.33",
  dts: "dtsc",
};

type Details = Partial<Pick<MediaTrack, "codec" | "codecString" | "width" | "height">>;

function detailsOf(stream: TsStream, packets: Uint8Array): Details {
  let at = 0;
  for (let units = 0; units < MAX_UNITS; units++) {
    const unit = nextUnit(packets, at, stream);
    if (!unit) break;
    const details = readDetails(stream.codec, unitHead(packets, unit.at, stream.pid, HEAD_BYTES).bytes);
    if (details) return details;
    at = unit.at + TS_PACKET_BYTES;
  }
  return {};
}

function readDetails(codec: string, head: Uint8Array): Details | undefined {
  try {
    if (codec === "h264" || codec === "hevc") return readVideo(codec, head);
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
  if (codec === "aac") {
    const adts = readAdtsHeader(head, 0);
    return adts && { codecString: `mp4a.40.${adts.objectType}` };
  }
  if (codec === "ac3" || codec === "eac3") {
    // Some recorders write E-AC-3 with the stream type of AC-3.
    const found = readAc3Header(head, 0)?.codec;
    return found && { codec: found, codecString: CODEC_STRINGS[found] };
  }
  if (codec !== "mp2") return {};
  const header = readMpegAudioHeader(head, 0);
  if (!header) return undefined;
  return header.layer === 3 ? { codec: "mp3", codecString: "mp4a.40.34" } : {};
}

function readVideo(codec: "h264" | "hevc", head: Uint8Array): Details | undefined {
  for (const { start, end } of annexBNals(head, 32)) {
    const nal = head.subarray(start, end);
    const isSps = codec === "h264" ? (nal[0]! & 0x1f) === 7 : hevcNalType(nal[0]!) === HEVC_NAL.sps;
    if (!isSps) continue;
    const { width, height, codecString } = codec === "h264" ? parseH264Sps(nal) : parseHevcSps(nal);
    return { width, height, codecString };
  }
  return undefined;
}
