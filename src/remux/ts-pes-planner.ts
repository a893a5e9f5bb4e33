import { decodeTicks, firstDecodeTicks, secondsToTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import { TS_BASE_SECONDS, type TsMuxPacket } from "./ts-mux-input.ts";
import { leastPackets, type PesPlan, type PesTrack } from "./ts-pes-writer.ts";

/** Audio frames are collected into PES packets of at most 16 transport packets, minus 14 bytes of header. */
const MAX_AUDIO_PES_BYTES = 16 * 184 - 14;
/** A frame this far from the end of the previous one begins a new PES packet, so that it has its own PTS. */
const AUDIO_GAP_TICKS = 0.005 * TICKS_PER_SECOND;

/** A track as its planner sees it. */
export interface PlannedTrack extends PesTrack {
  readonly isVideo: boolean;
  /** True if this track carries the PCR. */
  readonly hasClock: boolean;
  /** Returns the size of a frame in the stream; 0 if nothing of it is usable. */
  measure(packet: TsMuxPacket): number;
  readonly reorderTicks: number;
  readonly reorderFrames: number;
}

/** Plans the PES packets of one track of a segment while its frames arrive, in decode order. */
export interface PesPlanner {
  /** Takes the next frame. */
  add(packet: TsMuxPacket): void;
  /** Plans the frames that waited for later ones. */
  end(): void;
}

/** Creates the planner of a track, which calls `planned` for each PES packet. */
export function pesPlanner(track: PlannedTrack, planned: (plan: PesPlan) => void): PesPlanner {
  return track.isVideo ? new VideoPlanner(track, planned) : new AudioPlanner(track, planned);
}

/** Plans one PES packet per frame. Decode times are the sorted presentation times, so a frame waits for those that it may follow. */
class VideoPlanner implements PesPlanner {
  readonly #track: PlannedTrack;
  readonly #planned: (plan: PesPlan) => void;
  readonly #waiting: TsMuxPacket[] = [];
  readonly #pts: number[] = [];
  /** The smallest presentation times that no earlier frame has taken as its decode time. */
  readonly #sorted: number[] = [];
  #lastDts = Number.NEGATIVE_INFINITY;

  constructor(track: PlannedTrack, planned: (plan: PesPlan) => void) {
    this.#track = track;
    this.#planned = planned;
  }

  add(packet: TsMuxPacket): void {
    const pts = secondsToTicks(packet.ptsSeconds + TS_BASE_SECONDS);
    this.#waiting.push(packet);
    this.#pts.push(pts);
    let at = this.#sorted.length;
    if (this.#track.reorderFrames === Number.POSITIVE_INFINITY) {
      this.#sorted.push(pts);
      return;
    }
    while (at > 0 && this.#sorted[at - 1]! > pts) at--;
    this.#sorted.splice(at, 0, pts);
    if (this.#waiting.length <= this.#track.reorderFrames) return;
    const dts = firstDecodeTicks(this.#pts, this.#track.reorderTicks, this.#sorted);
    this.#sorted.shift();
    this.#plan(this.#waiting.shift()!, this.#pts.shift()!, dts);
  }

  end(): void {
    const dts = decodeTicks(this.#pts, this.#track.reorderTicks, Float64Array.from(this.#sorted).sort());
    for (const [i, packet] of this.#waiting.entries()) this.#plan(packet, this.#pts[i]!, dts[i]!);
  }

  #plan(packet: TsMuxPacket, pts: number, wantedDts: number): void {
    const bytes = this.#track.measure(packet);
    if (bytes === 0) {
      packet.memory?.release();
      return;
    }
    const dts = Math.max(wantedDts, this.#lastDts + 1);
    this.#lastDts = dts;
    const { isKey } = packet;
    const plan = { track: this.#track, pts, dts, frames: [packet], bytes, hasClock: true, isKey, packets: 0 };
    plan.packets = leastPackets(plan);
    this.#planned(plan);
  }
}

/** Collects frames into PES packets. */
class AudioPlanner implements PesPlanner {
  readonly #track: PlannedTrack;
  readonly #planned: (plan: PesPlan) => void;
  #open: { readonly pts: number; readonly frames: TsMuxPacket[]; bytes: number } | undefined;
  /** Where the last frame of the open PES packet begins, in ticks. */
  #lastTicks = 0;
  /** A container can describe a gap as one long frame, so a frame is taken to be as long as the shortest one. */
  #shortestSeconds = Number.POSITIVE_INFINITY;

  constructor(track: PlannedTrack, planned: (plan: PesPlan) => void) {
    this.#track = track;
    this.#planned = planned;
  }

  add(packet: TsMuxPacket): void {
    const { durationSeconds } = packet;
    if (durationSeconds > 0) this.#shortestSeconds = Math.min(this.#shortestSeconds, durationSeconds);
    const bytes = this.#track.measure(packet);
    if (bytes === 0) {
      packet.memory?.release();
      return;
    }
    const pts = secondsToTicks(packet.ptsSeconds + TS_BASE_SECONDS);
    const expected = this.#lastTicks + this.#lastFrameTicks();
    const isContiguous = Math.abs(pts - expected) <= AUDIO_GAP_TICKS;
    if (this.#open && isContiguous && this.#open.bytes + bytes <= MAX_AUDIO_PES_BYTES) {
      this.#open.frames.push(packet);
      this.#open.bytes += bytes;
      this.#lastTicks = expected;
      return;
    }
    this.end();
    this.#open = { pts, frames: [packet], bytes };
    this.#lastTicks = pts;
  }

  end(): void {
    if (!this.#open) return;
    const { pts, frames, bytes } = this.#open;
    const plan = {
      track: this.#track,
      pts,
      dts: pts,
      frames,
      bytes,
      hasClock: this.#track.hasClock,
      isKey: true,
      packets: 0,
    };
    this.#open = undefined;
    plan.packets = leastPackets(plan);
    this.#planned(plan);
  }

  #lastFrameTicks(): number {
    const seconds = this.#open?.frames.at(-1)?.durationSeconds ?? 0;
    return (seconds > 1.5 * this.#shortestSeconds ? this.#shortestSeconds : seconds) * TICKS_PER_SECOND;
  }
}
