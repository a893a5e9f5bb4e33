import { concatBytes } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import { writeMasterManifest } from "../media/manifest.ts";
import { deltaTicks, TICKS_PER_SECOND, wrapTicks } from "../media/timestamps.ts";
import { pidAt, TS_PACKET_BYTES } from "../media/ts-packet.ts";
import { leadingStream, type SubtitlePage, streamsOf } from "../media/ts-programme.ts";
import { TableReader } from "../media/ts-tables.ts";
import { nextUnit } from "../media/ts-units.ts";
import { writeWebvtt } from "../media/webvtt.ts";
import { decodeTeletext, packetsOf, teletextCues } from "../remux/teletext-packets.ts";
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

/** A segment shows what was sent up to this many segments before it: two are 8 s or more. */
const SEGMENTS_BEFORE = 2;
/** Segments whose teletext is kept: those that players at the edge request, and their predecessors. */
const KEPT_SEGMENTS = 16;
/** Cue times begin this long before their segment, because a cue can begin before the first picture of the segment. */
const MARGIN_SECONDS = 10;
/** Bitrate for the master manifest if none is known; there is only one variant. */
const DEFAULT_BYTES_PER_SECOND = 1_000_000;

/** A page, and the PID of the stream that carries it. */
interface ListedPage extends SubtitlePage {
  readonly pid: number;
}

/** What is kept of a segment. Times in ticks. */
interface KeptSegment {
  /** The packets of teletext, by PID. */
  readonly packets: ReadonlyMap<number, Uint8Array>;
  /** The decode times of its first and its last picture. */
  readonly firstDts: number;
  readonly lastDts: number;
}

/**
 * A live stream of MPEG-TS with its teletext subtitles as WebVTT. If the stream has none, it is the source itself. The tables of the
 * stream are read once.
 */
export class TeletextSource extends DerivedSource {
  readonly live?: LiveStream;
  readonly #original: SegmentSource;
  #pages: Promise<readonly ListedPage[]> | undefined;
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
      await this.#page(rendition.subtitles, signal);
      const manifest = await source.manifest(wholeSegments(place), "media", signal);
      return withoutParts(manifest).replace(/\.ts$/gm, `.s${rendition.subtitles}.vtt`);
    }
    const manifest = await source.manifest(place, rendition, signal);
    if (rendition !== "main") return manifest;
    const pages = await this.#listed(signal);
    if (pages.length === 0) return manifest;
    const master = this.#master(pages, place);
    if (!manifest.includes("#EXT-X-STREAM-INF:")) return master;
    const lines = master.match(/^#EXT-X-MEDIA:.*\n/gm)!.join("");
    return manifest
      .replace(/^#EXT-X-STREAM-INF:.*/gm, `$&,SUBTITLES="${SUBTITLE_GROUP}"`)
      .replace(/^#EXT-X-/m, `${lines}$&`);
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
    const page = await this.#page(track, signal);
    const own = await this.#segment(index, signal);
    const before: Uint8Array[] = [];
    for (let past = index - SEGMENTS_BEFORE; past < index; past++) {
      // The first segment of a window has no predecessor.
      const kept = await this.#segment(past, signal).catch(() => undefined);
      signal.throwIfAborted();
      // After a jump of the clock, what was shown before it is gone.
      const isNear =
        kept && Math.abs(deltaTicks(own.firstDts, kept.lastDts)) < MARGIN_SECONDS * TICKS_PER_SECOND;
      if (isNear) before.push(kept.packets.get(page.pid) ?? new Uint8Array(0));
    }
    return encodeUtf8(segmentText(own, concatBytes(before), page));
  }

  #master(pages: readonly ListedPage[], { urls: { manifest: url } }: ManifestPlace): string {
    const subtitles = pages.map(({ language, isHearingImpaired }, number) => ({
      ...{ number, language, isForced: false },
      title: isHearingImpaired ? "Hearing impaired" : undefined,
    }));
    const bitsPerSecond = 8 * (this.bytesPerSecond ?? DEFAULT_BYTES_PER_SECOND);
    const variant = { uri: `${url}?rendition=media`, bitsPerSecond, subtitleGroup: SUBTITLE_GROUP };
    return writeMasterManifest([variant], subtitleRenditions(subtitles, url));
  }

  async #page(track: number, signal: AbortSignal): Promise<ListedPage> {
    const page = (await this.#listed(signal))[track];
    if (page) return page;
    throw new SluiceError("no_such_segment", `the stream has no subtitles ${track}`);
  }

  /** The subtitle pages in the tables before the newest random access point. */
  async #listed(signal: AbortSignal): Promise<readonly ListedPage[]> {
    this.#pages ??= this.#readPages(signal);
    try {
      return await this.#pages;
    } catch (error) {
      this.#pages = undefined;
      throw error;
    }
  }

  async #readPages(signal: AbortSignal): Promise<readonly ListedPage[]> {
    const head = await this.#original.live?.cursor(0).next(signal);
    return (head ? streamsIn(head) : []).flatMap(({ pid, pages = [] }) =>
      pages.map((page) => ({ ...page, pid })),
    );
  }

  async #segment(index: number, signal: AbortSignal): Promise<KeptSegment> {
    const known = this.#kept.get(index);
    if (known) return known;
    const bytes = await this.#original.make("ts", index, 0, signal);
    const pids = new Set((await this.#listed(signal)).map(({ pid }) => pid));
    const packets = new Map([...pids].map((pid) => [pid, packetsOf(bytes, pid)] as const));
    const kept = { packets, ...pictureTimes(bytes) };
    this.#kept.set(index, kept);
    if (this.#kept.size > KEPT_SEGMENTS) this.#kept.delete(this.#kept.keys().next().value!);
    return kept;
  }
}

/**
 * Writes the cues of a segment. A cue that continues through the end of the segment ends there, and continues in the next one, because
 * a live segment must not wait for what follows.
 */
function segmentText(
  { packets, firstDts, lastDts }: KeptSegment,
  before: Uint8Array,
  page: ListedPage,
): string {
  const own = packets.get(page.pid) ?? new Uint8Array(0);
  const { states } = decodeTeletext(concatBytes([before, own]), page, firstDts);
  const endSeconds = deltaTicks(lastDts, firstDts) / TICKS_PER_SECOND;
  const cues = teletextCues(states, Number.POSITIVE_INFINITY)
    .filter((cue) => cue.startSeconds < endSeconds)
    .map((cue) => ({
      ...cue,
      // A late page begins before the segment that carries it.
      startSeconds:
        (cue.mark >= before.length ? cue.startSeconds : Math.max(0, cue.startSeconds)) + MARGIN_SECONDS,
      endSeconds: Math.min(cue.endSeconds, endSeconds) + MARGIN_SECONDS,
    }))
    .filter((cue) => cue.endSeconds > cue.startSeconds);
  return writeWebvtt(cues, firstDts, MARGIN_SECONDS);
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
