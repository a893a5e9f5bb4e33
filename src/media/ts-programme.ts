import type { Pmt, PmtStream } from "./psi.ts";
import type { TeletextPage } from "./teletext.ts";

/** An elementary stream, described for players. */
export interface TsStream {
  readonly pid: number;
  readonly kind: "video" | "audio" | "subtitle" | "data";
  /** Short name: `h264`, `hevc`, `mpeg2video`, `aac`, `mp2` (MPEG audio of layer II or III), `ac3`, … */
  readonly codec: string;
  readonly language: string;
  /** Teletext: the pages with subtitles, those for people with impaired hearing last. */
  readonly pages?: readonly SubtitlePage[];
  /** DVB subtitles: the languages that share the stream, those for people with impaired hearing last. */
  readonly pictures?: readonly DvbSubtitles[];
}

/** DVB subtitles in one language, as the programme describes them. */
export interface DvbSubtitles {
  readonly language: string;
  readonly composition: number;
  readonly ancillary: number;
  readonly isHearingImpaired: boolean;
}

/** A teletext page with subtitles, as the programme describes it. */
export interface SubtitlePage extends TeletextPage {
  readonly isHearingImpaired: boolean;
}

/** `teletext_type` of subtitles, and of those for people with impaired hearing (ETSI EN 300 468 table 107). */
const SUBTITLE_TYPES = [2, 5];

/** DVB subtitles with this `component_type` and above are for people with impaired hearing (ETSI EN 300 468 table 26). */
const HEARING_IMPAIRED_TYPE = 0x20;

const BY_TYPE: Readonly<Record<number, readonly [TsStream["kind"], string]>> = {
  1: ["video", "mpeg1video"],
  2: ["video", "mpeg2video"],
  3: ["audio", "mp2"],
  4: ["audio", "mp2"],
  15: ["audio", "aac"],
  16: ["video", "mpeg4"],
  17: ["audio", "aac_latm"],
  27: ["video", "h264"],
  36: ["video", "hevc"],
  51: ["video", "vvc"],
  128: ["audio", "pcm_bluray"],
  129: ["audio", "ac3"],
  130: ["audio", "dts"],
  131: ["audio", "truehd"],
  132: ["audio", "eac3"],
  133: ["audio", "dts"],
  134: ["audio", "dts"],
  135: ["audio", "eac3"],
  144: ["subtitle", "pgs"],
  234: ["video", "vc1"],
};

const BY_REGISTRATION: Readonly<Record<string, readonly [TsStream["kind"], string]>> = {
  "AC-3": ["audio", "ac3"],
  EAC3: ["audio", "eac3"],
  HEVC: ["video", "hevc"],
  Opus: ["audio", "opus"],
  AV01: ["video", "av1"],
  DTS1: ["audio", "dts"],
  DTS2: ["audio", "dts"],
  DTS3: ["audio", "dts"],
};

/** Codecs of private data by descriptor tag (DVB, ETSI EN 300 468 6.1). */
const BY_TAG: Readonly<Record<number, readonly [TsStream["kind"], string]>> = {
  106: ["audio", "ac3"],
  122: ["audio", "eac3"],
  123: ["audio", "dts"],
  89: ["subtitle", "dvb_subtitle"],
  86: ["subtitle", "dvb_teletext"],
};

/** Describes the streams of a programme (ISO 13818-1 table 2-34; ATSC A/52, Blu-ray and DVB for private types). */
export function streamsOf(pmt: Pmt): TsStream[] {
  return pmt.streams.map((stream) => {
    const [kind, codec] = classify(stream);
    const language = knownLanguage(stream.language);
    const pages = codec === "dvb_teletext" ? subtitlePages(stream) : [];
    const pictures = codec === "dvb_subtitle" ? dvbSubtitles(stream) : [];
    return {
      ...{ pid: stream.pid, kind, codec, language },
      ...(pages.length > 0 && { pages }),
      ...(pictures.length > 0 && { pictures }),
    };
  });
}

function dvbSubtitles({ dvbSubtitles = [] }: PmtStream): DvbSubtitles[] {
  return dvbSubtitles
    .map(({ type, composition, ancillary, language }) => ({
      ...{ language: knownLanguage(language), composition, ancillary },
      isHearingImpaired: type >= HEARING_IMPAIRED_TYPE,
    }))
    .sort((a, b) => Number(a.isHearingImpaired) - Number(b.isHearingImpaired));
}

function subtitlePages({ pages = [] }: PmtStream): SubtitlePage[] {
  return pages
    .filter(({ type }) => SUBTITLE_TYPES.includes(type))
    .sort((a, b) => a.type - b.type)
    .map(({ type, magazine, page, language }) => ({
      ...{ magazine, page, language: knownLanguage(language) },
      isHearingImpaired: type !== SUBTITLE_TYPES[0],
    }));
}

function knownLanguage(language: string | undefined): string {
  return language !== undefined && /^[a-z]{3}$/.test(language) ? language : "und";
}

/** Returns the stream whose units decide where segments begin: the first video, else the first audio. */
export function leadingStream(streams: readonly TsStream[]): TsStream | undefined {
  return streams.find(({ kind }) => kind === "video") ?? streams.find(({ kind }) => kind === "audio");
}

function classify(stream: PmtStream): readonly [TsStream["kind"], string] {
  const byRegistration = stream.registration === undefined ? undefined : BY_REGISTRATION[stream.registration];
  // The types 0x80 to 0xff depend on the registration, but Blu-ray and ATSC streams have none.
  if (stream.streamType !== 6)
    return BY_TYPE[stream.streamType] ?? byRegistration ?? ["data", `type ${stream.streamType}`];
  if (byRegistration) return byRegistration;
  for (const tag of stream.tags ?? []) {
    const byTag = BY_TAG[tag];
    if (byTag) return byTag;
  }
  return ["data", "private"];
}
