/** A DTVCC packet of one service block, as caption data: type, and two bytes, for each entry (CTA-708 5). */
export function dtvccPacket(service: number, block: readonly number[], sequence = 0): Uint8Array {
  const head = service < 7 ? [(service << 5) | block.length] : [0xe0 | block.length, service];
  const content = [...head, ...block];
  if (content.length % 2 === 0) content.push(0);
  const packet = [(sequence << 6) | ((content.length + 1) / 2), ...content];
  return Uint8Array.from(
    Array.from({ length: packet.length / 2 }, (_, i) => [
      i === 0 ? 3 : 2,
      packet[2 * i]!,
      packet[2 * i + 1]!,
    ]).flat(),
  );
}

/** Text of the first character table. */
export function characters(text: string): number[] {
  return [...text].map((one) => one.charCodeAt(0));
}

/** Defines a window of 32 columns and makes it current. */
export function defineWindow(id: number, { rows = 2, top = 60, isVisible = true } = {}): number[] {
  return [0x98 + id, isVisible ? 0x20 : 0, top, 10, rows - 1, 31, 0];
}

/** A supplemental information unit of H.264 with caption data (ATSC A/53 part 4, 6.2.3). */
export function captionUnit(triplets: Uint8Array): Uint8Array {
  const entries = Array.from({ length: triplets.length / 3 }, (_, i) => [
    0xfc | triplets[3 * i]!,
    triplets[3 * i + 1]!,
    triplets[3 * i + 2]!,
  ]);
  const data = [
    0xb5,
    0,
    0x31,
    ...characters("GA94"),
    3,
    0x40 | entries.length,
    0xff,
    ...entries.flat(),
    0xff,
  ];
  const sei = [6, 4, data.length, ...data, 0x80];
  // Emulation prevention (ISO 14496-10 7.4.1).
  const out = [0, 0, 0, 1];
  let zeros = 0;
  for (const byte of sei) {
    if (zeros >= 2 && byte <= 3) {
      out.push(3);
      zeros = 0;
    }
    out.push(byte);
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return Uint8Array.from(out);
}
