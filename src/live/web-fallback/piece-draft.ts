import type { PacketStretch } from "../../media/packet-stretch.ts";
import { PAT_PID } from "../../media/psi.ts";
import { pidAt, TS_PACKET_BYTES } from "../../media/ts-packet.ts";
import type { PieceHeader } from "../../wire/live/header.ts";

/** How far the source's continuity counters of PAT and PMT are ahead of those in its input, modulo 16. */
export interface TableShift {
  readonly pat: number;
  readonly pmt: number;
}

/** A piece rebuilt as the source made it. */
export interface PieceDraft {
  readonly bytes: Uint8Array;
  /** The packet index in the stretch at which the next piece begins. */
  readonly next: number;
  readonly shift: TableShift;
}

/** The shift of a source that sends tables with each keyframe: it inserts none. */
export const NO_SHIFT: TableShift = { pat: 0, pmt: 0 };
/** Tables come about ten times a second; older ones are not searched. */
const MAX_BACK_PACKETS = 4096;

/** Rebuilds the piece with this header from the packets at `at`: PAT and PMT precede its keyframe (inserted if the
 * input has none there), with renumbered continuity counters. Returns undefined if packets are missing. */
export function pieceDraft(
  stretch: PacketStretch,
  { pieceBytes, randomAccessOffset }: PieceHeader,
  at: number,
  shift: TableShift,
): PieceDraft | undefined {
  const count = pieceBytes / TS_PACKET_BYTES;
  if (!Number.isInteger(count)) return undefined;
  const key = randomAccessOffset === undefined ? count : randomAccessOffset / TS_PACKET_BYTES;
  const atKey = key < count ? stretch.packets(at + key, at + key + 1) : undefined;
  if (key < count && !atKey) return undefined;
  const tables = atKey && pidAt(atKey, 0) !== PAT_PID ? stretch.tables : new Uint8Array(0);
  if (!tables) return undefined;
  const own = tables.length / TS_PACKET_BYTES;
  const taken = count - own;
  if (taken < key && own > 0) return undefined;
  const packets = stretch.packets(at, at + taken);
  if (!packets) return undefined;
  const bytes = new Uint8Array(pieceBytes);
  bytes.set(own > 0 ? packets.subarray(0, key * TS_PACKET_BYTES) : packets);
  if (own > 0) {
    bytes.set(tables, key * TS_PACKET_BYTES);
    bytes.set(packets.subarray(key * TS_PACKET_BYTES), (key + own) * TS_PACKET_BYTES);
  }
  const after = recount(stretch, bytes, at, { from: key, to: key + own }, shift);
  return { bytes, next: at + taken, shift: after };
}

/** Renumbers the tables in `bytes`. The source inserted those in `[own.from, own.to)`. */
function recount(
  stretch: PacketStretch,
  bytes: Uint8Array,
  at: number,
  own: { readonly from: number; readonly to: number },
  shift: TableShift,
): TableShift {
  if (own.from === own.to && shift.pat === 0 && shift.pmt === 0) return shift;
  const now = { ...shift };
  const lastCounter = new Map<"pat" | "pmt", number>();
  const kindAt = (packet: number) => {
    const pid = pidAt(bytes, packet * TS_PACKET_BYTES);
    return stretch.isTable(pid) ? (pid === PAT_PID ? "pat" : "pmt") : undefined;
  };
  for (let packet = 0; packet < bytes.length / TS_PACKET_BYTES; packet++) {
    const kind = kindAt(packet);
    if (kind === undefined) continue;
    const counterAt = packet * TS_PACKET_BYTES + 3;
    if (packet >= own.from && packet < own.to) {
      now[kind]++;
      const last = lastCounter.get(kind) ?? counterBefore(stretch, at, kind);
      bytes[counterAt] = (bytes[counterAt]! & 0xf0) | ((last + now[kind]) & 15);
    } else {
      const counter = bytes[counterAt]! & 15;
      lastCounter.set(kind, counter);
      bytes[counterAt] = (bytes[counterAt]! & 0xf0) | ((counter + now[kind]) & 15);
    }
  }
  return { pat: now.pat & 15, pmt: now.pmt & 15 };
}

/** Returns the counter of the last such table before `at`; 0 if none is near. */
function counterBefore(stretch: PacketStretch, at: number, kind: "pat" | "pmt"): number {
  for (let back = at - 1; back >= Math.max(stretch.start, at - MAX_BACK_PACKETS); back--) {
    const packet = stretch.packets(back, back + 1)!;
    const pid = pidAt(packet, 0);
    if (stretch.isTable(pid) && (pid === PAT_PID) === (kind === "pat")) return packet[3]! & 15;
  }
  return 0;
}
