/**
 * A picture of flat squares: one luma value per 4×4 pixels, one value of each chroma plane per 8×8 pixels. Rows from the top; width and
 * height are whole macroblocks (16×16 pixels).
 */
export interface FlatPicture {
  /** 4 × `columns` by 4 × `rows` values. */
  readonly luma: Uint8Array;
  /** 2 × `columns` by 2 × `rows` values. */
  readonly cb: Uint8Array;
  readonly cr: Uint8Array;
}

/** Picture size and frame rate. */
export interface FlatFormat {
  /** Macroblocks per row, and rows of macroblocks. */
  readonly columns: number;
  readonly rows: number;
  /** Visible size in pixels, even, from the top left corner. */
  readonly width: number;
  readonly height: number;
  readonly framesPerSecond: number;
}

/** Returns a black picture. */
export function flatPicture({ columns, rows }: FlatFormat): FlatPicture {
  const cells = columns * rows;
  return {
    luma: new Uint8Array(16 * cells).fill(16),
    cb: new Uint8Array(4 * cells).fill(128),
    cr: new Uint8Array(4 * cells).fill(128),
  };
}
