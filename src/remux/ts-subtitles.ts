import { concatBytes } from "../base/bytes.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import { PGS_EPOCH_SECONDS } from "../media/picture-states.ts";
import type { PictureState, SecondsRange } from "../media/picture-subtitles.ts";
import type { DvbPage } from "../media/subtitles/dvb-subtitles.ts";
import type { TeletextPage } from "../media/teletext.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import type { TsStream } from "../media/ts-programme.ts";
import type { TextCue } from "../media/webvtt.ts";
import { decodeTeletext, MAX_CUE_SECONDS, packetsOf, teletextCues } from "./teletext-packets.ts";
import type { TsBoundaries } from "./ts-boundaries.ts";
import { captionsIn, decodeCaptions, type FrameCaptions } from "./ts-captions.ts";
import { decodePictures } from "./ts-pictures.ts";
import type { TsPlan } from "./ts-plan.ts";
import type { TsReader } from "./ts-reader.ts";

/** Packets per read. */
const CHUNK_PACKETS = 4096;
/** Packets that contain the head of a frame with its captions. */
const CAPTION_PACKETS = 64;
/** Limit of teletext packets of one segment: the full capacity of a stream takes a tenth of this. */
const SEGMENT_LIMIT_BYTES = 4 * 1024 * 1024;
/** Players request segments in order, and each one needs its neighbours. */
const KEPT_SEGMENTS = 8;

/** The subtitles of a transport stream file. */
export class TsSubtitles {
  readonly #reader: TsReader;
  readonly #boundaries: TsBoundaries;
  readonly #plan: TsPlan;
  /** Packets of one PID in a segment, by PID and index. */
  readonly #kept = new Map<string, Uint8Array>();
  /** Captions in the picture of a segment, by index. */
  readonly #keptCaptions = new Map<number, readonly FrameCaptions[]>();

  constructor(reader: TsReader, boundaries: TsBoundaries, plan: TsPlan) {
    this.#reader = reader;
    this.#boundaries = boundaries;
    this.#plan = plan;
  }

  /**
   * Returns the cues that begin within segment `index`, in seconds since the start of the file. Reads the segment before it, because a
   * page can be repeated, and those after it until its last cue ends.
   */
  async cues(pid: number, page: TeletextPage, index: number, signal: AbortSignal): Promise<TextCue[]> {
    const before = index > 0 ? await this.#packets(pid, index - 1, signal) : new Uint8Array(0);
    const own = await this.#packets(pid, index, signal);
    const [start, end] = [before.length, before.length + own.length];
    const isOwn = ({ mark }: { readonly mark: number }) => mark >= start && mark < end;
    const read = [before, own];
    for (let next = index + 1; ; next++) {
      const { states, open } = decodeTeletext(concatBytes(read), page, this.#boundaries.firstDts);
      const endSeconds = this.#boundaries.startTicks(next) / TICKS_PER_SECOND;
      const isComplete = !open || !isOwn(open) || endSeconds > open.seconds + MAX_CUE_SECONDS;
      if (isComplete || next >= this.#plan.starts.length)
        return teletextCues(states, endSeconds).filter(isOwn);
      read.push(await this.#packets(pid, next, signal));
    }
  }

  /**
   * Returns the cues of CEA-708 captions that begin within segment `index`. Reads the segment before it, which defines the windows, and
   * those after it until its last cue ends.
   */
  async captions(stream: TsStream, index: number, signal: AbortSignal): Promise<TextCue[]> {
    const before = index > 0 ? await this.#captions(stream, index - 1, signal) : [];
    const read = [...before, ...(await this.#captions(stream, index, signal))];
    const secondsOf = (at: number) => this.#boundaries.startTicks(at) / TICKS_PER_SECOND;
    const isOwn = ({ seconds }: { readonly seconds: number }) =>
      (index === 0 || seconds >= secondsOf(index)) && seconds < secondsOf(index + 1);
    for (let next = index + 1; ; next++) {
      const states = decodeCaptions(read, this.#boundaries.firstDts);
      const last = states.at(-1);
      const isComplete = !last || last.text === "" || !isOwn(last);
      const isLong = last !== undefined && secondsOf(next) > last.seconds + MAX_CUE_SECONDS;
      if (isComplete || isLong || next >= this.#plan.starts.length) {
        const marked = states.map((state) => ({ ...state, mark: isOwn(state) ? 1 : 0 }));
        return teletextCues(marked, secondsOf(next)).filter(({ mark }) => mark === 1);
      }
      read.push(...(await this.#captions(stream, next, signal)));
    }
  }

  async #captions(stream: TsStream, index: number, signal: AbortSignal): Promise<readonly FrameCaptions[]> {
    const kept = this.#keptCaptions.get(index);
    if (kept) return kept;
    const start = await this.#boundaries.find(index, signal);
    const end = await this.#boundaries.find(index + 1, signal);
    const frames: FrameCaptions[] = [];
    const step = CHUNK_PACKETS * this.#reader.layout.stride;
    // The head of a frame can be in two chunks.
    const overlap = CAPTION_PACKETS * this.#reader.layout.stride;
    for (let at = start; at < end; at += step) {
      const chunk = await this.#reader.packets(at, Math.min(end, at + step + overlap), signal);
      const known = new Set(frames.slice(-CAPTION_PACKETS).map(({ pts }) => pts));
      frames.push(...captionsIn(chunk, stream).filter(({ pts }) => !known.has(pts)));
    }
    frames.sort((a, b) => deltaTicks(a.pts, b.pts));
    this.#keptCaptions.set(index, frames);
    trimOldest(this.#keptCaptions, KEPT_SEGMENTS);
    return frames;
  }

  /** Returns what PGS, or the DVB subtitles of `page`, show within `seconds` of the file. */
  async pictures(
    pid: number,
    page: DvbPage | undefined,
    seconds: SecondsRange,
    signal: AbortSignal,
  ): Promise<readonly PictureState[]> {
    const read: Uint8Array[] = [];
    const from = seconds.from - PGS_EPOCH_SECONDS;
    for (let index = 0; index < this.#plan.starts.length; index++) {
      const startOf = (at: number) => this.#boundaries.startTicks(at) / TICKS_PER_SECOND;
      // Subtitles are up to a second ahead of the picture that is next to them.
      if (startOf(index + 1) < from || startOf(index) > seconds.to + 1) continue;
      read.push(await this.#packets(pid, index, signal));
    }
    return decodePictures(concatBytes(read), page, this.#boundaries.firstDts, seconds);
  }

  async #packets(pid: number, index: number, signal: AbortSignal): Promise<Uint8Array> {
    const key = `${pid}/${index}`;
    const kept = this.#kept.get(key);
    if (kept) return kept;
    const start = await this.#boundaries.find(index, signal);
    const end = await this.#boundaries.find(index + 1, signal);
    const found: Uint8Array[] = [];
    let bytes = 0;
    const step = CHUNK_PACKETS * this.#reader.layout.stride;
    for (let at = start; at < end && bytes < SEGMENT_LIMIT_BYTES; at += step) {
      const chunk = await this.#reader.packets(at, Math.min(end, at + step), signal);
      found.push(packetsOf(chunk, pid));
      bytes += found.at(-1)!.length;
    }
    const packets = concatBytes(found);
    this.#kept.set(key, packets);
    trimOldest(this.#kept, KEPT_SEGMENTS);
    return packets;
  }
}
