import { SluiceError } from "../base/errors.ts";
import { languageCode, languageTag } from "../media/language.ts";
import { type ManifestRendition as WrittenRendition, writeMasterManifest } from "../media/manifest.ts";
import type {
  LivePosition,
  ManifestPlace,
  ManifestRendition,
  SegmentBytes,
  SegmentName,
  SegmentSource,
  SourceOptions,
  VariantFacts,
} from "../transfer/segment-source.ts";
import type { HlsFeed } from "./hls-feed.ts";
import { InterleavedHls } from "./hls-interleaved.ts";
import type { HlsProgramme, HlsStream, HlsTrack } from "./hls-programme.ts";
import { defaultRendition } from "./hls-variant.ts";

/**
 * Opens HLS of another server for a player: as segments, or as one transport stream. Rejects with `SluiceError` if the
 * stream cannot be relayed.
 */
export async function openHls(stream: HlsStream, options: SourceOptions): Promise<SegmentSource> {
  const programme = await stream.programme(options);
  if (options.output === "hls") return new HlsSource(programme, options.audioLanguage);
  const renditions = programme.audio.map(({ rendition }) => rendition);
  const selected = defaultRendition(renditions, options.audioLanguage);
  const track = programme.audio.find(({ rendition }) => rendition === selected);
  if (!track?.open) return new HlsSource(programme, options.audioLanguage);
  return new InterleavedHls(
    programme,
    await track.open(),
    programme.audio.indexOf(track),
    track.rendition.language,
  );
}

/**
 * HLS of another server, relayed with the same segments and sequence numbers. Each segment is fetched once for all
 * sessions. Separate audio and subtitle playlists stay separate, under a master manifest of this engine.
 */
class HlsSource implements SegmentSource {
  readonly #programme: HlsProgramme;
  readonly #language: string | undefined;

  constructor(programme: HlsProgramme, language: string | undefined) {
    this.#programme = programme;
    this.#language = language;
  }

  get container(): "ts" | "fmp4" {
    return this.#programme.main.container;
  }

  get name(): string {
    return this.#programme.name();
  }

  get isLive(): boolean {
    return this.#programme.main.isLive;
  }

  get variants(): readonly VariantFacts[] {
    return this.#programme.variants;
  }

  get variantIndex(): number {
    return this.#programme.variantIndex;
  }

  async manifest(place: ManifestPlace, rendition: ManifestRendition, signal: AbortSignal): Promise<string> {
    const { audio, subtitles, main } = this.#programme;
    const isSplit = subtitles.length > 0 || audio.some(({ open }) => open !== undefined);
    if (rendition === "main" && isSplit) return this.#master(place);
    if (rendition === "main" || rendition === "media")
      return manifestOf(main, place, main.container === "ts" ? "ts" : "m4s", signal);
    if ("subtitles" in rendition) {
      const feed = await feedOf(subtitles, rendition.subtitles);
      return manifestOf(feed, place, `s${rendition.subtitles}.vtt`, signal);
    }
    const feed = await feedOf(audio, rendition.audio - 1);
    const ending = feed.container === "ts" ? "ts" : "m4s";
    return manifestOf(feed, place, `a${rendition.audio}.${ending}`, signal);
  }

  async first(): Promise<number> {
    return this.#programme.main.first();
  }

  reach(index: number, signal: AbortSignal): Promise<number | undefined> {
    return this.#programme.main.reach(index, signal);
  }

  async find(kind: SegmentName["kind"], number: number, signal: AbortSignal, track = 0): Promise<number> {
    const feed = await this.#feed(kind, track);
    const index = await feed.find(number, signal);
    if (kind === "vtt" || (kind === "ts") === (feed.container === "ts")) return index;
    throw new SluiceError("no_such_segment", `this stream has no .${kind} segments`);
  }

  async make(
    kind: SegmentName["kind"],
    index: number,
    track: number,
    signal: AbortSignal,
  ): Promise<SegmentBytes> {
    const { fetcher } = this.#programme;
    const feed = await this.#feed(kind, track);
    const segment = feed.segment(index);
    if (kind === "mp4") return fetcher.map(segment, feed.location, signal);
    if (kind === "vtt") return fetcher.text(segment, feed.location, signal);
    return fetcher.segment(segment, feed.container, feed.location, signal, feed.startSeconds(index));
  }

  livePosition(): LivePosition | undefined {
    return this.#programme.main.livePosition();
  }

  async #feed(kind: SegmentName["kind"], track: number): Promise<HlsFeed> {
    const { audio, subtitles, main } = this.#programme;
    if (kind === "vtt") return feedOf(subtitles, track);
    return track === 0 ? main : feedOf(audio, track - 1);
  }

  #master({ urls: { manifest: url } }: ManifestPlace): string {
    const { variant, audio, subtitles } = this.#programme;
    const selected = defaultRendition(
      audio.map(({ rendition }) => rendition),
      this.#language,
    );
    const names = new Set<string>();
    const written = (kind: "audio" | "subtitles") => (track: HlsTrack, index: number) => {
      const { name, language, isDefault, isForced } = track.rendition;
      const query = kind === "audio" ? `audio=${index + 1}` : `subtitles=${index}`;
      const entry: WrittenRendition = {
        kind,
        group: kind,
        name: distinct(names, `${kind} `, name || language || String(index + 1)),
        uri: track.open && `${url}?${query}`,
        isDefault: kind === "audio" ? track.rendition === selected : isDefault,
        isForced,
        ...(language && { language: plainLanguage(language) }),
      };
      return entry;
    };
    const audioRenditions = audio.map(written("audio"));
    return writeMasterManifest(
      [
        {
          uri: `${url}?rendition=media`,
          bitsPerSecond: variant!.bitsPerSecond,
          codecs: variant!.codecs,
          ...(variant!.width && variant!.height && { width: variant!.width, height: variant!.height }),
          ...(audioRenditions.length > 0 && { audioGroup: "audio" }),
          ...(subtitles.length > 0 && { subtitleGroup: "subtitles" }),
        },
      ],
      // Some players ignore DEFAULT and take the first.
      [
        ...audioRenditions.sort((a, b) => Number(b.isDefault) - Number(a.isDefault)),
        ...subtitles.map(written("subtitles")),
      ],
    );
  }
}

/** Writes the relayed manifest of a feed, reloaded if due. */
async function manifestOf(
  feed: HlsFeed,
  { urls, cuts }: ManifestPlace,
  ending: string,
  signal: AbortSignal,
): Promise<string> {
  await feed.refresh(signal);
  // The initialization section has the track prefix of its segments.
  const track = /^a\d+\./.exec(ending)?.[0] ?? "";
  const uriOf = (number: number, last: string) => {
    const own = last === "mp4" ? `${track}mp4` : last;
    return urls.segment(number, own);
  };
  return feed.manifest(uriOf, ending, cuts);
}

async function feedOf(tracks: readonly HlsTrack[], index: number): Promise<HlsFeed> {
  const open = tracks[index]?.open;
  if (open) return open();
  throw new SluiceError("no_such_segment", "this stream has no such track");
}

/** Makes a name unique within its group (RFC 8216 4.3.4.1.1). */
function distinct(names: Set<string>, group: string, name: string): string {
  let own = name;
  for (let again = 2; names.has(group + own); again++) own = `${name} ${again}`;
  names.add(group + own);
  return own;
}

/** Returns `language` if it is a well-formed tag, else the tag of its language code. */
function plainLanguage(language: string): string {
  const code = languageCode(language);
  return /^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*$/.test(language) ? language : languageTag(code);
}
