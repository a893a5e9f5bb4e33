/** Stands for a header's hash: its number is in the bytes. */
export function hashOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes.slice(4, 24);
}

/** Stands for a chunk's hash: where its bytes begin. */
export function tagOf(seq: number, stripe: number): number {
  return (seq * 16 + stripe) & 1023;
}
