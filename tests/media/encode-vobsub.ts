import type { SentPicture } from "./encode-pgs.ts";

/** A subpicture packet of a DVD: shown at once, and hidden after two seconds. Pixels are 0 to 3. */
export function subpicture({ x, y, width, height, pixels }: SentPicture): Uint8Array {
  const fields = [0, 1].map((field) => {
    const bytes: number[] = [];
    for (let row = field; row < height; row += 2)
      bytes.push(...encodeLine(pixels.slice(row * width, (row + 1) * width)));
    return bytes;
  });
  const [top, bottom] = fields as [number[], number[]];
  const control = 4 + top.length + bottom.length;
  const [right, below] = [x + width - 1, y + height - 1];
  const area = [
    x >> 4,
    ((x & 15) << 4) | (right >> 8),
    right & 255,
    y >> 4,
    ((y & 15) << 4) | (below >> 8),
    below & 255,
  ];
  const show = [3, 0x32, 0x10, 4, 0xff, 0xf0, 5, ...area, 6, ...u16(4), ...u16(4 + top.length), 1, 0xff];
  const hideAt = control + 4 + show.length;
  const hide = [...u16(Math.round((2 * 90_000) / 1024)), ...u16(hideAt), 2, 0xff];
  const body = [...top, ...bottom, 0, 0, ...u16(hideAt), ...show, ...hide];
  return Uint8Array.from([...u16(4 + body.length), ...u16(control), ...body]);
}

/** Wraps a packet for a `.sub` file: pack headers, and PES packets of at most 2,000 bytes of stream `index`. */
export function programStream(packet: Uint8Array, index: number): Uint8Array {
  const out: number[] = [];
  for (let at = 0; at < packet.length; at += 2000) {
    const data = packet.subarray(at, at + 2000);
    out.push(0, 0, 1, 0xba, 0x44, 0, 4, 0, 4, 1, 0, 0, 3, 0xf8);
    out.push(0, 0, 1, 0xbd, ...u16(4 + data.length), 0x81, 0, 0, 0x20 + index, ...data);
  }
  return Uint8Array.from(out);
}

/** A line of runs: 2 bits of colour after a count of 2, 6, 10 or 14 bits, in nibbles; whole bytes. */
function encodeLine(line: readonly number[]): number[] {
  const nibbles: number[] = [];
  for (let at = 0; at < line.length; ) {
    let count = 1;
    while (count < 255 && at + count < line.length && line[at + count] === line[at]) count++;
    const value = (count << 2) | line[at]!;
    const digits = count < 4 ? 1 : count < 16 ? 2 : count < 64 ? 3 : 4;
    for (let digit = digits - 1; digit >= 0; digit--) nibbles.push((value >> (4 * digit)) & 15);
    at += count;
  }
  if (nibbles.length % 2 === 1) nibbles.push(0);
  return Array.from(
    { length: nibbles.length / 2 },
    (_, index) => (nibbles[2 * index]! << 4) | nibbles[2 * index + 1]!,
  );
}

function u16(value: number): number[] {
  return [value >> 8, value & 255];
}
