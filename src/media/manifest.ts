import { isoTime } from "../base/iso-time.ts";

/** A media segment of a manifest. */
export interface ManifestSegment {
  readonly durationSeconds: number;
  readonly uri: string;
  /** Writes `#EXT-X-DISCONTINUITY` before the segment. */
  readonly isDiscontinuous?: boolean;
  /** The initialisation segment of fragmented MP4 from this segment on, if it differs from the previous one. */
  readonly mapUri?: string;
  /** When its first frame was recorded, in UNIX milliseconds. */
  readonly programDateTimeMs?: number;
  /** Its parts; listed only for the newest segments. */
  readonly parts?: readonly ManifestPart[];
  /** True if it is missing and its URL must not be requested (`#EXT-X-GAP`). */
  readonly isGap?: boolean;
}

/** A partial segment, listed before the whole segment exists (RFC 8216bis 4.4.4.9). */
export interface ManifestPart {
  readonly uri: string;
  readonly durationSeconds: number;
  /** True if decoding can start here. */
  readonly isIndependent: boolean;
}

/** The content of a media manifest (RFC 8216 4.3.3). */
export interface MediaManifest {
  readonly segments: readonly ManifestSegment[];
  /** The initialisation segment of fragmented MP4. */
  readonly mapUri?: string;
  /** `vod`: complete and final. `event`: segments are appended. `live`: a sliding window. */
  readonly kind: "vod" | "event" | "live";
  /** Media sequence number of the first segment (default 0). */
  readonly firstNumber?: number;
  /** Number of discontinuities before the window (live only; default 0). */
  readonly firstDiscontinuity?: number;
  /** True if an event or live stream has ended. */
  readonly isEnded?: boolean;
  /** Minimum of the target duration, which must not change between reloads of a live manifest. */
  readonly targetSeconds?: number;
  /**
   * For a low-latency manifest with parts and blocking reload (RFC 8216bis 4.4.3.7, 4.4.3.8): no part is longer than the part target;
   * players stay at least the hold-back (three part targets or more) behind the end.
   */
  readonly lowLatency?: { readonly partTargetSeconds: number; readonly holdBackSeconds: number };
  /** The parts of the incomplete last segment, and the tags before them. */
  readonly openParts?: readonly ManifestPart[];
  readonly openStart?: Pick<ManifestSegment, "isDiscontinuous" | "programDateTimeMs">;
  /** URI of the next part; a request for it is answered when the part exists (RFC 8216bis 4.4.5.3). */
  readonly preloadHintUri?: string;
  /** True to write a delta update, which omits old segments (`_HLS_skip`, RFC 8216bis 6.2.5.1); low latency only. */
  readonly isDelta?: boolean;
}

/** A rendition of a master manifest (RFC 8216 4.3.4.1). */
export interface ManifestRendition {
  readonly kind: "audio" | "subtitles";
  readonly group: string;
  readonly name: string;
  /** Undefined for audio that the variant itself carries. */
  readonly uri: string | undefined;
  /** RFC 5646, such as `en`. */
  readonly language?: string;
  readonly isDefault: boolean;
  /** Audio: writes `CHANNELS`. */
  readonly channels?: number;
  /** Writes `FORCED=YES` (subtitles only): essential text, such as translations of signs. */
  readonly isForced?: boolean;
}

/** A variant of a master manifest (RFC 8216 4.3.4.2). */
interface ManifestVariant {
  readonly uri: string;
  /** Peak. */
  readonly bitsPerSecond: number;
  readonly averageBitsPerSecond?: number | undefined;
  /** RFC 6381 strings; `CODECS` is omitted if one of them is undefined. */
  readonly codecs?: readonly (string | undefined)[];
  readonly width?: number;
  readonly height?: number;
  readonly audioGroup?: string;
  readonly subtitleGroup?: string;
}

/**
 * Writes a media manifest. Durations have six decimals, so that their sum does not drift; the target duration is the longest duration,
 * rounded up (RFC 8216 4.3.3.1). It does not declare independent segments, because segments can begin with an open GOP.
 */
export function writeMediaManifest(manifest: MediaManifest): string {
  let longest = manifest.targetSeconds ?? 0;
  for (const segment of manifest.segments) longest = Math.max(longest, segment.durationSeconds);
  const targetSeconds = Math.max(1, Math.ceil(longest - 1e-6));
  const skippedSegments = manifest.isDelta ? skippable(manifest, targetSeconds) : 0;
  const lines = [
    "#EXTM3U",
    `#EXT-X-VERSION:${versionOf(manifest, skippedSegments)}`,
    `#EXT-X-TARGETDURATION:${targetSeconds}`,
    ...lowLatencyLines(manifest, targetSeconds),
    `#EXT-X-MEDIA-SEQUENCE:${manifest.firstNumber ?? 0}`,
  ];
  if (manifest.firstDiscontinuity) lines.push(`#EXT-X-DISCONTINUITY-SEQUENCE:${manifest.firstDiscontinuity}`);
  if (manifest.kind !== "live") lines.push(`#EXT-X-PLAYLIST-TYPE:${manifest.kind.toUpperCase()}`);
  let map = manifest.mapUri;
  if (map !== undefined) lines.push(`#EXT-X-MAP:${attributes({ URI: quoted(map) })}`);
  if (skippedSegments > 0) lines.push(`#EXT-X-SKIP:SKIPPED-SEGMENTS=${skippedSegments}`);
  for (const segment of manifest.segments.slice(skippedSegments)) {
    const { durationSeconds, uri, mapUri, isGap } = segment;
    if (segment.isDiscontinuous) lines.push("#EXT-X-DISCONTINUITY");
    if (mapUri !== undefined && mapUri !== map)
      lines.push(`#EXT-X-MAP:${attributes({ URI: quoted(mapUri) })}`);
    map = mapUri ?? map;
    lines.push(...timeLines(segment));
    if (isGap) lines.push("#EXT-X-GAP");
    else lines.push(...partLines(segment.parts));
    lines.push(`#EXTINF:${durationSeconds.toFixed(6)},`, line(uri));
  }
  lines.push(...openLines(manifest));
  if (manifest.kind === "vod" || manifest.isEnded) lines.push("#EXT-X-ENDLIST");
  return `${lines.join("\n")}\n`;
}

/** `CAN-SKIP-UNTIL` in target durations: a delta update lists the segments newer than that (RFC 8216bis 4.4.3.8: at least six). */
const SKIP_TARGETS = 6;

/** The minimum protocol version (RFC 8216bis 8). Tags that old players can ignore, such as parts, do not count. */
function versionOf({ segments, mapUri, lowLatency }: MediaManifest, skippedSegments: number): number {
  if (skippedSegments > 0) return 9;
  if (segments.some(({ isGap }) => isGap)) return 8;
  const hasMap = mapUri !== undefined || segments.some((segment) => segment.mapUri !== undefined);
  return hasMap || lowLatency ? 6 : 3;
}

function lowLatencyLines({ lowLatency }: MediaManifest, targetSeconds: number): string[] {
  if (!lowLatency) return [];
  const { partTargetSeconds, holdBackSeconds } = lowLatency;
  const control = attributes({
    "CAN-BLOCK-RELOAD": "YES",
    "PART-HOLD-BACK": holdBackSeconds.toFixed(3),
    "CAN-SKIP-UNTIL": (SKIP_TARGETS * targetSeconds).toFixed(1),
  });
  return [`#EXT-X-SERVER-CONTROL:${control}`, `#EXT-X-PART-INF:PART-TARGET=${partTargetSeconds.toFixed(3)}`];
}

/** The number of segments that a delta update omits. */
function skippable({ segments, openParts = [], lowLatency }: MediaManifest, targetSeconds: number): number {
  if (!lowLatency) return 0;
  let listedSeconds = 0;
  for (const { durationSeconds } of openParts) listedSeconds += durationSeconds;
  let skipped = segments.length;
  while (skipped > 0 && listedSeconds < SKIP_TARGETS * targetSeconds)
    listedSeconds += segments[--skipped]!.durationSeconds;
  return skipped;
}

function timeLines({ programDateTimeMs }: Pick<ManifestSegment, "programDateTimeMs">): string[] {
  if (programDateTimeMs === undefined) return [];
  return [`#EXT-X-PROGRAM-DATE-TIME:${isoTime(programDateTimeMs)}`];
}

function partLines(parts: readonly ManifestPart[] = []): string[] {
  return parts.map(({ uri, durationSeconds, isIndependent }) => {
    const pairs = {
      DURATION: durationSeconds.toFixed(6),
      URI: quoted(uri),
      INDEPENDENT: isIndependent ? "YES" : undefined,
    };
    return `#EXT-X-PART:${attributes(pairs)}`;
  });
}

/** The lines of the incomplete last segment, which has no URL yet. */
function openLines({ openParts = [], openStart = {}, preloadHintUri, isEnded }: MediaManifest): string[] {
  const lines = [];
  if (openParts.length > 0) {
    if (openStart.isDiscontinuous) lines.push("#EXT-X-DISCONTINUITY");
    lines.push(...timeLines(openStart), ...partLines(openParts));
  }
  if (preloadHintUri !== undefined && !isEnded)
    lines.push(`#EXT-X-PRELOAD-HINT:${attributes({ TYPE: "PART", URI: quoted(preloadHintUri) })}`);
  return lines;
}

/** Writes a master manifest (RFC 8216 4.3.4). */
export function writeMasterManifest(
  variants: readonly ManifestVariant[],
  renditions: readonly ManifestRendition[] = [],
): string {
  const lines = ["#EXTM3U", "#EXT-X-VERSION:6"];
  for (const rendition of renditions) lines.push(`#EXT-X-MEDIA:${renditionAttributes(rendition)}`);
  for (const variant of variants)
    lines.push(`#EXT-X-STREAM-INF:${variantAttributes(variant)}`, line(variant.uri));
  return `${lines.join("\n")}\n`;
}

function renditionAttributes(rendition: ManifestRendition): string {
  const { kind, uri, language } = rendition;
  const isForced = kind === "subtitles" && rendition.isForced;
  return attributes({
    TYPE: kind.toUpperCase(),
    "GROUP-ID": quoted(rendition.group),
    NAME: quoted(rendition.name),
    LANGUAGE: language === undefined ? undefined : quoted(language),
    DEFAULT: rendition.isDefault ? "YES" : "NO",
    // Players may choose audio and forced subtitles by language, but must not turn on other subtitles by themselves.
    AUTOSELECT: rendition.isDefault || kind === "audio" || isForced ? "YES" : "NO",
    CHANNELS: rendition.channels === undefined ? undefined : quoted(String(rendition.channels)),
    FORCED: isForced ? "YES" : undefined,
    URI: uri === undefined ? undefined : quoted(uri),
  });
}

function variantAttributes(variant: ManifestVariant): string {
  const { codecs, width, height, audioGroup, subtitleGroup } = variant;
  const isKnown = codecs !== undefined && codecs.length > 0 && codecs.every((codec) => codec !== undefined);
  return attributes({
    BANDWIDTH: String(Math.max(1, Math.ceil(variant.bitsPerSecond))),
    "AVERAGE-BANDWIDTH":
      variant.averageBitsPerSecond === undefined
        ? undefined
        : String(Math.ceil(variant.averageBitsPerSecond)),
    CODECS: isKnown ? quoted([...new Set(codecs)].join(",")) : undefined,
    RESOLUTION: width && height ? `${width}x${height}` : undefined,
    AUDIO: audioGroup === undefined ? undefined : quoted(audioGroup),
    SUBTITLES: subtitleGroup === undefined ? undefined : quoted(subtitleGroup),
  });
}

function attributes(pairs: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(pairs)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
}

/** A quoted string (RFC 8216 4.2), which has no escapes: quotes and control characters are replaced. */
function quoted(text: string): string {
  return `"${line(text).replaceAll('"', "\u201d")}"`;
}

/** Replaces control characters, because track names come from files. */
function line(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
  return text.replace(/[\u0000-\u001f\u007f\u0085\u2028\u2029]+/g, " ").trim();
}
