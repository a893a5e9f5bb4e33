import { isoTime } from "../base/iso-time.ts";

/** One media segment of a manifest. */
export interface ManifestSegment {
  readonly durationSeconds: number;
  readonly uri: string;
  /** The clocks jump before this segment. */
  readonly isDiscontinuous?: boolean;
  /** The initialisation segment of fragmented MP4 that holds from here on, where it is not one for all. */
  readonly mapUri?: string;
  /** When its first picture was made, in UNIX milliseconds. */
  readonly programDateTimeMs?: number;
  /** What it was made of while it came; told of the newest segments only. */
  readonly parts?: readonly ManifestPart[];
  /** It is missing: its URL must not be asked for. */
  readonly isGap?: boolean;
}

/** A part of a segment that is told before the whole of it is there (RFC 8216bis 4.4.4.9). */
export interface ManifestPart {
  readonly uri: string;
  readonly durationSeconds: number;
  /** A decoder can begin here. */
  readonly isIndependent: boolean;
}

/** What a media manifest says (RFC 8216 4.3.3). */
export interface MediaManifest {
  readonly segments: readonly ManifestSegment[];
  /** The initialisation segment of fragmented MP4. */
  readonly mapUri?: string;
  /** `vod`: whole and final. `event`: grows at its end. `live`: a window that slides. */
  readonly kind: "vod" | "event" | "live";
  /** The number of the first segment (default 0). */
  readonly firstNumber?: number;
  /** How many discontinuities have left the window (live only; default 0). */
  readonly firstDiscontinuity?: number;
  /** An event or a broadcast that is over. */
  readonly isEnded?: boolean;
  /** At least so many seconds: it must not change while a live manifest is read again. */
  readonly targetSeconds?: number;
  /** For a live manifest whose reload is held until there is something new, and that has parts (RFC 8216bis 4.4.3.7,
   * 4.4.3.8): no part is longer than the target; players stay at least the hold-back behind the end, which is three targets or more. */
  readonly lowLatency?: { readonly partTargetSeconds: number; readonly holdBackSeconds: number };
  /** The parts of the segment that is not whole yet, and how that segment begins. */
  readonly openParts?: readonly ManifestPart[];
  readonly openStart?: Pick<ManifestSegment, "isDiscontinuous" | "programDateTimeMs">;
  /** The part to come next: who asks for it is answered when it is there (RFC 8216bis 4.4.5.3). */
  readonly preloadHintUri?: string;
  /** Its asker has read an earlier one, and does without the old segments (`_HLS_skip`, RFC 8216bis 6.2.5.1); low latency
   * only. */
  readonly isDelta?: boolean;
}

/** Another way to see or hear the same (RFC 8216 4.3.4.1). */
export interface ManifestRendition {
  readonly kind: "audio" | "subtitles";
  readonly group: string;
  readonly name: string;
  /** Undefined for audio that is in the variant itself. */
  readonly uri: string | undefined;
  /** RFC 5646, such as `en`. */
  readonly language?: string;
  readonly isDefault: boolean;
  /** For those who cannot hear or see; never chosen by itself. */
  readonly isForced?: boolean;
}

/** One variant of a master manifest (RFC 8216 4.3.4.2). */
export interface ManifestVariant {
  readonly uri: string;
  readonly bitsPerSecond: number;
  /** RFC 6381 strings; left out where one of them is not known. */
  readonly codecs?: readonly (string | undefined)[];
  readonly width?: number;
  readonly height?: number;
  readonly audioGroup?: string;
  readonly subtitleGroup?: string;
}

/**
 * Writes a media manifest. Durations keep six digits, so that their sum does not drift; the target is the longest,
 * rounded (RFC 8216 4.3.3.1). It does not promise independent segments: an open GOP breaks that promise.
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

/** Who has read a manifest that ended so many target durations ago, or later, needs nothing older (RFC 8216bis 4.4.3.8: six
 * at least). */
const SKIP_TARGETS = 6;

/** RFC 8216bis 8. What players ignore where they do not know it needs none, such as parts. */
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

/** How many segments end further from the end of the manifest than its readers have to be told again. */
function skippable({ segments, openParts = [], lowLatency }: MediaManifest, targetSeconds: number): number {
  if (!lowLatency) return 0;
  let toldSeconds = 0;
  for (const { durationSeconds } of openParts) toldSeconds += durationSeconds;
  let told = segments.length;
  while (told > 0 && toldSeconds < SKIP_TARGETS * targetSeconds)
    toldSeconds += segments[--told]!.durationSeconds;
  return told;
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

/** The segment that is being made: it has no URL of its own yet. */
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

/** Writes a master manifest. */
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
  return attributes({
    TYPE: kind.toUpperCase(),
    "GROUP-ID": quoted(rendition.group),
    NAME: quoted(rendition.name),
    LANGUAGE: language === undefined ? undefined : quoted(language),
    DEFAULT: rendition.isDefault ? "YES" : "NO",
    // Subtitles that nobody asked for stay off; a player may choose audio by its user's language.
    AUTOSELECT: rendition.isDefault || kind === "audio" ? "YES" : "NO",
    FORCED: kind === "subtitles" && rendition.isForced ? "YES" : undefined,
    URI: uri === undefined ? undefined : quoted(uri),
  });
}

function variantAttributes(variant: ManifestVariant): string {
  const { codecs, width, height, audioGroup, subtitleGroup } = variant;
  const isKnown = codecs !== undefined && codecs.length > 0 && codecs.every((codec) => codec !== undefined);
  return attributes({
    BANDWIDTH: String(Math.max(1, Math.ceil(variant.bitsPerSecond))),
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

/** A quoted string knows no escapes: what cannot be in it is replaced (RFC 8216 4.2). */
function quoted(text: string): string {
  return `"${line(text).replaceAll('"', "\u201d")}"`;
}

/** One line, whatever the text: names of tracks come from files. */
function line(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replace(/[\u0000-\u001f\u007f\u0085\u2028\u2029]+/g, " ").trim();
}
