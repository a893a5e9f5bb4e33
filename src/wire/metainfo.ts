import type { ContentId, Infohash } from "../base/ids.ts";

/** One file of an info dictionary (BEP 3, 47). */
export interface InfoFile {
  /** Display text; sanitised, never a path on our disk. */
  readonly path: readonly string[];
  readonly length: number;
  /** Where it begins in the whole content, in bytes. */
  readonly offset: number;
  readonly isPad: boolean;
  readonly isSymlink: boolean;
}

/** A checked info dictionary. Structurally also a `SwarmLayout`. */
export interface Info {
  readonly name: string;
  readonly pieceLength: number;
  readonly pieceCount: number;
  readonly length: number;
  /** 20 bytes a piece. */
  readonly pieceHashes: Uint8Array;
  readonly isPrivate: boolean;
  readonly files: readonly InfoFile[];
}

/** A checked transport file (BEP 3, 12, 27, 47). */
export interface TransportFile {
  readonly infohash: Infohash;
  /** SHA-1 of the whole file. */
  readonly contentId: ContentId;
  readonly info: Info;
  /** The info dictionary's own bytes, whose SHA-1 is the infohash. */
  readonly infoBytes: Uint8Array;
  /** The file as it came. */
  readonly bytes: Uint8Array;
  /** Announce URLs by tier. */
  readonly trackers: readonly (readonly string[])[];
  readonly comment: string | undefined;
}
