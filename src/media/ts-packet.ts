/** Size of a transport stream packet (ISO 13818-1 2.4.3.2). */
export const TS_PACKET_BYTES = 188;
/** The first byte of every packet. */
export const TS_SYNC = 0x47;
/** PID of null packets (stuffing). */
export const NULL_PID = 0x1fff;

/** Returns null packets (ISO 13818-1 2.4.3.2), which receivers ignore. */
export function nullPackets(count: number): Uint8Array<ArrayBuffer> {
  const packets = new Uint8Array(count * TS_PACKET_BYTES).fill(0xff);
  for (let at = 0; at < packets.length; at += TS_PACKET_BYTES)
    packets.set([TS_SYNC, NULL_PID >> 8, NULL_PID & 0xff, 0x10], at);
  return packets;
}

/** Returns the PID of the packet at offset `at`. */
export function pidAt(bytes: Uint8Array, at: number): number {
  return ((bytes[at + 1]! & 0x1f) << 8) | bytes[at + 2]!;
}

/** Returns true if a PES packet or a section begins in the packet at offset `at`. */
export function isUnitStartAt(bytes: Uint8Array, at: number): boolean {
  return (bytes[at + 1]! & 0x40) !== 0;
}

/** Returns true if the packet at offset `at` has the `random_access_indicator` (ISO 13818-1 2.4.3.5). */
export function isRandomAccessAt(bytes: Uint8Array, at: number): boolean {
  return (bytes[at + 3]! & 0x20) !== 0 && bytes[at + 4]! > 0 && (bytes[at + 5]! & 0x40) !== 0;
}

/** Returns the offset in `bytes` of the payload of the packet at `at`; `at + 188` if it has none or its lengths are invalid. */
export function payloadStartAt(bytes: Uint8Array, at: number): number {
  const control = bytes[at + 3]!;
  if (!(control & 0x10)) return at + TS_PACKET_BYTES;
  if (!(control & 0x20)) return at + 4;
  return at + Math.min(TS_PACKET_BYTES, 5 + bytes[at + 4]!);
}

/** Writes the four header bytes of a packet (ISO 13818-1 2.4.3.2). */
export function writeTsHeader(
  bytes: Uint8Array,
  at: number,
  pid: number,
  isUnitStart: boolean,
  hasAdaptation: boolean,
  continuity: number,
): void {
  bytes[at] = TS_SYNC;
  bytes[at + 1] = (isUnitStart ? 0x40 : 0) | (pid >> 8);
  bytes[at + 2] = pid;
  bytes[at + 3] = (hasAdaptation ? 0x30 : 0x10) | (continuity & 15);
}

/** Writes a PCR, six bytes (ISO 13818-1 2.4.3.5): `ticks` of 90 kHz as base, extension 0. */
export function writePcr(bytes: Uint8Array, at: number, ticks: number): void {
  bytes[at] = ticks / 0x2000000;
  bytes[at + 1] = (ticks / 0x20000) & 0xff;
  bytes[at + 2] = (ticks / 0x200) & 0xff;
  bytes[at + 3] = (ticks / 2) & 0xff;
  bytes[at + 4] = (ticks % 2) * 0x80 + 0x7e;
  bytes[at + 5] = 0;
}

/** Writes a packet without payload, only with a PCR. Its continuity counter is that of the previous packet with payload. */
export function writePcrPacket(
  bytes: Uint8Array,
  at: number,
  pid: number,
  continuity: number,
  ticks: number,
): void {
  writeTsHeader(bytes, at, pid, false, true, continuity);
  bytes[at + 3] = 0x20 | (continuity & 15);
  bytes[at + 4] = 183;
  bytes[at + 5] = 0x10;
  writePcr(bytes, at + 6, ticks);
  bytes.fill(0xff, at + 12, at + TS_PACKET_BYTES);
}
