const TABLE = Int32Array.from({ length: 256 }, (_, index) => {
  let value = index << 24;
  for (let bit = 0; bit < 8; bit++) value = value < 0 ? (value << 1) ^ 0x04c11db7 : value << 1;
  return value;
});

/** The checksum of PSI sections (ISO 13818-1 Annex A) over bytes `start` to `end`, as unsigned 32 bits. */
export function crc32Mpeg(bytes: Uint8Array, start: number, end: number): number {
  let value = -1;
  for (let at = start; at < end; at++) value = (value << 8) ^ TABLE[((value >>> 24) ^ bytes[at]!) & 255]!;
  return value >>> 0;
}
