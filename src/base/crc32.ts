/** Returns a CRC-32 of bytes as an unsigned number, for a bit-reversed polynomial: `0xedb88320` (ISO 3309), `0x82f63b78` (CRC-32C). */
export function crc32Of(reversedPolynomial: number): (bytes: Uint8Array) => number {
  const table = Uint32Array.from({ length: 256 }, (_, byte) => {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) !== 0 ? (crc >>> 1) ^ reversedPolynomial : crc >>> 1;
    return crc;
  });
  return (bytes) => {
    let crc = 0xffffffff;
    // Not `for … of`, which takes three times as long on Bun.
    const { length } = bytes;
    for (let at = 0; at < length; at++) crc = table[(crc ^ bytes[at]!) & 0xff]! ^ (crc >>> 8);
    return (crc ^ 0xffffffff) >>> 0;
  };
}
