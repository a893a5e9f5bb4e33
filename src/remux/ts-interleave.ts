import { SluiceError } from "../base/errors.ts";
import { buildPmt, PAT_PID, type PmtStream } from "../media/psi.ts";
import { deltaTicks } from "../media/timestamps.ts";
import { NULL_PID, pidAt, TS_PACKET_BYTES, TS_SYNC } from "../media/ts-packet.ts";
import { streamsOf, type TsStream } from "../media/ts-programme.ts";
import { TableReader, type TsTables } from "../media/ts-tables.ts";
import { nextUnit } from "../media/ts-units.ts";
import { TablesWriter, tableCount } from "./ts-tables-writer.ts";

/** Where sound goes that would stand on a PID of the picture. */
const FIRST_OWN_PID = 0x1a0;

/** A run of packets of one stream, and when it is decoded. */
interface Run {
  readonly packets: Uint8Array;
  readonly dts: number;
}

/** A piece of a transport stream that was read. */
interface Piece {
  readonly packets: Uint8Array;
  readonly tables: TsTables;
  readonly streams: readonly TsStream[];
}

/** When the first unit of the leading stream is shown, in ticks; undefined where there is none. Throws `broken_media`. */
export function firstTicks(bytes: Uint8Array): number | undefined {
  const { packets, streams } = readPiece(bytes);
  const stream = streams.find(({ kind }) => kind === "video") ?? streams[0];
  return stream && nextUnit(packets, 0, stream)?.pts;
}

/**
 * One transport stream of a picture and of sound that came apart from it: packets stay as they are but for the sound's PID,
 * in the order in which they are decoded. `sound` are pieces of one stream, one after another. Throws `broken_media`.
 */
export function interleaveTs(
  picture: Uint8Array,
  sound: readonly Uint8Array[],
  language: string,
): Uint8Array<ArrayBuffer> {
  const main = readPiece(picture);
  const pieces = sound.map(readPiece);
  const taken = new Set([main.tables.pmtPid, ...main.tables.pmt.streams.map(({ pid }) => pid)]);
  const [heard] = pieces;
  const own = heard?.streams.find(({ kind }) => kind === "audio");
  const told = heard?.tables.pmt.streams.find(({ pid }) => pid === own?.pid);
  // A picture that has sound of its own all the same keeps the other one: nobody shall hear two.
  const muted = new Set(main.streams.filter(({ kind }) => own && kind === "audio").map(({ pid }) => pid));
  const pid = freePid(taken);
  const streams: PmtStream[] = main.tables.pmt.streams.filter((stream) => !muted.has(stream.pid));
  if (told) streams.push({ ...told, pid, ...(language !== "und" && { language }) });
  const { pmt, pmtPid } = main.tables;
  const writer = new TablesWriter(pmtPid, pmt.programme, buildPmt({ ...pmt, streams }));
  const kept = new Set([pmt.pcrPid, ...streams.map((stream) => stream.pid)]);
  kept.delete(NULL_PID);
  const leading = main.streams.find(({ kind }) => kind === "video") ?? main.streams[0];
  const runs = merged(
    leading ? runsOf(main.packets, leading, (packet) => kept.has(packet)) : [],
    pieces.flatMap((piece) => soundRuns(piece, pid)),
  );
  return written(runs, writer);
}

function soundRuns(piece: Piece, pid: number): Run[] {
  const stream = piece.streams.find(({ kind }) => kind === "audio");
  if (!stream) return [];
  const runs = runsOf(piece.packets, stream, (packet) => packet === stream.pid);
  for (const { packets } of runs) {
    for (let at = 0; at < packets.length; at += TS_PACKET_BYTES) {
      packets[at + 1] = (packets[at + 1]! & 0xe0) | (pid >> 8);
      packets[at + 2] = pid;
    }
  }
  return runs;
}

/** The packets that are kept, cut before each unit of `leading`; what stands before the first goes with it. */
function runsOf(packets: Uint8Array, leading: TsStream, keeps: (pid: number) => boolean): Run[] {
  const runs: Run[] = [];
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

/** Both in one order; each stays in its own. */
function merged(a: readonly Run[], b: readonly Run[]): Run[] {
  const all: Run[] = [];
  let next = 0;
  for (const run of a) {
    while (next < b.length && deltaTicks(b[next]!.dts, run.dts) <= 0) all.push(b[next++]!);
    all.push(run);
  }
  return [...all, ...b.slice(next)];
}

/** Tables stand at the start, and evenly among the rest. */
function written(runs: readonly Run[], writer: TablesWriter): Uint8Array<ArrayBuffer> {
  const [first, last] = [runs[0], runs.at(-1)];
  const seconds = first && last ? Math.max(0, deltaTicks(last.dts, first.dts)) / 90_000 : 0;
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

function freePid(taken: ReadonlySet<number>): number {
  let pid = FIRST_OWN_PID;
  while (taken.has(pid)) pid++;
  return pid;
}

function readPiece(bytes: Uint8Array): Piece {
  const packets = wholePackets(bytes);
  const reader = new TableReader();
  for (let at = 0; at < packets.length; at += TS_PACKET_BYTES) {
    const pid = pidAt(packets, at);
    if (pid === PAT_PID || reader.wants(pid)) reader.push(packets, at);
  }
  const tables = reader.tables(true);
  if (!tables) throw new SluiceError("broken_media", "a segment of MPEG-TS comes without its tables");
  return { packets, tables, streams: streamsOf(tables.pmt) };
}

/** The packets without what stands between them; a copy. */
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
