/** Boxes with other boxes as content. */
const PARENTS = ["moov", "trak", "mdia", "minf", "stbl", "edts"];

/** An edit in seconds; a pause if `fromSeconds` is undefined. `rate` is 1 by default. */
export interface Edit {
  readonly fromSeconds: number | undefined;
  readonly seconds: number;
  readonly rate?: number;
}

/**
 * Replaces boxes within the `moov` of a file, which is at the end, so that no media moves. `replace` returns undefined for a box that
 * stays; it gets the content of each box without children.
 */
export function rewriteMoov(
  bytes: Uint8Array<ArrayBuffer>,
  replace: (type: string, content: DataView) => Uint8Array | undefined,
): Uint8Array<ArrayBuffer> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const rewrite = (from: number, to: number): Uint8Array[] => {
    const parts: Uint8Array[] = [];
    for (let at = from; at < to; at += view.getUint32(at)) {
      const end = at + view.getUint32(at);
      const type = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
      const content = new DataView(bytes.buffer, bytes.byteOffset + at + 8, end - at - 8);
      if (PARENTS.includes(type)) parts.push(mp4Box(type, rewrite(at + 8, end)));
      else parts.push(replace(type, content) ?? bytes.subarray(at, end));
    }
    return parts;
  };
  return new Uint8Array(Buffer.concat(rewrite(0, bytes.length)));
}

/** Replaces the edit lists of all tracks; times of media start where the first edit list starts. */
export function withEdits(bytes: Uint8Array<ArrayBuffer>, edits: readonly Edit[]): Uint8Array<ArrayBuffer> {
  let movieScale = 1000;
  let scale = 0;
  let start = 0;
  // The scale of a track follows its edit list in the file.
  const scales: number[] = [];
  rewriteMoov(bytes, (type, content) => {
    if (type === "mvhd") movieScale = content.getUint32(12);
    if (type === "mdhd") scales.push(content.getUint32(12));
    return undefined;
  });
  return rewriteMoov(bytes, (type, content) => {
    if (type !== "elst") return undefined;
    scale = scales.shift()!;
    start = content.getInt32(12);
    const list = new DataView(new ArrayBuffer(8 + 12 * edits.length));
    list.setUint32(4, edits.length);
    for (const [i, { fromSeconds, seconds, rate = 1 }] of edits.entries()) {
      list.setUint32(8 + 12 * i, Math.round(seconds * movieScale));
      list.setInt32(12 + 12 * i, fromSeconds === undefined ? -1 : start + Math.round(fromSeconds * scale));
      list.setUint32(16 + 12 * i, Math.round(rate * 0x10000));
    }
    return mp4Box("elst", [new Uint8Array(list.buffer)]);
  });
}

/** A box with this content. */
export function mp4Box(type: string, parts: readonly Uint8Array[]): Uint8Array {
  const content = Buffer.concat(parts);
  const head = new DataView(new ArrayBuffer(8));
  head.setUint32(0, 8 + content.length);
  for (let i = 0; i < 4; i++) head.setUint8(4 + i, type.charCodeAt(i));
  return Buffer.concat([new Uint8Array(head.buffer), content]);
}
