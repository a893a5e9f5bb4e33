import { assert } from "../base/assert.ts";
import { pesHeaderBytes, writePesHeader } from "../media/pes.ts";
import { wrapTicks } from "../media/timestamps.ts";
import { TS_PACKET_BYTES, writePcr, writeTsHeader } from "../media/ts-packet.ts";
import type { TsMuxPacket } from "./ts-mux-input.ts";

/** The destination of a PES packet. */
export interface PesTrack {
  readonly pid: number;
  readonly streamId: number;
  /** Writes a frame at offset `at` and returns its size in the stream. */
  write(frame: TsMuxPacket, out: Uint8Array, at: number): number;
}

/** One PES packet, before its bytes are written. Times are unwrapped ticks. */
export interface PesPlan {
  readonly track: PesTrack;
  readonly pts: number;
  readonly dts: number;
  readonly frames: readonly TsMuxPacket[];
  /** Size of the elementary stream data. */
  readonly bytes: number;
  /** True if its first transport packet carries a PCR. */
  readonly hasClock: boolean;
  readonly isKey: boolean;
  /** Number of transport packets; {@link spreadPackets} raises it. */
  packets: number;
}

/** Payload of a transport packet without an adaptation field. */
const PACKET_PAYLOAD = 184;

/** The smallest number of transport packets that carry a PES packet. */
export function leastPackets(plan: Omit<PesPlan, "packets">): number {
  return Math.ceil((headerBytes(plan) + adaptationBytes(plan) + plan.bytes) / PACKET_PAYLOAD);
}

/** How many more transport packets a PES packet can be distributed over, at least one byte in each. */
export function sparePackets(plan: PesPlan): number {
  return Math.max(0, plan.bytes - plan.packets);
}

/**
 * Distributes the last PES packets of one PID over `spare` more transport packets, so that the packets of the segment are a multiple
 * of 16. Each packet has at least one byte of the frame, and the first has the whole PES header.
 */
export function spreadPackets(plans: readonly PesPlan[], spare: number): void {
  for (let i = plans.length - 1; i >= 0 && spare > 0; i--) {
    const plan = plans[i]!;
    const more = Math.min(spare, sparePackets(plan));
    plan.packets += more;
    spare -= more;
  }
  const last = plans.at(-1);
  if (spare === 0 || !last) return;
  // Only for a segment with a single tiny frame: its PES header is split over packets, which is allowed.
  last.packets += spare;
  assert(last.packets <= last.bytes + headerBytes(last), "the frame is too small to fill 16 packets");
}

/**
 * Writes a PES packet at offset `at` and returns the offset of its end. The elementary stream data is written once, at the end of the
 * region; each packet's share then moves forward to its position, which never overlaps bytes that are not yet moved.
 */
export function writePes(
  plan: PesPlan,
  out: Uint8Array,
  at: number,
  counter: number,
  clockLead: number,
): number {
  const { track, packets } = plan;
  const end = at + packets * TS_PACKET_BYTES;
  const head = headerBytes(plan);
  let from = end - plan.bytes - head;
  writePesHeader(out, from, track.streamId, plan.bytes, wrapTicks(plan.pts), wrapTicks(plan.dts));
  let to = from + head;
  for (const frame of plan.frames) to += track.write(frame, out, to);
  assert(to === end, "the frame does not have the measured size");
  for (let i = 0; i < packets; i++) {
    const start = at + i * TS_PACKET_BYTES;
    const fixed = i === 0 ? adaptationBytes(plan) : 0;
    const share = Math.min(PACKET_PAYLOAD - fixed, end - from - (packets - 1 - i));
    const body = start + TS_PACKET_BYTES - share;
    out.copyWithin(body, from, from + share);
    from += share;
    writeTsHeader(out, start, track.pid, i === 0, body > start + 4, counter + i);
    if (body > start + 4) writeAdaptation(plan, out, start + 4, body, i === 0, clockLead);
  }
  return end;
}

function writeAdaptation(
  plan: PesPlan,
  out: Uint8Array,
  at: number,
  end: number,
  isFirst: boolean,
  clockLead: number,
): void {
  out[at] = end - at - 1;
  if (end - at === 1) return;
  const hasClock = isFirst && plan.hasClock;
  out[at + 1] = (isFirst && plan.isKey ? 0x40 : 0) | (hasClock ? 0x10 : 0);
  if (hasClock) writePcr(out, at + 2, wrapTicks(plan.dts - clockLead));
  out.fill(0xff, at + (hasClock ? 8 : 2), end);
}

function headerBytes(plan: Pick<PesPlan, "pts" | "dts">): number {
  return pesHeaderBytes(plan.pts, plan.dts);
}

/** Minimum size of the adaptation field of the first packet. */
function adaptationBytes(plan: Pick<PesPlan, "hasClock" | "isKey">): number {
  return plan.hasClock ? 8 : plan.isKey ? 2 : 0;
}
