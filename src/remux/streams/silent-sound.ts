import { concatBytes, latin1Bytes } from "../../base/bytes.ts";
import { pesHeaderBytes, writePesHeader } from "../../media/pes.ts";
import { deltaTicks, TICKS_PER_SECOND, wrapTicks } from "../../media/timestamps.ts";
import {
  isUnitStartAt,
  payloadStartAt,
  pidAt,
  TS_PACKET_BYTES,
  writeTsHeader,
} from "../../media/ts-packet.ts";
import { nextUnit } from "../../media/ts-units.ts";

/** A frame of silence: 48 kHz, two channels unless noted. */
interface SilentFrame {
  readonly bytes: Uint8Array;
  readonly ticks: number;
  readonly streamId: number;
}

/** 64 kbit/s, made by FFmpeg 5.1 (`anullsrc`, ETSI TS 102 366). */
const AC3 =
  "C3e0nghAQ+EG8AEICAghAQEEVx8+fPnz58+fPnz7/nV8+fPnz58+fPj/nV8+fPnz58+fPjL/AkSJIAAAAAG18+fPm222228ePAAAAA2vnz5822" +
  "2223jx4YAAAAAABtfPnz5tttttvHjwAAAANr58+fNttttt48eGAAAAAAAbXz58+bbbbbbx48AAAADa+fPnzbbbbbePHhgAAAAAAG18+fPm2222" +
  "28ePAAAAA2vnz58222223jx4YAAAAAABtfPnz5tttttvHjwAAAANr58+fNttttt48eGAAAAAAAbXz58+bbbbbbx48AAAADa+fPnzbbbbbePHgA" +
  "AAAAAAAADiVg==";
/** 32 kbit/s, made in the same way. */
const EAC3 =
  "C3cAPzSHwAAgAAAAOIAABAQEAQEBAY+fPnz58+fPnz59/zq+fPnz58+fPnx/zq+fPnz58+fPnwAAAd41rWtAAdrWsAAAO8a1rWgAO1rWAAAHeNa1" +
  "rQAHa1rAAADvGta1oADta1gAAB3jWta0AB2tawAAA7xrWtaAA7WtYAAA1cQ=";
/** One channel, made in the same way (ETSI TS 102 114). */
const DTS =
  "f/6AAfw8D/A0wAE4AAHvgyZjbYAABAAAAAA911y5cuXXXve972zNVAAAAAAAAAAAgQIECBAgQAAAAAAAAAAAAAAAAAAAAAAAAAAJJJJIiIiIiIiI" +
  "iIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACIiIiIiIiIiJJJJJJJJJJJJJJJJJJJJJJJJFVVqqqqqgAAAAAAAAAAAAAAAAAAkkkkiI" +
  "iIiIiIiIgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAIiIiIiIiIiIkkkkkkkkkkkkkkkkkkkkkkkkVVWqqqqqAAAAAAAAAAAAAAAAAA" +
  "D//wAA==";
/** ADTS with a raw data block of two empty channels (ISO 14496-3 1.A.2). */
const AAC = "//FMgAG//CEQBGCMHA==";
/** 64 kbit/s, layer II: no sub-band has bits (ISO 11172-3 2.4.1.6). */
const MP2 = new Uint8Array(192);
MP2.set([0xff, 0xfd, 0x44, 0x00]);

const FRAMES: Readonly<Record<string, SilentFrame>> = {
  ac3: { bytes: latin1Bytes(atob(AC3)), ticks: 2_880, streamId: 0xbd },
  eac3: { bytes: latin1Bytes(atob(EAC3)), ticks: 2_880, streamId: 0xbd },
  dts: { bytes: latin1Bytes(atob(DTS)), ticks: 960, streamId: 0xbd },
  aac: { bytes: latin1Bytes(atob(AAC)), ticks: 1_920, streamId: 0xc0 },
  mp2: { bytes: MP2, ticks: 2_160, streamId: 0xc0 },
};
/** The stream ids of video are 0xe0 to 0xef. */
const VIDEO_STREAM_ID = 0xe0;
/** Longer gaps are not filled. */
const MAX_FILLED_TICKS = 10 * TICKS_PER_SECOND;

/**
 * Adds silence on the PID of a sound that players read and the present source does not have: without packets of it, many players stop
 * the picture too.
 */
export class SilentSound {
  /** The time of the next frame, on the clock of the source. */
  #next: number | undefined;
  #counter = 0;

  /** Another source follows. */
  restart(): void {
    this.#next = undefined;
  }

  /** Returns whole packets of a source with frames up to its last picture. Returns `packets` if nothing is missing, or the codec is another. */
  fill(
    packets: Uint8Array,
    missing: { readonly pid: number; readonly codec: string } | undefined,
  ): Uint8Array {
    const frame = missing && FRAMES[missing.codec];
    if (frame === undefined) return packets;
    const parts: Uint8Array[] = [];
    let from = 0;
    for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES) {
      const dts = isUnitStartAt(packets, at) ? pictureTimeAt(packets, at) : undefined;
      if (dts === undefined) continue;
      const isFar = Math.abs(deltaTicks(dts, this.#next ?? dts)) > MAX_FILLED_TICKS;
      let next = isFar ? dts : (this.#next ?? dts);
      parts.push(packets.subarray(from, at));
      from = at;
      for (; deltaTicks(dts, next) >= 0; next = wrapTicks(next + frame.ticks))
        parts.push(this.#packets(missing!.pid, frame, next));
      this.#next = next;
    }
    if (parts.length === 0) return packets;
    return concatBytes([...parts, packets.subarray(from)]);
  }

  /** A frame as packets. */
  #packets(pid: number, { bytes, streamId }: SilentFrame, pts: number): Uint8Array {
    const unit = new Uint8Array(pesHeaderBytes(pts, pts) + bytes.length);
    unit.set(bytes, writePesHeader(unit, 0, streamId, bytes.length, pts, pts));
    const count = Math.ceil(unit.length / (TS_PACKET_BYTES - 4));
    const out = new Uint8Array(count * TS_PACKET_BYTES).fill(0xff);
    for (let i = 0, from = 0; i < count; i++) {
      const at = i * TS_PACKET_BYTES;
      const payload = unit.subarray(from, from + TS_PACKET_BYTES - 4);
      const stuffing = TS_PACKET_BYTES - 4 - payload.length;
      writeTsHeader(out, at, pid, i === 0, stuffing > 0, this.#counter++);
      if (stuffing > 0) out[at + 4] = stuffing - 1;
      if (stuffing > 1) out[at + 5] = 0;
      out.set(payload, at + 4 + stuffing);
      from += payload.length;
    }
    return out;
  }
}

/** The decode time of the picture that starts in the packet at `at`; undefined if it is another unit. */
function pictureTimeAt(packets: Uint8Array, at: number): number | undefined {
  const body = payloadStartAt(packets, at);
  if (body + 3 >= at + TS_PACKET_BYTES || (packets[body + 3]! & 0xf0) !== VIDEO_STREAM_ID) return undefined;
  const packet = packets.subarray(at, at + TS_PACKET_BYTES);
  return nextUnit(packet, 0, { pid: pidAt(packets, at), kind: "data", codec: "", language: "" })?.dts;
}
