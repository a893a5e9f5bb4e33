import { SluiceError } from "../../base/errors.ts";
import { languageCode, languageTag } from "../../media/language.ts";
import { type ManifestRendition as WrittenRendition, writeMasterManifest } from "../../media/manifest.ts";
import type { ManifestRendition, SegmentName } from "../engine.ts";
import type { SegmentBytes } from "../segment-cache.ts";
import type {
  LivePosition,
  ManifestPlace,
  SegmentSource,
  SourceWish,
  VariantFacts,
} from "../segment-source.ts";
import { segmentNumber } from "../session-segments.ts";
import type { HlsFeed } from "./hls-feed.ts";
import type { HlsProgramme, HlsStream, HlsTrack } from "./hls-programme.ts";
import { defaultRendition } from "./hls-variant.ts";
import { HlsWhole } from "./hls-whole.ts";

/** HLS of another server as this player wants it. Rejects with `SluiceError` where it is none that can be passed on. */
export async function openHls(stream: HlsStream, wish: SourceWish): Promise<SegmentSource> {
  const programme = await stream.programme(wish);
  if (wish.output === "hls") return new HlsSource(programme, wish.audioLanguage);
  const renditions = programme.audio.map(({ rendition }) => rendition);
  const heard = defaultRendition(renditions, wish.audioLanguage);
  const track = programme.audio.find(({ rendition }) => rendition === heard);
  if (!track?.open) return new HlsSource(programme, wish.audioLanguage);
  return new HlsWhole(
    programme,
    await track.open(),
    programme.audio.indexOf(track),
    track.rendition.language,
  );
}

/**
 * HLS of another server under our own addresses: the same segments with the same numbers, fetched once for all who play
 * it. Sound and subtitles that come in playlists of their own stay so, under a master manifest of ours.
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
    throw new SluiceError("no_such_segment", `the segments of this stream are no .${kind}`);
  }

  async make(
    kind: SegmentName["kind"],
    index: number,
    track: number,
    signal: AbortSignal,
  ): Promise<SegmentBytes> {
    const { parts } = this.#programme;
    const feed = await this.#feed(kind, track);
    const segment = feed.segment(index);
    if (kind === "mp4") return parts.map(segment, feed.place, signal);
    if (kind === "vtt") return parts.text(segment, feed.place, signal);
    return parts.segment(segment, feed.container, feed.place, signal, feed.startSeconds(index));
  }

  livePosition(): LivePosition | undefined {
    return this.#programme.main.livePosition();
  }

  async #feed(kind: SegmentName["kind"], track: number): Promise<HlsFeed> {
    const { audio, subtitles, main } = this.#programme;
    if (kind === "vtt") return feedOf(subtitles, track);
    return track === 0 ? main : feedOf(audio, track - 1);
  }

  #master({ base, session }: ManifestPlace): string {
    const { variant, audio, subtitles } = this.#programme;
    const url = `${base}/ace/m/${session.infohash}/${session.key}.m3u8`;
    const heard = defaultRendition(
      audio.map(({ rendition }) => rendition),
      this.#language,
    );
    const names = new Set<string>();
    const written = (kind: "audio" | "subtitles") => (track: HlsTrack, index: number) => {
      const { name, language, isDefault, isForced } = track.rendition;
      const query = kind === "audio" ? `audio=${index + 1}` : `subtitles=${index}`;
      const told: WrittenRendition = {
        kind,
        group: kind,
        name: distinct(names, `${kind} `, name || language || String(index + 1)),
        uri: track.open && `${url}?${query}`,
        isDefault: kind === "audio" ? track.rendition === heard : isDefault,
        isForced,
        ...(language && { language: plainLanguage(language) }),
      };
      return told;
    };
    const sounds = audio.map(written("audio"));
    return writeMasterManifest(
      [
        {
          uri: `${url}?rendition=media`,
          bitsPerSecond: variant!.bitsPerSecond,
          codecs: variant!.codecs,
          ...(variant!.width && variant!.height && { width: variant!.width, height: variant!.height }),
          ...(sounds.length > 0 && { audioGroup: "audio" }),
          ...(subtitles.length > 0 && { subtitleGroup: "subtitles" }),
        },
      ],
      // Players that look at nothing else take the first.
      [
        ...sounds.sort((a, b) => Number(b.isDefault) - Number(a.isDefault)),
        ...subtitles.map(written("subtitles")),
      ],
    );
  }
}

/** A manifest of ours for a feed, read again where it is due. */
async function manifestOf(
  feed: HlsFeed,
  { base, session }: ManifestPlace,
  ending: string,
  signal: AbortSignal,
): Promise<string> {
  await feed.refresh(signal);
  // The initialisation has the track of its segments.
  const track = /^a\d+\./.exec(ending)?.[0] ?? "";
  const uriOf = (number: number, last: string) => {
    const own = last === "mp4" ? `${track}mp4` : last;
    return `${base}/ace/c/${session.infohash}/${segmentNumber(session.ordinal, number)}.${own}`;
  };
  return feed.manifest(uriOf, ending);
}

async function feedOf(tracks: readonly HlsTrack[], index: number): Promise<HlsFeed> {
  const open = tracks[index]?.open;
  if (open) return open();
  throw new SluiceError("no_such_segment", "this stream has no such track");
}

/** Names within a group must differ (RFC 8216 4.3.4.1.1). */
function distinct(names: Set<string>, group: string, name: string): string {
  let own = name;
  for (let again = 2; names.has(group + own); again++) own = `${name} ${again}`;
  names.add(group + own);
  return own;
}

/** Whatever the manifest says, a tag of letters; regions and scripts stay. */
function plainLanguage(language: string): string {
  const code = languageCode(language);
  return /^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*$/.test(language) ? language : languageTag(code);
}
