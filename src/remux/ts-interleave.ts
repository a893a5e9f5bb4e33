import { SluiceError } from "../base/errors.ts";
import { mergePmt, PAT_PID } from "../media/psi.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import { NULL_PID, pidAt, TS_PACKET_BYTES, TS_SYNC } from "../media/ts-packet.ts";
import { streamsOf, type TsStream } from "../media/ts-programme.ts";
import { TableReader, type TsTables } from "../media/ts-tables.ts";
import { nextUnit } from "../media/ts-units.ts";
import { TablesWriter, tableCount } from "./ts-tables-writer.ts";

/** First candidate for the PID of the separate audio stream. */
const FIRST_AUDIO_PID = 0x1a0;

/** Limits the number of tables if the times are invalid. */
const MAX_TABLE_SECONDS = 60;

/** A run of packets that begins with a unit of one stream, and the DTS of that unit. */
interface Run {
  readonly packets: Uint8Array;
  readonly dts: number;
}

/** A parsed segment of a transport stream. */
interface Piece {
  readonly packets: Uint8Array;
  readonly tables: TsTables;
  readonly streams: readonly TsStream[];
}

/** The PTS of the first unit of the leading stream, in ticks; undefined if there is none. Throws `broken_media`. */
export function firstTicks(bytes: Uint8Array): number | undefined {
  const { packets, streams } = readPiece(bytes);
  const stream = streams.find(({ kind }) => kind === "video") ?? streams[0];
  return stream && nextUnit(packets, 0, stream)?.pts;
}

/**
 * Multiplexes separate video and audio transport streams (RFC 8216 4.3.4.1 renditions) into one. Packets keep their content except for
 * the PID of the audio, and are sorted by decode time.
 * @param audio consecutive segments of one stream.
 * @param language ISO 639-2, for the PMT.
 * @throws SluiceError `broken_media` if a segment has no tables.
 */
export function interleaveTs(
  video: Uint8Array,
  audio: readonly Uint8Array[],
  language: string,
): Uint8Array<ArrayBuffer> {
  const main = readPiece(video);
  const pieces = audio.map(readPiece);
  const [firstAudio] = pieces;
  const own = firstAudio?.streams.find(({ kind }) => kind === "audio");
  // If the video segment has audio too, the separate audio replaces it.
  const replaced = new Set(main.streams.filter(({ kind }) => own && kind === "audio").map(({ pid }) => pid));
  const pid = freePid(main.tables);
  const { pmt, pmtPid, pmtSection } = main.tables;
  const added = own && { section: firstAudio!.tables.pmtSection, pid: own.pid, newPid: pid, language };
  const writer = new TablesWriter(pmtPid, pmt.programme, mergePmt(pmtSection, replaced, added));
  const kept = new Set([pmt.pcrPid, ...pmt.streams.map((stream) => stream.pid)]);
  // Keep the PID that carries the PCR.
  for (const removed of replaced) if (removed !== pmt.pcrPid) kept.delete(removed);
  kept.delete(NULL_PID);
  const leading = main.streams.find(({ kind }) => kind === "video") ?? main.streams[0];
  const runs = mergeRuns(
    leading ? runsOf(main.packets, leading, (packet) => kept.has(packet)) : [],
    pieces.flatMap((piece) => audioRuns(piece, pid)),
  );
  return writeRuns(runs, writer);
}

function audioRuns(piece: Piece, pid: number): Run[] {
  const stream = piece.streams.find(({ kind }) => kind === "audio");
  if (!stream) return [];
  const runs = runsOf(piece.packets, stream, (packet) => packet === stream.pid);
  return runs.map(({ packets, dts }) => ({ packets: withPid(packets, pid), dts }));
}

/** Changes the PID in place and removes the PCR, because the video has one. Drops packets without payload. */
function withPid(packets: Uint8Array, pid: number): Uint8Array {
  let length = 0;
  for (let at = 0; at < packets.length; at += TS_PACKET_BYTES) {
    const control = packets[at + 3]!;
    if (!(control & 0x10)) continue;
    packets.copyWithin(length, at, at + TS_PACKET_BYTES);
    packets[length + 1] = (packets[length + 1]! & 0xe0) | (pid >> 8);
    packets[length + 2] = pid;
    const adaptation = control & 0x20 ? Math.min(183, packets[length + 4]!) : 0;
    if (adaptation > 0 && packets[length + 5]! & 0x10) {
      packets[length + 5] = packets[length + 5]! & 0xe0;
      packets.fill(0xff, length + 6, length + 5 + adaptation);
    }
    length += TS_PACKET_BYTES;
  }
  return packets.subarray(0, length);
}

/** Splits the packets to keep before each unit of `stream`; packets before the first unit belong to its run. */
function runsOf(packets: Uint8Array, stream: TsStream, keeps: (pid: number) => boolean): Run[] {
  const runs: Run[] = [];
  // As a data stream its units are not searched for key frames, which do not matter here.
  const leading = { ...stream, kind: "data" } as const;
  let unit = nextUnit(packets, 0, leading);
  if (!unit) return runs;
  for (let from = 0; unit; ) {
    const after = nextUnit(packets, unit.at + TS_PACKET_BYTES, leading);
    const end = after?.at ?? packets.length;
    runs.push({ packets: keptOf(packets, from, end, keeps), dts: unit.dts });
    from = end;
    unit = after;
  }
  return runs;
}

function keptOf(packets: Uint8Array, from: number, end: number, keeps: (pid: number) => boolean): Uint8Array {
  const kept = new Uint8Array(end - from);
  let length = 0;
  for (let at = from; at < end; at += TS_PACKET_BYTES) {
    if (!keeps(pidAt(packets, at))) continue;
    kept.set(packets.subarray(at, at + TS_PACKET_BYTES), length);
    length += TS_PACKET_BYTES;
  }
  return kept.subarray(0, length);
}

/** Merges two lists by DTS, with each list in its own order. */
function mergeRuns(a: readonly Run[], b: readonly Run[]): Run[] {
  const all: Run[] = [];
  let next = 0;
  for (const run of a) {
    while (next < b.length && deltaTicks(b[next]!.dts, run.dts) <= 0) all.push(b[next++]!);
    all.push(run);
  }
  return [...all, ...b.slice(next)];
}

/** Writes the runs, with tables at the start and then at even distances. */
function writeRuns(runs: readonly Run[], writer: TablesWriter): Uint8Array<ArrayBuffer> {
  const [first, last] = [runs[0], runs.at(-1)];
  const ticks = first && last ? Math.max(0, deltaTicks(last.dts, first.dts)) : 0;
  const seconds = Math.min(MAX_TABLE_SECONDS, ticks / TICKS_PER_SECOND);
  const count = tableCount(seconds);
  const body = runs.reduce((sum, { packets }) => sum + packets.length, 0);
  const out = new Uint8Array(body + count * writer.length);
  let at = 0;
  let tables = 0;
  let done = 0;
  for (const { packets } of runs) {
    while (tables < count && tables * body <= done * count) at = writer.write(out, at, tables++);
    out.set(packets, at);
    at += packets.length;
    done += packets.length;
  }
  while (tables < count) at = writer.write(out, at, tables++);
  return out;
}

function freePid({ pmtPid, pmt }: TsTables): number {
  const used = new Set([pmtPid, pmt.pcrPid, ...pmt.streams.map((stream) => stream.pid)]);
  let pid = FIRST_AUDIO_PID;
  while (used.has(pid)) pid++;
  return pid;
}

/** Parses a segment. Throws `broken_media` if it has no tables. */
export function readPiece(bytes: Uint8Array): Piece {
  const packets = wholePackets(bytes);
  const reader = new TableReader();
  for (let at = 0; at < packets.length; at += TS_PACKET_BYTES) {
    const pid = pidAt(packets, at);
    if (pid === PAT_PID || reader.wants(pid)) reader.push(packets, at);
  }
  const tables = reader.tables(true);
  if (!tables) throw new SluiceError("broken_media", "an MPEG-TS segment has no PAT or PMT");
  return { packets, tables, streams: streamsOf(tables.pmt) };
}

/** Copies the packets without the bytes between them. */
function wholePackets(bytes: Uint8Array): Uint8Array {
  const packets = new Uint8Array(bytes.length);
  let length = 0;
  for (let at = 0; at + TS_PACKET_BYTES <= bytes.length; ) {
    const next = at + TS_PACKET_BYTES;
    if (bytes[at] !== TS_SYNC || (next < bytes.length && bytes[next] !== TS_SYNC)) {
      at++;
      continue;
    }
    packets.set(bytes.subarray(at, next), length);
    length += TS_PACKET_BYTES;
    at = next;
  }
  return packets.subarray(0, length);
}
