import { concatBytes } from "../base/bytes.ts";
import type { TeletextPage } from "../media/teletext.ts";
import { TICKS_PER_SECOND } from "../media/timestamps.ts";
import type { TextCue } from "../media/webvtt.ts";
import { decodeTeletext, MAX_CUE_SECONDS, packetsOf, teletextCues } from "./teletext-packets.ts";
import type { TsBoundaries } from "./ts-boundaries.ts";
import type { TsPlan } from "./ts-plan.ts";
import type { TsReader } from "./ts-reader.ts";

/** Packets per read. */
const CHUNK_PACKETS = 4096;
/** Limit of teletext packets of one segment: the full capacity of a stream takes a tenth of this. */
const SEGMENT_LIMIT_BYTES = 4 * 1024 * 1024;
/** Players request segments in order, and each one needs its neighbours. */
const KEPT_SEGMENTS = 8;

/** The teletext subtitles of a transport stream file. */
export class TsSubtitles {
  readonly #reader: TsReader;
  readonly #boundaries: TsBoundaries;
  readonly #plan: TsPlan;
  /** Packets of one PID in a segment, by PID and index. */
  readonly #kept = new Map<string, Uint8Array>();

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
    if (this.#kept.size > KEPT_SEGMENTS) this.#kept.delete(this.#kept.keys().next().value!);
    return packets;
  }
}
