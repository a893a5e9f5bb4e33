import type { AbortSignalLike } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { trackLanguage } from "../media/language.ts";
import type { MatroskaTrack } from "../media/matroska-head.ts";
import { assToCueText, subripToCueText, type TextCue, writeWebvtt } from "../media/webvtt.ts";
import type { BlockCache } from "./block-cache.ts";
import type { ClusterFinder } from "./cluster-finder.ts";
import { type WalkedBlock, walkBlocks } from "./cluster-walk.ts";
import type { MediaTrack } from "./contract.ts";
import { inflateZlib } from "./inflate.ts";
import type { MatroskaIndex } from "./matroska-index.ts";
import type { SegmentBounds } from "./packet-reader.ts";
import { CUES_LIMIT, SUBTITLE_OFFSET_TICKS, type SubtitleSource, TEXT_LIMIT_BYTES } from "./subtitles.ts";

/** The text codecs we can show (RFC 9559 does not list them; the Matroska codec registry does), and their short names. */
const CODECS: Readonly<Record<string, { name: string; toCueText: (text: string) => string }>> = {
  "S_TEXT/UTF8": { name: "subrip", toCueText: subripToCueText },
  "S_TEXT/ASCII": { name: "subrip", toCueText: subripToCueText },
  "S_TEXT/ASS": { name: "ass", toCueText: assToCueText },
  "S_TEXT/SSA": { name: "ass", toCueText: assToCueText },
  S_ASS: { name: "ass", toCueText: assToCueText },
  S_SSA: { name: "ass", toCueText: assToCueText },
  "S_TEXT/WEBVTT": { name: "webvtt", toCueText: keepCueText },
  "D_WEBVTT/SUBTITLES": {
    name: "webvtt",
    toCueText: (text) => keepCueText(text.split("\n").slice(2).join("\n")),
  },
};

/** A line whose end is not told stays so long, or until the next one. */
const USUAL_SECONDS = 5;
/** Clusters are interleaved: what belongs to a time lies at most so far behind it. */
const BEHIND_BYTES = 256 * 1024;

/** The text subtitles of a Matroska file, read from the clusters of the wanted time. */
export class MatroskaSubtitles implements SubtitleSource {
  readonly tracks: readonly MediaTrack[];
  readonly #cache: BlockCache;
  readonly #index: MatroskaIndex;
  readonly #finder: ClusterFinder;
  readonly #own: readonly MatroskaTrack[];

  constructor(cache: BlockCache, index: MatroskaIndex, finder: ClusterFinder) {
    this.#cache = cache;
    this.#index = index;
    this.#finder = finder;
    this.#own = index.tracks.filter(
      ({ kind, codecId, packing }) => kind === "subtitle" && codecId in CODECS && packing !== "other",
    );
    this.tracks = this.#own.map(({ codecId, language, name, isDefault }) => ({
      kind: "subtitle",
      codec: CODECS[codecId]!.name,
      codecString: "wvtt",
      language: trackLanguage(language),
      title: name,
      isDefault,
    }));
  }

  async webvtt(track: number, bounds: SegmentBounds, signal?: AbortSignalLike): Promise<string> {
    const own = this.#own[track];
    if (!own) throw new SluiceError("no_such_segment", `there is no subtitle track ${track}`);
    const { firstCluster, dataEnd, tickSeconds } = this.#index;
    const [from, to] = [bounds.startSeconds, bounds.endSeconds];
    const start = from === Number.NEGATIVE_INFINITY ? firstCluster : await this.#finder.before(from, signal);
    const end = to === Number.POSITIVE_INFINITY ? dataEnd : await this.#finder.before(to, signal);
    const cues: TextCue[] = [];
    const visit = async (block: WalkedBlock) => {
      const seconds = block.time * tickSeconds;
      if (block.head.track !== own.number || seconds < from || seconds >= to) return true;
      const body = await block.body();
      const text = await textOf(own, body?.frames[0]);
      const length = body?.duration === undefined ? USUAL_SECONDS : body.duration * tickSeconds;
      if (text !== "") cues.push({ startSeconds: seconds, endSeconds: seconds + length, text });
      return cues.length < CUES_LIMIT;
    };
    const walk = { start, bulkEnd: start, end: Math.min(dataEnd, end + BEHIND_BYTES) };
    await walkBlocks(this.#cache, walk, visit, signal);
    return writeWebvtt(cues, SUBTITLE_OFFSET_TICKS);
  }
}

async function textOf(track: MatroskaTrack, frame: Uint8Array | undefined): Promise<string> {
  if (!frame || frame.length > TEXT_LIMIT_BYTES) return "";
  const isZlib = track.packing === "zlib";
  const bytes = isZlib ? await inflateZlib(frame, TEXT_LIMIT_BYTES) : frame;
  return CODECS[track.codecId]!.toCueText(decodeUtf8(bytes));
}

/** Already cue text: an arrow or an empty line would break out of it. */
function keepCueText(text: string): string {
  return text
    .replaceAll("-->", "--&gt;")
    .split(/\r\n|\r|\n/)
    .filter((line) => line.trim() !== "")
    .join("\n");
}
