import { concatBytes, writeU32 } from "../../src/base/bytes.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";
import { captionUnit, characters, defineWindow, dtvccPacket } from "../media/encode-cea708.ts";
import { SYNTHETIC_TRACKS, syntheticPackets } from "./synthetic-ts.ts";

/** [start, end, text], in seconds of the film. */
export const CAPTIONS = [
  [1, 3, "First caption"],
  [5, 9, "Across the border"],
  [10, 11, "Last one"],
] as const;

/** A film of 14.4 s with these captions as CEA-708. Each frame has caption data, `analog` as CEA-608. */
export function captionedTs(analog: readonly number[] = []): Uint8Array<ArrayBuffer> {
  const idle = dtvccPacket(2, [0]);
  const packets = syntheticPackets(14.4).map((packet) => {
    if (packet.track !== 0) return packet;
    const isAt = (seconds: number) => Math.abs(packet.ptsSeconds - seconds) < 0.02;
    const begins = CAPTIONS.find(([start]) => isAt(start));
    const ends = CAPTIONS.some(([, end]) => isAt(end));
    const shown = begins && [...defineWindow(0), 0x88, 1, ...characters(begins[2])];
    const digital = shown ? dtvccPacket(1, shown) : ends ? dtvccPacket(1, [0x8c, 0xff]) : idle;
    const unit = captionUnit(concatBytes([Uint8Array.from(analog), digital]));
    writeU32(unit, 0, unit.length - 4);
    return { ...packet, data: concatBytes([unit, packet.data]) };
  });
  return new TsMuxer(SYNTHETIC_TRACKS).segment(packets);
}
