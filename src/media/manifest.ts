/** One media segment of a manifest. */
export interface ManifestSegment {
  readonly durationSeconds: number;
  readonly uri: string;
  /** The clocks jump before this segment. */
  readonly isDiscontinuous?: boolean;
  /** The initialisation segment of fragmented MP4 that holds from here on, where it is not one for all. */
  readonly mapUri?: string;
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
  const hasMap =
    manifest.mapUri !== undefined || manifest.segments.some(({ mapUri }) => mapUri !== undefined);
  const lines = [
    "#EXTM3U",
    `#EXT-X-VERSION:${hasMap ? 6 : 3}`,
    `#EXT-X-TARGETDURATION:${Math.max(1, Math.ceil(longest - 1e-6))}`,
    `#EXT-X-MEDIA-SEQUENCE:${manifest.firstNumber ?? 0}`,
  ];
  if (manifest.firstDiscontinuity) lines.push(`#EXT-X-DISCONTINUITY-SEQUENCE:${manifest.firstDiscontinuity}`);
  if (manifest.kind !== "live") lines.push(`#EXT-X-PLAYLIST-TYPE:${manifest.kind.toUpperCase()}`);
  let map = manifest.mapUri;
  if (map !== undefined) lines.push(`#EXT-X-MAP:${attributes({ URI: quoted(map) })}`);
  for (const { durationSeconds, uri, isDiscontinuous, mapUri } of manifest.segments) {
    if (isDiscontinuous) lines.push("#EXT-X-DISCONTINUITY");
    if (mapUri !== undefined && mapUri !== map)
      lines.push(`#EXT-X-MAP:${attributes({ URI: quoted(mapUri) })}`);
    map = mapUri ?? map;
    lines.push(`#EXTINF:${durationSeconds.toFixed(6)},`, line(uri));
  }
  if (manifest.kind === "vod" || manifest.isEnded) lines.push("#EXT-X-ENDLIST");
  return `${lines.join("\n")}\n`;
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
