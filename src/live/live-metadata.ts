import {
  encodeMetadataMessage,
  METADATA_PIECE_BYTES,
  type MetadataMessage,
} from "../wire/peer/metadata-message.ts";

/** Limit of replies: each peer may fetch everything twice, with some extra requests. More is a flood. */
const REPLIES_PER_PIECE = 2;
const EXTRA_REPLIES = 8;

/** Serves one peer the info dictionary of a stream (BEP 9). */
export class LiveMetadata {
  readonly #infoBytes: Uint8Array;
  #requests = 0;

  constructor(infoBytes: Uint8Array) {
    this.#infoBytes = infoBytes;
  }

  /** Whether the peer has requested anything. */
  get wasRequested(): boolean {
    return this.#requests > 0;
  }

  /** Returns the payload of the reply; undefined if the message is not a request, or the limit is reached. */
  answer(message: MetadataMessage): Uint8Array | undefined {
    if (message.kind !== "request") return undefined;
    const { piece } = message;
    const count = Math.ceil(this.#infoBytes.length / METADATA_PIECE_BYTES);
    if (++this.#requests > REPLIES_PER_PIECE * count + EXTRA_REPLIES) return undefined;
    if (piece >= count) return encodeMetadataMessage({ kind: "reject", piece });
    const bytes = this.#infoBytes.subarray(piece * METADATA_PIECE_BYTES, (piece + 1) * METADATA_PIECE_BYTES);
    return encodeMetadataMessage({ kind: "data", piece, totalBytes: this.#infoBytes.length, bytes });
  }
}
