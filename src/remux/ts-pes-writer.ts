import { assert } from "../base/assert.ts";
import { pesHeaderBytes, writePesHeader } from "../media/pes.ts";
import { wrapTicks } from "../media/timestamps.ts";
import { TS_PACKET_BYTES, writePcr, writeTsHeader } from "../media/ts-packet.ts";
import type { FrameWriter } from "./ts-frames.ts";
import type { TsMuxPacket } from "./ts-mux-input.ts";

/** Where a PES packet goes. */
export interface PesTrack {
  readonly pid: number;
  readonly streamId: number;
  readonly frames: FrameWriter;
}

/** One PES packet, before its bytes are written. Times are unwrapped ticks. */
export interface PesPlan {
  readonly track: PesTrack;
  readonly pts: number;
  readonly dts: number;
  readonly frames: readonly TsMuxPacket[];
  /** Of elementary stream. */
  readonly bytes: number;
  /** Its first transport packet carries the programme clock. */
  readonly hasClock: boolean;
  readonly isKey: boolean;
  /** How many transport packets it takes; set by {@link spreadPackets}. */
  packets: number;
}

/** Payload of a transport packet without an adaptation field. */
const PACKET_PAYLOAD = 184;

/**
 * Decides how many transport packets each PES packet of one PID takes, so that their sum is a multiple of 16: the spare ones
 * go to the last PES packets, whose bytes are spread thinner (at least one in each packet, the PES header whole in the first).
 */
export function spreadPackets(plans: readonly PesPlan[]): void {
  let total = 0;
  for (const plan of plans) {
    plan.packets = Math.ceil((headerBytes(plan) + adaptationBytes(plan) + plan.bytes) / PACKET_PAYLOAD);
    total += plan.packets;
  }
  let spare = (16 - (total % 16)) % 16;
  for (let i = plans.length - 1; i >= 0 && spare > 0; i--) {
    const plan = plans[i]!;
    const more = Math.min(spare, plan.bytes - plan.packets);
    if (more <= 0) continue;
    plan.packets += more;
    spare -= more;
  }
  const last = plans.at(-1);
  if (spare === 0 || !last) return;
  // Only a segment of one tiny frame comes here: its PES header is split over packets, which is allowed.
  last.packets += spare;
  assert(last.packets <= last.bytes + headerBytes(last), "a frame too small to fill 16 packets");
}

/**
 * Writes a PES packet at `at` and returns where it ends. The elementary stream is written once, at the far end of the region;
 * each packet's share then moves forward to its place, which never runs into bytes not yet moved.
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
  for (const frame of plan.frames) to += track.frames.write(frame.data, frame.isKey, out, to);
  assert(to === end, "a frame of another size than measured");
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

function headerBytes(plan: PesPlan): number {
  return pesHeaderBytes(plan.pts, plan.dts);
}

/** What the first packet's adaptation field takes at least. */
function adaptationBytes(plan: PesPlan): number {
  return plan.hasClock ? 8 : plan.isKey ? 2 : 0;
}
