import { readU16, writeU16, writeU32 } from "../base/bytes.ts";
import { TS_PACKET_BYTES, TS_SYNC } from "./ts-packet.ts";

/** The transport packets of an RTP packet. */
interface RtpPayload {
  /** Whole packets, as a view. */
  readonly packets: Uint8Array;
  /** RTP sequence number, 16 bits. */
  readonly sequence: number;
}

/**
 * Reads MPEG-TS from an RTP packet (RFC 2250 2, RFC 3550 5.1) with any payload type. Returns undefined if the datagram is not an RTP
 * packet with whole transport packets.
 */
export function readRtpTs(datagram: Uint8Array): RtpPayload | undefined {
  if (datagram.length < 12 + TS_PACKET_BYTES || datagram[0]! >> 6 !== 2) return undefined;
  let start = 12 + 4 * (datagram[0]! & 15);
  if (datagram[0]! & 0x10) {
    if (start + 4 > datagram.length) return undefined;
    start += 4 + 4 * readU16(datagram, start + 2);
  }
  const padding = datagram[0]! & 0x20 ? datagram[datagram.length - 1]! : 0;
  const packets = datagram.subarray(start, Math.max(start, datagram.length - padding));
  if (packets.length === 0 || packets.length % TS_PACKET_BYTES !== 0) return undefined;
  for (let at = 0; at < packets.length; at += TS_PACKET_BYTES) if (packets[at] !== TS_SYNC) return undefined;
  return { packets, sequence: readU16(datagram, 2) };
}

/** Payload type of MPEG-TS (RFC 3551 6). */
const MPEG_TS_TYPE = 33;

/** Writes an RTP packet with transport packets. `ticks`: the time of sending, of a 90 kHz clock. The source identifier is 0. */
export function writeRtpTs(packets: Uint8Array, sequence: number, ticks: number): Uint8Array<ArrayBuffer> {
  const datagram = new Uint8Array(12 + packets.length);
  datagram.set([0x80, MPEG_TS_TYPE]);
  writeU16(datagram, 2, sequence & 0xffff);
  writeU32(datagram, 4, ticks >>> 0);
  datagram.set(packets, 12);
  return datagram;
}
