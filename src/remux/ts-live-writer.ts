import { concatBytes } from "../base/bytes.ts";
import { buildPmt } from "../media/psi.ts";
import { secondsToTicks, TICKS_PER_SECOND, wrapTicks } from "../media/timestamps.ts";
import { TS_PACKET_BYTES, writePcrPacket } from "../media/ts-packet.ts";
import { TS_BASE_SECONDS, type TsMuxPacket, type TsMuxTrack } from "./ts-mux-input.ts";
import { outputTrack, PMT_PID, type TsTrack } from "./ts-muxer.ts";
import { type PesPlanner, pesPlanner } from "./ts-pes-planner.ts";
import { leastPackets, type PesPlan, writePes } from "./ts-pes-writer.ts";
import { TablesWriter } from "./ts-tables-writer.ts";

/** Audio frames are collected for up to this time. */
const AUDIO_SECONDS = 0.1;
/** How far the PCR is behind the decode times. */
const CLOCK_LEAD_TICKS = 0.5 * TICKS_PER_SECOND;
/** Distance of PCRs: at most 100 ms (ISO 13818-1 2.7.2), with a margin. */
const CLOCK_INTERVAL_TICKS = 0.09 * TICKS_PER_SECOND;
/** Distance of tables, so that a player can join anywhere. */
const TABLES_INTERVAL_TICKS = 0.4 * TICKS_PER_SECOND;

/** A frame whose decode time is known. */
export interface LiveFrame extends TsMuxPacket {
  readonly dtsSeconds: number;
}

/**
 * Writes encoded frames as MPEG-TS the moment they arrive. Unlike `TsMuxer`, which derives decode times and makes independent
 * segments, it writes one endless stream and needs the decode times.
 */
export class TsLiveWriter {
  readonly #tracks: readonly TsTrack[];
  readonly #audioPlanners: readonly (PesPlanner | undefined)[];
  /** Decode time of the first collected audio frame, by track. */
  readonly #audioSince: (number | undefined)[] = [];
  readonly #tables: TablesWriter;
  readonly #clockPid: number;
  readonly #counters: Map<number, number>;
  #tablesAt = Number.NEGATIVE_INFINITY;
  #clockAt = Number.NEGATIVE_INFINITY;
  #out: Uint8Array[] = [];

  /**
   * `before` is the writer whose stream continues with other tracks; its counters and the next version of the tables are used.
   * Throws `SluiceError("broken_media")` if a decoder configuration is invalid.
   */
  constructor(tracks: readonly TsMuxTrack[], before?: TsLiveWriter) {
    const clockIndex = Math.max(
      0,
      tracks.findIndex(({ codec }) => codec === "h264" || codec === "hevc"),
    );
    this.#tracks = tracks.map((track, index) => outputTrack(track, index, clockIndex, false));
    this.#audioPlanners = this.#tracks.map((track) =>
      track.isVideo ? undefined : pesPlanner(track, (plan) => this.#write(plan)),
    );
    this.#clockPid = this.#tracks[clockIndex]!.pid;
    this.#counters = new Map(before ? before.#counters : []);
    this.version = before ? (before.version + 1) & 31 : 0;
    const streams = this.#tracks.map(({ stream }) => stream);
    const pmt = buildPmt({ programme: 1, version: this.version, pcrPid: this.#clockPid, streams });
    this.#tables = new TablesWriter(PMT_PID, 1, pmt, this.version);
  }

  /** Version number of the tables, 0 to 31. */
  readonly version: number;

  /** Takes a frame, in decode order within its track, and returns the transport packets that are complete; they can be none. */
  write(frame: LiveFrame): Uint8Array<ArrayBuffer> {
    const audio = this.#audioPlanners[frame.track];
    if (audio) this.#addAudio(audio, frame);
    else this.#writeVideo(frame);
    return this.#take();
  }

  /** Returns the packets of the audio frames that were waiting for later ones. */
  finish(): Uint8Array<ArrayBuffer> {
    for (const planner of this.#audioPlanners) planner?.end();
    return this.#take();
  }

  #take(): Uint8Array<ArrayBuffer> {
    const packets = concatBytes(this.#out);
    this.#out = [];
    return packets;
  }

  #addAudio(planner: PesPlanner, frame: LiveFrame): void {
    const since = this.#audioSince[frame.track] ?? frame.dtsSeconds;
    const isDue = frame.dtsSeconds - since >= AUDIO_SECONDS;
    if (isDue) planner.end();
    this.#audioSince[frame.track] = isDue ? frame.dtsSeconds : since;
    planner.add(frame);
  }

  #writeVideo(frame: LiveFrame): void {
    const track = this.#tracks[frame.track]!;
    const bytes = track.measure(frame);
    if (bytes === 0) return;
    const dts = secondsToTicks(frame.dtsSeconds + TS_BASE_SECONDS);
    const pts = Math.max(dts, secondsToTicks(frame.ptsSeconds + TS_BASE_SECONDS));
    const plan = { track, pts, dts, frames: [frame], bytes, hasClock: true, isKey: frame.isKey, packets: 0 };
    plan.packets = leastPackets(plan);
    this.#write(plan);
  }

  #write(plan: PesPlan): void {
    const { pid } = plan.track;
    const isVideoKey = plan.isKey && pid === this.#clockPid && this.#audioPlanners[0] === undefined;
    if (isVideoKey || plan.dts - this.#tablesAt >= TABLES_INTERVAL_TICKS) {
      this.#writeTables();
      this.#tablesAt = plan.dts;
    }
    // The PCR never goes back.
    if (plan.hasClock && plan.dts > this.#clockAt) this.#clockAt = plan.dts;
    else if (plan.dts - this.#clockAt >= CLOCK_INTERVAL_TICKS) this.#writeClock(plan.dts);
    const hasClock = plan.hasClock && plan.dts === this.#clockAt;
    const timed = hasClock === plan.hasClock ? plan : { ...plan, hasClock };
    const packet = new Uint8Array(timed.packets * TS_PACKET_BYTES);
    const counter = this.#counters.get(pid) ?? 0;
    writePes(timed, packet, 0, counter, CLOCK_LEAD_TICKS);
    this.#counters.set(pid, (counter + timed.packets) & 15);
    this.#out.push(packet);
  }

  #writeTables(): void {
    const packets = new Uint8Array(this.#tables.length);
    const index = this.#counters.get(PMT_PID) ?? 0;
    this.#tables.write(packets, 0, index);
    this.#counters.set(PMT_PID, (index + 1) & 15);
    this.#out.push(packets);
  }

  /** Writes a PCR between two frames that carry one. */
  #writeClock(at: number): void {
    const packet = new Uint8Array(TS_PACKET_BYTES);
    const counter = (this.#counters.get(this.#clockPid) ?? 0) + 15;
    writePcrPacket(packet, 0, this.#clockPid, counter, wrapTicks(at - CLOCK_LEAD_TICKS));
    this.#clockAt = at;
    this.#out.push(packet);
  }
}
