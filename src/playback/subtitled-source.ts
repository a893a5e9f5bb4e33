import { SharedAttempt } from "../async/shared-attempt.ts";
import { concatBytes } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import { languageTag } from "../media/language.ts";
import { writeMasterManifest } from "../media/manifest.ts";
import type { CaptionState } from "../media/subtitles/cea708.ts";
import type { DvbPage } from "../media/subtitles/dvb-subtitles.ts";
import { deltaTicks, TICKS_PER_SECOND, wrapTicks } from "../media/timestamps.ts";
import { pidAt, TS_PACKET_BYTES } from "../media/ts-packet.ts";
import { leadingStream, type SubtitlePage, streamsOf, type TsStream } from "../media/ts-programme.ts";
import { TableReader } from "../media/ts-tables.ts";
import { nextUnit } from "../media/ts-units.ts";
import { type TextCue, writeWebvtt } from "../media/webvtt.ts";
import { decodeTeletext, packetsOf, teletextCues } from "../remux/teletext-packets.ts";
import { areOnly708, captionsIn, decodeCaptions, type FrameCaptions } from "../remux/ts-captions.ts";
import { decodePictures } from "../remux/ts-pictures.ts";
import { CAPTIONS_TITLE } from "../remux/ts-tracks.ts";
import type {
  LiveStream,
  ManifestPlace,
  ManifestRendition,
  SegmentBytes,
  SegmentName,
  SegmentSource,
} from "../transfer/segment-source.ts";
import { DerivedSource } from "./derived-source.ts";
import { SUBTITLE_GROUP, subtitleRenditions } from "./hls.ts";
import { wholeSegments, withoutParts } from "./manifest-parts.ts";
import { pictureJson } from "./picture-json.ts";

/** A segment shows what was sent up to this many segments before it: two are 8 s or more. */
const SEGMENTS_BEFORE = 2;
/** Segments whose teletext is kept: those that players at the edge request, and their predecessors. */
const KEPT_SEGMENTS = 16;
/** Cue times begin this long before their segment, because a cue can begin before the first picture of the segment. */
const MARGIN_SECONDS = 10;
/** Bitrate for the master manifest if none is known; there is only one variant. */
const DEFAULT_BYTES_PER_SECOND = 1_000_000;

/** Numbers of subtitles that are pictures begin here, because segment names have three digits. */
const PICTURES_FROM = 500;
/** The `DATA-ID` of session data that describes a track of pictures begins with this; the number of the track follows. */
const PICTURES_ID = "sluice.pictures.";

/** Subtitles that are pictures, and their PID. */
interface ListedPictures {
  readonly pid: number;
  readonly codec: string;
  readonly language: string;
  readonly isHearingImpaired: boolean;
  /** Undefined for PGS. */
  readonly page: DvbPage | undefined;
}

/** The subtitles of a stream. */
interface Listed {
  readonly pages: readonly ListedPage[];
  readonly pictures: readonly ListedPictures[];
  /** Video with CEA-708 captions; its track number follows those of the pages. */
  readonly captions: TsStream | undefined;
}

/** Text subtitles for a master manifest. */
interface TextDescription {
  readonly language: string;
  readonly isHearingImpaired: boolean;
  readonly title?: string;
}

/** Captions in the picture do not name their language. */
const CAPTIONS: TextDescription = { language: "und", isHearingImpaired: false, title: CAPTIONS_TITLE };

/** A page, and the PID of the stream that carries it. */
interface ListedPage extends SubtitlePage {
  readonly pid: number;
}

/** What is kept of a segment. Times in ticks. */
interface KeptSegment {
  /** The packets of subtitles, by PID. */
  readonly packets: ReadonlyMap<number, Uint8Array>;
  readonly captions: readonly FrameCaptions[];
  /** The decode times of its first and its last picture. */
  readonly firstDts: number;
  readonly lastDts: number;
}

/**
 * A live stream of MPEG-TS with its teletext subtitles as WebVTT, and with those that are pictures (DVB, PGS) for the page. If the stream
 * has none, it is the source itself. The tables of the stream are read once.
 */
export class SubtitledSource extends DerivedSource {
  readonly live?: LiveStream;
  readonly #original: SegmentSource;
  readonly #subtitles = new SharedAttempt((signal) => this.#readTables(signal));
  /** By index. */
  readonly #kept = new Map<number, KeptSegment>();

  /** `source` is `original`, or the same segments with other audio. */
  constructor(source: SegmentSource, original: SegmentSource) {
    super(source);
    this.#original = original;
    if (source.live) this.live = source.live;
  }

  override async manifest(
    place: ManifestPlace,
    rendition: ManifestRendition,
    signal: AbortSignal,
  ): Promise<string> {
    const source = this.source;
    if (typeof rendition === "object" && "subtitles" in rendition) {
      const { pages, captions } = await this.#subtitles.get(signal);
      if (rendition.subtitles >= pages.length + (captions ? 1 : 0))
        throw noSuchSubtitles(rendition.subtitles);
      const manifest = await source.manifest(wholeSegments(place), "media", signal);
      return withoutParts(manifest).replace(/\.ts$/gm, `.s${rendition.subtitles}.vtt`);
    }
    const manifest = await source.manifest(place, rendition, signal);
    if (rendition !== "main") return manifest;
    const { pages, pictures, captions } = await this.#subtitles.get(signal);
    const texts: TextDescription[] = [...pages, ...(captions ? [CAPTIONS] : [])];
    if (texts.length + pictures.length === 0) return manifest;
    const own = this.#master(texts, place);
    const isMaster = manifest.includes("#EXT-X-STREAM-INF:");
    const lines = [...((isMaster && own.match(/^#EXT-X-MEDIA:.*\n/gm)) || []), ...pictures.map(sessionData)];
    const group = texts.length > 0 && isMaster ? `,SUBTITLES="${SUBTITLE_GROUP}"` : "";
    return (isMaster ? manifest : own)
      .replace(/^#EXT-X-STREAM-INF:.*/gm, `$&${group}`)
      .replace(/^#EXT-X-(?!VERSION)/m, `${lines.join("")}$&`);
  }

  override find(
    kind: SegmentName["kind"],
    number: number,
    signal: AbortSignal,
    track?: number,
  ): Promise<number> {
    return this.source.find(kind === "vtt" ? "ts" : kind, number, signal, track);
  }

  override async make(
    kind: SegmentName["kind"],
    index: number,
    track: number,
    signal: AbortSignal,
  ): Promise<SegmentBytes> {
    if (kind !== "vtt") return this.source.make(kind, index, track, signal);
    if (track >= PICTURES_FROM) return this.#pictures(index, track, signal);
    const { pages, captions } = await this.#subtitles.get(signal);
    const page = pages[track];
    if (!page && !(captions && track === pages.length)) throw noSuchSubtitles(track);
    const own = await this.#segment(index, signal);
    const before = await this.#before(index, own, signal);
    if (!page) {
      const earlier = before.flatMap((segment) => segment.captions);
      const states = decodeCaptions([...earlier, ...own.captions], own.firstDts);
      return encodeUtf8(segmentText(own, teletextCues(marked(states), Number.POSITIVE_INFINITY)));
    }
    const packets = packetsIn(before, page.pid);
    const { states } = decodeTeletext(concatBytes([packets, packetsIn([own], page.pid)]), page, own.firstDts);
    // A late page begins before the segment that carries it.
    const cues = teletextCues(states, Number.POSITIVE_INFINITY).map((cue) => ({
      ...cue,
      startSeconds: cue.mark >= packets.length ? cue.startSeconds : Math.max(0, cue.startSeconds),
    }));
    return encodeUtf8(segmentText(own, cues));
  }

  /** Returns what pictures show during a segment: cues with a {@link PictureJson} each, whose times begin with the segment. */
  async #pictures(index: number, track: number, signal: AbortSignal): Promise<SegmentBytes> {
    const found = (await this.#subtitles.get(signal)).pictures[track - PICTURES_FROM];
    if (!found) throw noSuchSubtitles(track);
    const own = await this.#segment(index, signal);
    const before = await this.#before(index, own, signal);
    const packets = packetsIn([...before, own], found.pid);
    const to = deltaTicks(own.lastDts, own.firstDts) / TICKS_PER_SECOND;
    const states = decodePictures(packets, found.page, own.firstDts, { from: -MARGIN_SECONDS, to });
    const cues = states.flatMap((state, nth) => {
      const startSeconds = Math.max(0, state.seconds);
      const endSeconds = Math.min(to, states[nth + 1]?.seconds ?? to);
      if (endSeconds <= startSeconds) return [];
      return [{ startSeconds, endSeconds, text: JSON.stringify(pictureJson(state)) }];
    });
    return encodeUtf8(writeWebvtt(cues, own.firstDts));
  }

  /** Returns the segments before `index` that continue in it. */
  async #before(index: number, own: KeptSegment, signal: AbortSignal): Promise<KeptSegment[]> {
    const before: KeptSegment[] = [];
    for (let past = index - SEGMENTS_BEFORE; past < index; past++) {
      // The first segment of a window has no predecessor.
      const kept = await this.#segment(past, signal).catch(() => undefined);
      signal.throwIfAborted();
      // After a jump of the clock, what was shown before it is gone.
      const isNear =
        kept && Math.abs(deltaTicks(own.firstDts, kept.lastDts)) < MARGIN_SECONDS * TICKS_PER_SECOND;
      if (isNear) before.push(kept);
    }
    return before;
  }

  #master(texts: readonly TextDescription[], { urls: { manifest: url } }: ManifestPlace): string {
    const subtitles = texts.map(({ language, isHearingImpaired, title }, number) => ({
      ...{ number, language, isForced: false },
      title: isHearingImpaired ? "Hearing impaired" : title,
    }));
    const bitsPerSecond = 8 * (this.bytesPerSecond ?? DEFAULT_BYTES_PER_SECOND);
    const variant = {
      ...{ uri: `${url}?rendition=media`, bitsPerSecond },
      ...(texts.length > 0 && { subtitleGroup: SUBTITLE_GROUP }),
    };
    return writeMasterManifest([variant], subtitleRenditions(subtitles, url));
  }

  /** The subtitles in the tables before the newest random access point. */
  async #readTables(signal: AbortSignal): Promise<Listed> {
    const head = await this.#original.live?.cursor(0).next(signal);
    const streams = head ? streamsIn(head) : [];
    const video = streams.find(({ kind }) => kind === "video");
    const hasCaptions = head && video && areOnly708(captionsIn(head, video));
    return {
      captions: hasCaptions ? video : undefined,
      pages: streams.flatMap(({ pid, pages = [] }) => pages.map((page) => ({ ...page, pid }))),
      pictures: streams.flatMap(({ pid, codec, language, pictures = [] }): ListedPictures[] => {
        if (codec === "pgs") return [{ pid, codec, language, isHearingImpaired: false, page: undefined }];
        return pictures.map((page) => ({ pid, codec, ...page, page }));
      }),
    };
  }

  async #segment(index: number, signal: AbortSignal): Promise<KeptSegment> {
    const known = this.#kept.get(index);
    if (known) return known;
    const bytes = await this.#original.make("ts", index, 0, signal);
    const { pages, pictures, captions } = await this.#subtitles.get(signal);
    const pids = new Set([...pages, ...pictures].map(({ pid }) => pid));
    const packets = new Map([...pids].map((pid) => [pid, packetsOf(bytes, pid)] as const));
    const inPicture = captions ? captionsIn(bytes, captions) : [];
    const kept = { packets, captions: inPicture, ...pictureTimes(bytes) };
    this.#kept.set(index, kept);
    if (this.#kept.size > KEPT_SEGMENTS) this.#kept.delete(this.#kept.keys().next().value!);
    return kept;
  }
}

function noSuchSubtitles(track: number): SluiceError {
  return new SluiceError("no_such_segment", `the stream has no subtitles ${track}`);
}

/** Describes a track of pictures in a master manifest (RFC 8216 4.3.4.4): players ignore it, the page draws it. */
function sessionData({ codec, language, isHearingImpaired }: ListedPictures, nth: number): string {
  const number = PICTURES_FROM + nth;
  const value = `${codec}${isHearingImpaired ? ",Hearing impaired" : ""}`;
  const languageTagOf = language === "und" ? "" : `,LANGUAGE="${languageTag(language)}"`;
  return `#EXT-X-SESSION-DATA:DATA-ID="${PICTURES_ID}${number}",VALUE="${value}"${languageTagOf}\n`;
}

/**
 * Writes the cues of a segment. A cue that continues through the end of the segment ends there, and continues in the next one, because
 * a live segment must not wait for what follows.
 */
function segmentText({ firstDts, lastDts }: KeptSegment, cues: readonly TextCue[]): string {
  const endSeconds = deltaTicks(lastDts, firstDts) / TICKS_PER_SECOND;
  const own = cues
    .filter((cue) => cue.startSeconds < endSeconds)
    .map((cue) => ({
      ...cue,
      startSeconds: cue.startSeconds + MARGIN_SECONDS,
      endSeconds: Math.min(cue.endSeconds, endSeconds) + MARGIN_SECONDS,
    }))
    .filter((cue) => cue.endSeconds > Math.max(cue.startSeconds, 0));
  return writeWebvtt(own, firstDts, MARGIN_SECONDS);
}

function packetsIn(segments: readonly KeptSegment[], pid: number): Uint8Array {
  return concatBytes(segments.map(({ packets }) => packets.get(pid) ?? new Uint8Array(0)));
}

/** Captions of earlier segments begin with this one. */
function marked(states: readonly CaptionState[]) {
  return states
    .map((state) => ({ ...state, seconds: Math.max(0, state.seconds), mark: 0 }))
    .filter(({ seconds }, nth, all) => all[nth + 1] === undefined || all[nth + 1]!.seconds > seconds);
}

function streamsIn(packets: Uint8Array) {
  const reader = new TableReader();
  for (let at = 0; at + TS_PACKET_BYTES <= packets.length && !reader.tables(false); at += TS_PACKET_BYTES)
    if (reader.wants(pidAt(packets, at))) reader.push(packets, at);
  const tables = reader.tables(true);
  return tables ? streamsOf(tables.pmt) : [];
}

/** The decode times of the first picture of a segment, and of the end of its last one. */
function pictureTimes(packets: Uint8Array): { firstDts: number; lastDts: number } {
  const leading = leadingStream(streamsIn(packets));
  let unit = leading && nextUnit(packets, 0, leading);
  const firstDts = unit?.dts ?? 0;
  let [lastDts, frame] = [firstDts, 0];
  while (leading && unit) {
    frame = Math.max(0, deltaTicks(unit.dts, lastDts)) || frame;
    lastDts = unit.dts;
    unit = nextUnit(packets, unit.at + TS_PACKET_BYTES, leading);
  }
  return { firstDts, lastDts: wrapTicks(lastDts + frame) };
}
