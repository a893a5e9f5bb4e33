import { isPlayableName, mimeOf } from "../base/mime.ts";
import type { Info } from "../wire/metainfo.ts";
import type { ContentFile } from "./contract.ts";
import type { PieceStore } from "./piece-store.ts";

/** The files of content as players may choose them. Pad files and symbolic links (BEP 47) are not playable. */
export function contentFiles(info: Info): ContentFile[] {
  return info.files.map(({ path, length, offset, isPad, isSymlink }, index) => {
    const name = path.join("/");
    const isPlayable = !isPad && !isSymlink && length > 0 && isPlayableName(name);
    return { index, name, size: length, offset, mime: mimeOf(name), isPlayable };
  });
}

/** Verified bytes of `file` that the store holds. */
export function heldBytes(store: PieceStore, file: ContentFile): number {
  let bytes = 0;
  for (const [piece, from, to] of piecesOf(store, file)) if (store.held.has(piece)) bytes += to - from;
  return bytes;
}

/** Verified bytes at the head of `file`, without a gap. */
export function headBytes(store: PieceStore, file: ContentFile): number {
  let bytes = 0;
  for (const [piece, from, to] of piecesOf(store, file)) {
    if (!store.held.has(piece)) break;
    bytes += to - from;
  }
  return bytes;
}

/** The pieces that `file` lies in, each with the part of the content that belongs to both. */
function* piecesOf(
  store: PieceStore,
  file: ContentFile,
): Iterable<readonly [piece: number, from: number, to: number]> {
  const { pieceLength } = store.layout;
  const end = file.offset + file.size;
  for (let piece = Math.floor(file.offset / pieceLength); piece * pieceLength < end; piece++) {
    const from = Math.max(file.offset, piece * pieceLength);
    yield [piece, from, Math.min(end, (piece + 1) * pieceLength)];
  }
}

/** The pieces that a store holds. */
export function* heldPieces({ layout, held }: PieceStore): Iterable<number> {
  for (let piece = 0; piece < layout.pieceCount; piece++) if (held.has(piece)) yield piece;
}
