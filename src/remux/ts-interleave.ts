import { SluiceError } from "../base/errors.ts";
import { mergePmt } from "../media/pmt-merge.ts";
import { PAT_PID } from "../media/psi.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import { NULL_PID, pidAt, TS_PACKET_BYTES, TS_SYNC } from "../media/ts-packet.ts";
import { streamsOf, type TsStream } from "../media/ts-programme.ts";
import { TableReader, type TsTables } from "../media/ts-tables.ts";
import { nextUnit } from "../media/ts-units.ts";
import { TablesWriter, tableCount } from "./ts-tables-writer.ts";

/** Where sound goes that would stand on a PID of the picture. */
const FIRST_OWN_PID = 0x1a0;

/** Times that are broken must not become tables without end. */
const MAX_TABLE_SECONDS = 60;

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
  const [heard] = pieces;
  const own = heard?.streams.find(({ kind }) => kind === "audio");
  // A picture that has sound of its own all the same keeps the other one: nobody shall hear two.
  const muted = new Set(main.streams.filter(({ kind }) => own && kind === "audio").map(({ pid }) => pid));
  const pid = freePid(main.tables);
  const { pmt, pmtPid, pmtSection } = main.tables;
  const taken = own && { section: heard!.tables.pmtSection, pid: own.pid, newPid: pid, language };
  const writer = new TablesWriter(pmtPid, pmt.programme, mergePmt(pmtSection, muted, taken));
  const kept = new Set([pmt.pcrPid, ...pmt.streams.map((stream) => stream.pid)]);
  // The clock stays, whoever carries it.
  for (const gone of muted) if (gone !== pmt.pcrPid) kept.delete(gone);
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
  return runs.map(({ packets, dts }) => ({ packets: renamed(packets, pid), dts }));
}

/** On another PID, and without its clock: there is one already. What carried the clock alone goes. */
function renamed(packets: Uint8Array, pid: number): Uint8Array {
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

/** The packets that are kept, cut before each unit of `stream`; what stands before the first goes with it. */
function runsOf(packets: Uint8Array, stream: TsStream, keeps: (pid: number) => boolean): Run[] {
  const runs: Run[] = [];
  // Which of them are keyframes does not matter here, and would cost a look into each.
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
  const taken = new Set([pmtPid, pmt.pcrPid, ...pmt.streams.map((stream) => stream.pid)]);
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
