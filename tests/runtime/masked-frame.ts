/** A masked frame (RFC 6455 5.2); `first` is the byte with flags and opcode. */
export function masked(first: number, payload: string | Uint8Array): Uint8Array {
  const bytes = typeof payload === "string" ? new TextEncoder().encode(payload) : payload;
  const { length } = bytes;
  const mask = [0x12, 0x34, 0x56, 0x78];
  const head = length <= 125 ? [0x80 | length] : [0x80 | 126, length >> 8, length & 0xff];
  const frame = new Uint8Array(1 + head.length + 4 + length);
  frame.set([first, ...head, ...mask]);
  frame.set(
    bytes.map((byte, i) => byte ^ mask[i & 3]!),
    1 + head.length + 4,
  );
  return frame;
}
