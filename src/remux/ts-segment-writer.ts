import { assert } from "../base/assert.ts";
import type { BufferPool } from "../base/buffer-pool.ts";
import { TICKS_PER_SECOND, wrapTicks } from "../media/timestamps.ts";
import { TS_PACKET_BYTES, writePcrPacket } from "../media/ts-packet.ts";
import type { TsMuxPacket } from "./ts-mux-input.ts";
import { type PesPlanner, type PlannedTrack, pesPlanner } from "./ts-pes-planner.ts";
import { type PesPlan, sparePackets, spreadPackets, writePes } from "./ts-pes-writer.ts";
import type { TablesWriter } from "./ts-tables-writer.ts";

/** How far the PCR is behind the decode times: the time that a decoder buffers (ISO 13818-1 2.4.2: below one second). */
const CLOCK_LEAD_TICKS = 0.7 * TICKS_PER_SECOND;
/** Distance of PCRs: at most 100 ms (ISO 13818-1 2.7.2), with a margin. */
const CLOCK_INTERVAL_TICKS = 0.09 * TICKS_PER_SECOND;
/** A longer gap without frames is not filled with PCR packets and tables. */
const MAX_GAP_TICKS = 10 * TICKS_PER_SECOND;
/** Distance of tables: at most half a second, so that a player can join anywhere. */
const TABLES_INTERVAL_TICKS = 0.4 * TICKS_PER_SECOND;
/** A segment is filled up to a multiple of 16 packets of each PID, so that the next one begins with continuity counter 0. */
const COUNTERS = 16;

/** Size of an output, unless a frame is larger. */
const OUTPUT_BYTES = 256 * 1024;

/** A track and the PES packets that are not written yet, in decode order. */
interface Lane {
  readonly track: PlannedTrack;
  readonly planner: PesPlanner;
  readonly plans: PesPlan[];
  /** Transport packets of the plans that were written. */
  packets: number;
}

/** One thing to write: a PES packet, a PCR at a time, or the tables. */
type Item = PesPlan | { readonly clock: number } | "tables";

/**
 * Writes one segment while its frames arrive. PES packets of all tracks are merged by decode time; those that fill up the continuity
 * counters at the end of the segment are held back, and so is a track that is ahead of the others, up to `holdBytes`.
 */
export class TsSegmentWriter {
  readonly #lanes: readonly Lane[];
  readonly #clockLane: Lane;
  readonly #tables: TablesWriter;
  readonly #holdBytes: number;
  readonly #pool: BufferPool | undefined;
  #heldBytes = 0;
  #items: Item[] = [];
  /** How many tables were added, and how many of these were written. */
  #tablesCount = 0;
  #tablesWritten = 0;
  /** Continuity counters by PID. */
  readonly #counters = new Map<number, number>();
  /** When the next tables are due; undefined before the first PES packet. */
  #tablesAt: number | undefined;
  /** The time of the last PCR, and until when the last frame that carries one lasts. */
  #clockAt: number | undefined;
  #clockEnd = 0;

  constructor(tracks: readonly PlannedTrack[], tables: TablesWriter, holdBytes: number, pool?: BufferPool) {
    this.#pool = pool;
    this.#lanes = tracks.map((track) => {
      const plans: PesPlan[] = [];
      const planned = (plan: PesPlan) => {
        plans.push(plan);
        this.#heldBytes += plan.bytes;
      };
      return { track, planner: pesPlanner(track, planned), plans, packets: 0 };
    });
    this.#clockLane = this.#lanes.find(({ track }) => track.hasClock)!;
    this.#tables = tables;
    this.#holdBytes = holdBytes;
  }

  /** Takes a frame, in decode order within its track. */
  add(packet: TsMuxPacket): void {
    this.#lanes[packet.track]!.planner.add(packet);
    for (let lane = this.#dueLane(); lane; lane = this.#dueLane()) this.#release(lane);
  }

  /** Returns the transport packets that are complete now. */
  take(): Uint8Array<ArrayBuffer>[] {
    const items = this.#items;
    this.#items = [];
    const sizes = items.map((item) => this.#sizeOf(item));
    const total = sizes.reduce((sum, size) => sum + size, 0);
    const limit = total / Math.max(1, Math.round(total / OUTPUT_BYTES));
    const outputs: Uint8Array<ArrayBuffer>[] = [];
    for (let from = 0; from < items.length; ) {
      let to = from;
      let length = 0;
      while (to < items.length && (to === from || length + sizes[to]! / 2 <= limit)) length += sizes[to++]!;
      outputs.push(this.#write(items.slice(from, to), length));
      from = to;
    }
    return outputs;
  }

  /** Ends the segment and returns its last transport packets. */
  finish(): Uint8Array<ArrayBuffer>[] {
    this.end();
    return this.take();
  }

  /** Returns the size of the packets that {@link take} would return. Calls `written` for each PES packet with its end among them. */
  takeSize(written?: (frames: readonly TsMuxPacket[], end: number) => void): number {
    let bytes = 0;
    for (const item of this.#items) {
      bytes += this.#sizeOf(item);
      if (written && item !== "tables" && "frames" in item) written(item.frames, bytes);
    }
    this.#items = [];
    return bytes;
  }

  /** Ends the segment; the last packets can then be taken. */
  end(): void {
    for (const { planner, plans, packets } of this.#lanes) {
      planner.end();
      const total = plans.reduce((sum, plan) => sum + plan.packets, packets);
      if (plans.length > 0) spreadPackets(plans, (COUNTERS - (total % COUNTERS)) % COUNTERS);
    }
    for (let lane = this.#firstLane(); lane; lane = this.#firstLane()) this.#release(lane);
    this.#fillClocks(this.#clockEnd);
    while (this.#tablesCount === 0 || this.#tablesCount % COUNTERS !== 0) this.#writeTables();
  }

  /** The lane whose next PES packet can be written now. */
  #dueLane(): Lane | undefined {
    const first = this.#firstLane();
    if (!first) return undefined;
    if (this.#lanes.every(({ plans }) => plans.length > 0) && hasTail(first)) return first;
    return this.#heldBytes > this.#holdBytes ? this.#firstLane(hasTail) : undefined;
  }

  /** The lane with the earliest PES packet. */
  #firstLane(fits: (lane: Lane) => boolean = () => true): Lane | undefined {
    let first: Lane | undefined;
    for (const lane of this.#lanes) {
      const [plan] = lane.plans;
      if (plan && (!first || plan.dts < first.plans[0]!.dts) && fits(lane)) first = lane;
    }
    return first;
  }

  #release(lane: Lane): void {
    const plan = lane.plans.shift()!;
    this.#heldBytes -= plan.bytes;
    lane.packets += plan.packets;
    if (this.#tablesAt === undefined) {
      this.#writeTables();
      this.#tablesAt = plan.dts + TABLES_INTERVAL_TICKS;
    }
    if (plan.dts - this.#tablesAt > MAX_GAP_TICKS) this.#tablesAt = plan.dts;
    for (; this.#tablesAt <= plan.dts; this.#tablesAt += TABLES_INTERVAL_TICKS) this.#writeTables();
    // Not beyond the next frame that carries the PCR itself, nor beyond the last one.
    this.#fillClocks(Math.min(plan.dts, this.#clockLane.plans[0]?.dts ?? this.#clockEnd));
    this.#items.push(plan);
    if (!plan.hasClock) return;
    this.#clockAt = plan.dts;
    const seconds = plan.frames.reduce((sum, frame) => sum + frame.durationSeconds, 0);
    this.#clockEnd = plan.dts + seconds * TICKS_PER_SECOND;
  }

  #writeTables(): void {
    this.#items.push("tables");
    this.#tablesCount++;
  }

  /** Adds PCR packets before the time `until`, between two frames that carry the PCR. */
  #fillClocks(until: number): void {
    if (this.#clockAt === undefined || until - this.#clockAt > MAX_GAP_TICKS) return;
    for (let at = this.#clockAt + CLOCK_INTERVAL_TICKS; at < until; at += CLOCK_INTERVAL_TICKS) {
      this.#items.push({ clock: at });
      this.#clockAt = at;
    }
  }

  #sizeOf(item: Item): number {
    if (item === "tables") return this.#tables.length;
    return ("clock" in item ? 1 : item.packets) * TS_PACKET_BYTES;
  }

  #write(items: readonly Item[], length: number): Uint8Array<ArrayBuffer> {
    const out = this.#pool?.take(length) ?? new Uint8Array(length);
    let at = 0;
    for (const item of items) {
      if (item === "tables") at = this.#tables.write(out, at, this.#tablesWritten++);
      else if ("clock" in item) {
        const { pid } = this.#clockLane.track;
        writePcrPacket(out, at, pid, this.#counterOf(pid) + 15, wrapTicks(item.clock - CLOCK_LEAD_TICKS));
        at += TS_PACKET_BYTES;
      } else {
        const counter = this.#counterOf(item.track.pid);
        at = writePes(item, out, at, counter, CLOCK_LEAD_TICKS);
        for (const { memory } of item.frames) memory?.release();
        this.#counters.set(item.track.pid, (counter + item.packets) % COUNTERS);
      }
    }
    assert(at === out.length, "the segment does not have the planned size");
    return out;
  }

  #counterOf(pid: number): number {
    return this.#counters.get(pid) ?? 0;
  }
}

/** Returns true if the PES packets after the next one can fill up the continuity counter. */
function hasTail({ plans }: Lane): boolean {
  let spare = 0;
  for (let i = plans.length - 1; i > 0; i--) {
    spare += sparePackets(plans[i]!);
    if (spare >= COUNTERS - 1) return true;
  }
  return false;
}
