import { assert } from "../base/assert.ts";
import { DecodeError, SluiceError } from "../base/errors.ts";
import { adtsProblem, parseAacConfig } from "../media/aac.ts";
import { buildPmt, type PmtStream } from "../media/psi.ts";
import { decodeTicks, secondsToTicks, TICKS_PER_SECOND, wrapTicks } from "../media/timestamps.ts";
import { TS_PACKET_BYTES, writePcrPacket } from "../media/ts-packet.ts";
import { type FrameWriter, frameWriter } from "./ts-frames.ts";
import type { TsMuxPacket, TsMuxTrack } from "./ts-mux-input.ts";
import { type PesPlan, spreadPackets, writePes } from "./ts-pes-writer.ts";
import { TablesWriter, tableCount } from "./ts-tables-writer.ts";

/** Added to every time, so that audio priming, the decode times and the clock before them never go below zero. */
export const TS_BASE_SECONDS = 10;

const PMT_PID = 0x1000;
const FIRST_PID = 0x100;
/** How far the clock runs behind the decode times: what a decoder may buffer (ISO 13818-1 2.4.2: below one second). */
const CLOCK_LEAD_TICKS = 0.7 * TICKS_PER_SECOND;
/** The clock is due every 100 ms (2.7.2); a little earlier is safe. */
const CLOCK_INTERVAL_TICKS = 0.09 * TICKS_PER_SECOND;
/** A hole longer than this is not filled with clock packets: nothing plays there. */
const MAX_CLOCK_HOLE_TICKS = 10 * TICKS_PER_SECOND;
/** Audio frames are gathered into PES packets of at most 16 transport packets, 14 bytes of header off. */
const MAX_AUDIO_PES_BYTES = 16 * 184 - 14;
/** A frame that begins so far from where the one before it ended gets a PES packet, and so a time, of its own. */
const AUDIO_GAP_TICKS = 0.005 * TICKS_PER_SECOND;

const STREAM_TYPES = {
  h264: 0x1b,
  hevc: 0x24,
  aac: 0x0f,
  mp3: 0x03,
  mp2: 0x03,
  ac3: 0x81,
  eac3: 0x87,
} as const;
const REGISTRATIONS: Partial<Record<TsMuxTrack["codec"], string>> = {
  hevc: "HEVC",
  ac3: "AC-3",
  eac3: "EAC3",
};

/** Why a transport stream cannot carry one of these tracks, or undefined where it can carry all. */
export function tsMuxProblem(tracks: readonly TsMuxTrack[]): SluiceError | undefined {
  for (const track of tracks) {
    if (track.codec !== "aac" || !track.config) continue;
    const problem = aacProblem(track.config);
    if (problem) return new SluiceError("unsupported_codec", `MPEG-TS cannot carry this audio: ${problem}`);
  }
  return undefined;
}

/**
 * Writes encoded frames as MPEG-TS segments (ISO 13818-1). It keeps no position: segments may be made in any order, and one
 * after another they are one valid stream, because on every PID a segment holds a multiple of 16 packets, so that each
 * begins with continuity counter 0.
 */
export class TsMuxer {
  readonly #tracks: readonly Track[];
  readonly #clockPid: number;
  readonly #tables: TablesWriter;

  /** Throws `SluiceError("unsupported_codec")` or `("broken_media")` where the tracks cannot be written. */
  constructor(tracks: readonly TsMuxTrack[]) {
    const problem = tsMuxProblem(tracks);
    if (problem) throw problem;
    assert(tracks.length > 0, "a transport stream needs a track");
    this.#tracks = tracks.map(makeTrack);
    this.#clockPid = (this.#tracks.find((track) => track.isVideo) ?? this.#tracks[0]!).pid;
    const streams = this.#tracks.map((track) => track.stream);
    const pmt = buildPmt({ programme: 1, version: 0, pcrPid: this.#clockPid, streams });
    this.#tables = new TablesWriter(PMT_PID, 1, pmt);
  }

  /**
   * One segment of whole packets, PAT and PMT first. `packets` are those of one segment, in decode order within each track:
   * video from one keyframe to before the next segment's, audio whose PTS lies between the two.
   */
  segment(packets: readonly TsMuxPacket[]): Uint8Array<ArrayBuffer> {
    const perTrack: TsMuxPacket[][] = this.#tracks.map(() => []);
    for (const packet of packets) perTrack[packet.track]!.push(packet);
    const plans: PesPlan[] = [];
    for (const [index, track] of this.#tracks.entries()) {
      const own = track.isVideo
        ? planVideo(track, perTrack[index]!)
        : planAudio(track, perTrack[index]!, track.pid === this.#clockPid);
      spreadPackets(own);
      plans.push(...own);
    }
    plans.sort((a, b) => a.dts - b.dts);
    return this.#write(plans);
  }

  #write(plans: readonly PesPlan[]): Uint8Array<ArrayBuffer> {
    const tables = tableTimes(plans);
    const clocks = this.#clockTimes(plans);
    let length = tables.length * this.#tables.length + clocks.length * TS_PACKET_BYTES;
    for (const plan of plans) length += plan.packets * TS_PACKET_BYTES;
    const out = new Uint8Array(length);
    const counters = new Map<number, number>();
    let at = 0;
    let table = 0;
    let clock = 0;
    for (const plan of plans) {
      while (table < tables.length && tables[table]! <= plan.dts) at = this.#tables.write(out, at, table++);
      while (clock < clocks.length && clocks[clock]! <= plan.dts) {
        at = this.#writeClock(out, at, clocks[clock++]!, counters.get(this.#clockPid) ?? 0);
      }
      const counter = counters.get(plan.track.pid) ?? 0;
      at = writePes(plan, out, at, counter, CLOCK_LEAD_TICKS);
      counters.set(plan.track.pid, (counter + plan.packets) & 15);
    }
    while (clock < clocks.length) {
      at = this.#writeClock(out, at, clocks[clock++]!, counters.get(this.#clockPid) ?? 0);
    }
    while (table < tables.length) at = this.#tables.write(out, at, table++);
    assert(at === out.length, "a segment of another size than planned");
    return out;
  }

  #writeClock(out: Uint8Array, at: number, dts: number, counter: number): number {
    writePcrPacket(out, at, this.#clockPid, counter + 15, wrapTicks(dts - CLOCK_LEAD_TICKS));
    return at + TS_PACKET_BYTES;
  }

  /**
   * When clock packets of their own are due, because frames that carry the clock come too seldom: between two such frames, and
   * for as long as the last one lasts (never beyond: there the next segment's clock begins).
   */
  #clockTimes(plans: readonly PesPlan[]): number[] {
    const clocked = plans.filter((plan) => plan.hasClock);
    const times: number[] = [];
    for (const [i, plan] of clocked.entries()) {
      const lasts = plan.frames.reduce((sum, frame) => sum + frame.durationSeconds, 0) * TICKS_PER_SECOND;
      const next = clocked[i + 1]?.dts ?? plan.dts + lasts;
      if (next - plan.dts > MAX_CLOCK_HOLE_TICKS) continue;
      for (let at = plan.dts + CLOCK_INTERVAL_TICKS; at < next; at += CLOCK_INTERVAL_TICKS) times.push(at);
    }
    return times;
  }
}

/** One track as it is written. */
export interface Track {
  readonly pid: number;
  readonly streamId: number;
  readonly isVideo: boolean;
  readonly stream: PmtStream;
  readonly frames: FrameWriter;
  readonly reorderTicks: number;
}

function makeTrack(track: TsMuxTrack, index: number): Track {
  const isVideo = track.codec === "h264" || track.codec === "hevc";
  const isPrivate = track.codec === "ac3" || track.codec === "eac3";
  const registration = REGISTRATIONS[track.codec];
  const isMpeg2 = STREAM_TYPES[track.codec] === 3 && (track.sampleRate ?? 48000) < 32000;
  const language = /^[a-z]{3}$/.test(track.language) && track.language !== "und" ? track.language : undefined;
  return {
    pid: FIRST_PID + index,
    streamId: isVideo ? 0xe0 : isPrivate ? 0xbd : 0xc0 + (index & 31),
    isVideo,
    stream: {
      streamType: isMpeg2 ? 4 : STREAM_TYPES[track.codec],
      pid: FIRST_PID + index,
      ...(registration && { registration }),
      ...(language && !isVideo && { language }),
    },
    frames: readFrameWriter(track),
    // Rounded up, but not for the noise of a floating point second.
    reorderTicks: Math.ceil((track.reorderSeconds ?? 0) * TICKS_PER_SECOND - 0.01),
  };
}

function readFrameWriter(track: TsMuxTrack): FrameWriter {
  try {
    return frameWriter(track);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw new SluiceError("broken_media", `the ${track.codec} decoder configuration: ${error.message}`, {
      cause: error,
    });
  }
}

function aacProblem(config: Uint8Array): string | undefined {
  try {
    return adtsProblem(parseAacConfig(config));
  } catch (error) {
    if (error instanceof DecodeError) return error.message;
    throw error;
  }
}

function planVideo(track: Track, packets: readonly TsMuxPacket[]): PesPlan[] {
  const pts = packets.map((packet) => secondsToTicks(packet.ptsSeconds + TS_BASE_SECONDS));
  const dts = decodeTicks(pts, track.reorderTicks);
  const plans: PesPlan[] = [];
  for (const [i, packet] of packets.entries()) {
    const bytes = track.frames.measure(packet.data, packet.isKey);
    if (bytes === 0) continue;
    const times = { pts: pts[i]!, dts: dts[i]! };
    plans.push({ track, ...times, frames: [packet], bytes, hasClock: true, isKey: packet.isKey, packets: 0 });
  }
  return plans;
}

function planAudio(track: Track, packets: readonly TsMuxPacket[], hasClock: boolean): PesPlan[] {
  const plans: PesPlan[] = [];
  let open: { frames: TsMuxPacket[]; bytes: number } | undefined;
  let expected = 0;
  // A container tells of a hole as of a frame that lasts long.
  let shortest = Number.POSITIVE_INFINITY;
  for (const { durationSeconds } of packets)
    if (durationSeconds > 0) shortest = Math.min(shortest, durationSeconds);
  for (const packet of packets) {
    const bytes = track.frames.measure(packet.data, packet.isKey);
    if (bytes === 0) continue;
    const pts = secondsToTicks(packet.ptsSeconds + TS_BASE_SECONDS);
    const isContiguous = Math.abs(pts - expected) <= AUDIO_GAP_TICKS;
    if (open && isContiguous && open.bytes + bytes <= MAX_AUDIO_PES_BYTES) {
      open.frames.push(packet);
      open.bytes += bytes;
    } else {
      const plan = { track, pts, dts: pts, frames: [packet], bytes, hasClock, isKey: true, packets: 0 };
      plans.push(plan);
      open = plan;
      expected = pts;
    }
    const isLong = packet.durationSeconds > 1.5 * shortest;
    expected += (isLong ? shortest : packet.durationSeconds) * TICKS_PER_SECOND;
  }
  return plans;
}

/** When tables are written: evenly over the segment. */
function tableTimes(plans: readonly PesPlan[]): number[] {
  const first = plans[0]?.dts ?? 0;
  const span = (plans.at(-1)?.dts ?? 0) - first;
  const count = tableCount(span / TICKS_PER_SECOND);
  return Array.from({ length: count }, (_, i) => first + (i * span) / count);
}
