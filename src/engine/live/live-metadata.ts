import {
  encodeMetadataMessage,
  METADATA_PIECE_BYTES,
  type MetadataMessage,
} from "../../wire/metadata-message.ts";

/** So often one peer may have the whole, and some requests more: what comes then is a flood. */
const ANSWERS_EACH = 2;
const SPARE_ANSWERS = 8;

/** Gives one peer the info dictionary of the stream (BEP 9). */
export class LiveMetadata {
  readonly #infoBytes: Uint8Array;
  #asked = 0;

  constructor(infoBytes: Uint8Array) {
    this.#infoBytes = infoBytes;
  }

  /** Whether it has asked for anything. */
  get wasAsked(): boolean {
    return this.#asked > 0;
  }

  /** The payload of the answer; undefined where a message asks for nothing, or the peer asks without end. */
  answer(message: MetadataMessage): Uint8Array | undefined {
    if (message.kind !== "request") return undefined;
    const { piece } = message;
    const count = Math.ceil(this.#infoBytes.length / METADATA_PIECE_BYTES);
    if (++this.#asked > ANSWERS_EACH * count + SPARE_ANSWERS) return undefined;
    if (piece >= count) return encodeMetadataMessage({ kind: "reject", piece });
    const bytes = this.#infoBytes.subarray(piece * METADATA_PIECE_BYTES, (piece + 1) * METADATA_PIECE_BYTES);
    return encodeMetadataMessage({ kind: "data", piece, totalBytes: this.#infoBytes.length, bytes });
  }
}
