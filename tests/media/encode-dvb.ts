/** Segments of DVB subtitles (ETSI EN 300 743 7.2) to encode, without their headers. */
export interface SentSegment {
  readonly type: number;
  readonly page?: number;
  readonly body: readonly number[];
}

/** The data of a PES packet. */
export function dvbData(...segments: readonly SentSegment[]): Uint8Array {
  const all = segments.flatMap(({ type, page = 1, body }) => [
    ...[0x0f, type, ...u16(page), ...u16(body.length)],
    ...body,
  ]);
  return Uint8Array.from([0x20, 0, ...all, 0xff]);
}

/** A page that shows regions; `state`: 0 continues the epoch, 2 begins one. */
export function page(
  regions: readonly (readonly [id: number, x: number, y: number])[],
  { state = 2, timeout = 5 } = {},
): SentSegment {
  const shown = regions.flatMap(([id, x, y]) => [id, 0, ...u16(x), ...u16(y)]);
  return { type: 0x10, body: [timeout, state << 2, ...shown] };
}

/** A region that shows object 9 at its upper left corner. `depth`: bits per pixel. */
export function region(
  id: number,
  [width, height]: readonly [number, number],
  depth: 2 | 4 | 8,
  fill?: number,
): SentSegment {
  const code = fill ?? 0;
  const flags = fill === undefined ? 0 : 8;
  const coded = { 2: 1, 4: 2, 8: 3 }[depth];
  return {
    type: 0x11,
    body: [
      ...[id, flags, ...u16(width), ...u16(height), (coded << 5) | (coded << 2), 3],
      ...[code, ((code & 15) << 4) | ((code & 3) << 2), ...u16(9), 0, 0, 0, 0],
    ],
  };
}

/** Colours of CLUT 3 in full precision: index, luma, red and blue difference, transparency. */
export function colours(entries: readonly (readonly number[])[]): SentSegment {
  return {
    type: 0x12,
    body: [3, 0, ...entries.flatMap(([index, ...colour]) => [index!, 0xe1, ...colour])],
  };
}

/** Object 9. `bottom` is the same as `top` if it is empty. */
export function object(top: readonly number[], bottom: readonly number[] = []): SentSegment {
  return {
    type: 0x13,
    body: [...u16(9), 0, ...u16(top.length), ...u16(bottom.length), ...top, ...bottom],
  };
}

export const END: SentSegment = { type: 0x80, body: [] };

/** Packs numbers of the given bits into bytes; a text such as `00 1 101`. */
export function bits(text: string): number[] {
  const plain = text.replaceAll(" ", "");
  return Array.from({ length: Math.ceil(plain.length / 8) }, (_, i) =>
    Number.parseInt(plain.slice(8 * i, 8 * i + 8).padEnd(8, "0"), 2),
  );
}

function u16(value: number): number[] {
  return [value >> 8, value & 255];
}
