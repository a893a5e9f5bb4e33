/**
 * A picture of flat squares: one luma value for each 4×4 pixels, one value of each chroma for each 8×8. Rows from the top,
 * whole macroblocks (16×16 pixels) wide and high.
 */
export interface FlatPicture {
  /** 4 × `columns` by 4 × `rows` values. */
  readonly luma: Uint8Array;
  /** 2 × `columns` by 2 × `rows` values. */
  readonly blue: Uint8Array;
  readonly red: Uint8Array;
}

/** How large the pictures are, and how fast. */
export interface FlatFormat {
  /** Macroblocks across and down. */
  readonly columns: number;
  readonly rows: number;
  /** What is seen, in pixels: even numbers, from the top left corner. */
  readonly width: number;
  readonly height: number;
  readonly framesPerSecond: number;
}

/** A flat picture of one colour. */
export function flatPicture({ columns, rows }: FlatFormat): FlatPicture {
  const cells = columns * rows;
  return {
    luma: new Uint8Array(16 * cells).fill(16),
    blue: new Uint8Array(4 * cells).fill(128),
    red: new Uint8Array(4 * cells).fill(128),
  };
}
