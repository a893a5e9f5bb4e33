/** Stands for the hash of a header: its number is in the bytes. */
export function hashOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes.slice(4, 24);
}

/** Stands for the hash of a chunk: the offset of its bytes. */
export function tagOf(seq: number, stripe: number): number {
  return (seq * 16 + stripe) & 1023;
}
