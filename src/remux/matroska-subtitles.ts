import type { AbortSignalLike } from "../base/byte-source.ts";
import { concatBytes } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { trackLanguage } from "../media/language.ts";
import type { MatroskaTrack } from "../media/matroska-head.ts";
import { assToCueText, escapeVttText, subripToCueText, type TextCue } from "../media/webvtt.ts";
import type { BlockCache } from "./block-cache.ts";
import type { ClusterFinder } from "./cluster-finder.ts";
import { type WalkedBlock, walkBlocks } from "./cluster-walk.ts";
import type { MediaTrack } from "./contract.ts";
import type { MatroskaIndex } from "./matroska-index.ts";
import type { SegmentBounds } from "./packet-reader.ts";
import { CUES_LIMIT, type SubtitleSource, TEXT_LIMIT_BYTES } from "./subtitles.ts";

/** Supported text codecs (Matroska codec registry), with their short names. */
const CODECS: Readonly<Record<string, { name: string; toCueText: (text: string) => string }>> = {
  "S_TEXT/UTF8": { name: "subrip", toCueText: subripToCueText },
  "S_TEXT/ASCII": { name: "subrip", toCueText: subripToCueText },
  "S_TEXT/ASS": { name: "ass", toCueText: assToCueText },
  "S_TEXT/SSA": { name: "ass", toCueText: assToCueText },
  S_ASS: { name: "ass", toCueText: assToCueText },
  S_SSA: { name: "ass", toCueText: assToCueText },
  "S_TEXT/WEBVTT": { name: "webvtt", toCueText: escapeVttText },
  "D_WEBVTT/SUBTITLES": {
    name: "webvtt",
    toCueText: (text) => escapeVttText(text.split("\n").slice(2).join("\n")),
  },
};

/** Subtitles that are pictures, with their short names. */
const OPAQUE_CODECS: Readonly<Record<string, string>> = {
  "S_HDMV/PGS": "pgs",
  "S_HDMV/TEXTST": "textst",
  S_VOBSUB: "vobsub",
  S_DVBSUB: "dvb_subtitle",
};

/** Duration of a cue for which the file states none. */
const DEFAULT_CUE_SECONDS = 5;
/** How far after the end of a time range its blocks can be, because clusters are interleaved. */
const INTERLEAVE_BYTES = 256 * 1024;

/** The text subtitles of a Matroska file, read from the clusters of the requested time. */
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
    const opaque = index.tracks.filter(
      ({ kind, codecId }) => kind === "subtitle" && codecId in OPAQUE_CODECS,
    );
    this.tracks = [
      ...this.#own.map((track) => described(track, CODECS[track.codecId]!.name)),
      ...opaque.map((track) => ({ ...described(track, OPAQUE_CODECS[track.codecId]!), isOpaque: true })),
    ];
  }

  async cues(track: number, bounds: SegmentBounds, signal?: AbortSignalLike): Promise<TextCue[]> {
    const own = this.#own[track];
    if (!own) throw new SluiceError("no_such_segment", `the file has no subtitle track ${track}`);
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
      const length = body?.duration === undefined ? DEFAULT_CUE_SECONDS : body.duration * tickSeconds;
      if (text !== "") cues.push({ startSeconds: seconds, endSeconds: seconds + length, text });
      return cues.length < CUES_LIMIT;
    };
    const walk = { start, end: Math.min(dataEnd, end + INTERLEAVE_BYTES) };
    await walkBlocks(this.#cache, walk, visit, signal);
    return cues;
  }
}

function described({ language, name, isDefault, isForced }: MatroskaTrack, codec: string): MediaTrack {
  const track = { codec, language: trackLanguage(language), title: name, isDefault, isForced };
  return { kind: "subtitle", codecString: "wvtt", ...track };
}

async function textOf(track: MatroskaTrack, frame: Uint8Array | undefined): Promise<string> {
  if (!frame || frame.length > TEXT_LIMIT_BYTES) return "";
  const isZlib = track.packing === "zlib";
  const bytes = isZlib ? await inflateZlib(frame, TEXT_LIMIT_BYTES) : frame;
  return CODECS[track.codecId]!.toCueText(decodeUtf8(bytes));
}

/** Decompresses zlib data (RFC 1950). Rejects with `broken_media` if it is invalid or expands beyond the limit. */
async function inflateZlib(packed: Uint8Array, limitBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([packed.slice()]).stream().pipeThrough(new DecompressionStream("deflate"));
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    for (const reader = stream.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) return concatBytes(parts);
      length += value.length;
      if (length > limitBytes) {
        await reader.cancel();
        throw new SluiceError("broken_media", `a subtitle expands to more than ${limitBytes} bytes`);
      }
      parts.push(value);
    }
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    throw new SluiceError("broken_media", "a compressed subtitle cannot be decompressed", { cause: error });
  }
}
