import type { AbortSignalLike } from "../base/byte-source.ts";
import { concatBytes } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { trackLanguage } from "../media/language.ts";
import type { MatroskaTrack } from "../media/matroska-head.ts";
import { PgsDecoder } from "../media/pgs.ts";
import { PGS_EPOCH_SECONDS, PICTURE_LIMIT_BYTES, PictureStates } from "../media/picture-states.ts";
import type { PictureState, SecondsRange } from "../media/picture-subtitles.ts";
import { decodeSubpicture, parseVobsubHead } from "../media/vobsub.ts";
import { assToCueText, escapeVttText, isTopText, subripToCueText, type TextCue } from "../media/webvtt.ts";
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

/** Subtitles that are pictures and can be decoded, with their short names. */
const PICTURE_CODECS: Readonly<Record<string, string>> = { "S_HDMV/PGS": "pgs", S_VOBSUB: "vobsub" };

/** Other subtitles. */
const OPAQUE_CODECS: Readonly<Record<string, string>> = {
  "S_HDMV/TEXTST": "textst",
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
  readonly #pictures: readonly MatroskaTrack[];

  constructor(cache: BlockCache, index: MatroskaIndex, finder: ClusterFinder) {
    this.#cache = cache;
    this.#index = index;
    this.#finder = finder;
    this.#own = index.tracks.filter(
      ({ kind, codecId, packing }) => kind === "subtitle" && codecId in CODECS && packing !== "other",
    );
    this.#pictures = index.tracks.filter(
      ({ kind, codecId, packing }) => kind === "subtitle" && codecId in PICTURE_CODECS && packing !== "other",
    );
    const opaque = index.tracks.filter(
      ({ kind, codecId }) => kind === "subtitle" && codecId in OPAQUE_CODECS,
    );
    const picture = { isOpaque: true, isPicture: true };
    this.tracks = [
      ...this.#own.map((track) => described(track, CODECS[track.codecId]!.name)),
      ...this.#pictures.map((track) => ({ ...described(track, PICTURE_CODECS[track.codecId]!), ...picture })),
      ...opaque.map((track) => ({ ...described(track, OPAQUE_CODECS[track.codecId]!), isOpaque: true })),
    ];
  }

  async cues(track: number, bounds: SegmentBounds, signal?: AbortSignalLike): Promise<TextCue[]> {
    const own = this.#own[track];
    if (!own) throw new SluiceError("no_such_segment", `the file has no subtitle track ${track}`);
    const cues: TextCue[] = [];
    const seconds = { from: bounds.startSeconds, to: bounds.endSeconds };
    await this.#frames(own, seconds, TEXT_LIMIT_BYTES, signal, ({ bytes, startSeconds, durationSeconds }) => {
      const { name, toCueText } = CODECS[own.codecId]!;
      const event = decodeUtf8(bytes);
      const text = toCueText(event);
      const isTop = name !== "webvtt" && isTopText(event);
      const endSeconds = startSeconds + (durationSeconds ?? DEFAULT_CUE_SECONDS);
      if (text !== "") cues.push({ startSeconds, endSeconds, text, ...(isTop && { isTop }) });
      return cues.length < CUES_LIMIT;
    });
    return cues;
  }

  async pictures(track: number, seconds: SecondsRange, signal?: AbortSignalLike): Promise<PictureState[]> {
    const own = this.#pictures[track - this.#own.length];
    if (!own) throw new SluiceError("no_such_segment", `the file has no pictures ${track}`);
    const collected = new PictureStates(seconds);
    const isPgs = own.codecId === "S_HDMV/PGS";
    const head = parseVobsubHead(decodeUtf8(own.codecPrivate ?? new Uint8Array(0)));
    const pgs = new PgsDecoder();
    // A picture can consist of objects that came with earlier ones.
    const from = isPgs ? seconds.from - PGS_EPOCH_SECONDS : seconds.from;
    const read = { from: Math.max(0, from), to: seconds.to };
    await this.#frames(own, read, PICTURE_LIMIT_BYTES, signal, ({ bytes, startSeconds, durationSeconds }) => {
      if (!isPgs) return collected.addVobsub(decodeSubpicture(bytes, startSeconds, head), durationSeconds);
      const state = pgs.push(bytes, startSeconds);
      return !state || collected.add(state);
    });
    return collected.states;
  }

  /** Visits the frames of a track that begin in `[from, to)`, until `visit` returns false. */
  async #frames(
    track: MatroskaTrack,
    { from, to }: SecondsRange,
    limitBytes: number,
    signal: AbortSignalLike | undefined,
    visit: (frame: SubtitleFrame) => boolean,
  ): Promise<void> {
    const { firstCluster, dataEnd, tickSeconds } = this.#index;
    const start = from === Number.NEGATIVE_INFINITY ? firstCluster : await this.#finder.before(from, signal);
    const end = to === Number.POSITIVE_INFINITY ? dataEnd : await this.#finder.before(to, signal);
    const visitBlock = async (block: WalkedBlock) => {
      const startSeconds = block.time * tickSeconds;
      if (block.head.track !== track.number || startSeconds < from || startSeconds >= to) return true;
      const body = await block.body();
      const bytes = await unpacked(track, body?.frames[0], limitBytes);
      const durationSeconds = body?.duration === undefined ? undefined : body.duration * tickSeconds;
      return visit({ bytes, startSeconds, durationSeconds });
    };
    const walk = { start, end: Math.min(dataEnd, end + INTERLEAVE_BYTES) };
    await walkBlocks(this.#cache, walk, visitBlock, signal);
  }
}

interface SubtitleFrame {
  readonly bytes: Uint8Array;
  readonly startSeconds: number;
  readonly durationSeconds: number | undefined;
}

function described({ language, name, isDefault, isForced }: MatroskaTrack, codec: string): MediaTrack {
  const track = { codec, language: trackLanguage(language), title: name, isDefault, isForced };
  return { kind: "subtitle", codecString: "wvtt", ...track };
}

/** Returns the content of a frame; nothing if it is too large. */
async function unpacked(
  { packing, strippedBytes }: MatroskaTrack,
  frame: Uint8Array | undefined,
  limitBytes: number,
): Promise<Uint8Array> {
  if (!frame || frame.length > limitBytes) return new Uint8Array(0);
  if (packing === "zlib") return inflateZlib(frame, limitBytes);
  return strippedBytes.length > 0 ? concatBytes([strippedBytes, frame]) : frame;
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
