import { equalBytes, latin1Bytes, readU32, readU48, writeU32, writeU48 } from "../../base/bytes.ts";
import type { Sha256 } from "../../base/signature.ts";
import type { Files, OpenFile } from "../../runtime/contract.ts";
import { LIVE_HASH_BYTES } from "../../wire/live/header.ts";
import { liveHash } from "../../wire/live/trust.ts";

/** The last piece of a source: what it needs in order to continue (live protocol: Header). */
export interface SourceState {
  /** UNIX seconds. */
  readonly epoch: number;
  readonly seq: number;
  /** UNIX ms. */
  readonly timestampMs: number;
  readonly segment: number;
  /** The hash of the whole header, 20 bytes. */
  readonly headerHash: Uint8Array;
  /** Numbers up to this one may have been used after this record was written; 0 if none are reserved. */
  readonly reservedSeq: number;
}

/** The content of a state file when it was opened. */
export interface FoundState {
  readonly state: SourceState | undefined;
  /** The file is not empty, but contains no valid record. */
  readonly isDamaged: boolean;
}

const MARK = latin1Bytes("SLS1");
const BODY_BYTES = 30 + LIVE_HASH_BYTES;
const RECORD_BYTES = BODY_BYTES + LIVE_HASH_BYTES;
/** Records are written alternately to two places that no disk writes together, so that one of them is always intact. */
const PLACE_BYTES = 4096;
const FILE_BYTES = PLACE_BYTES + RECORD_BYTES;

/** The state of a source on disk, written before each piece is sent. A write does not wait for the disk: it survives
 * the end of the process. After a power cut the file may be as old as the last `sync`. */
export class StateFile {
  readonly found: FoundState;
  readonly #file: OpenFile;
  readonly #sha256: Sha256;
  #place: number;
  #isSynced = true;

  private constructor(file: OpenFile, sha256: Sha256, found: FoundState, place: number) {
    this.#file = file;
    this.#sha256 = sha256;
    this.found = found;
    this.#place = place;
  }

  /** Opens the file, and creates it if it is missing. Rejects with the disk's error. */
  static async open(path: string, files: Files, sha256: Sha256): Promise<StateFile> {
    const size = (await files.stat(path))?.size ?? 0;
    const bytes =
      size > FILE_BYTES ? new Uint8Array(1) : ((await files.read(path, FILE_BYTES)) ?? new Uint8Array(0));
    const records = [0, PLACE_BYTES].map((at) => decodeState(bytes.subarray(at, at + RECORD_BYTES), sha256));
    const [first, second] = records;
    const newest = !first || (second && isLater(second, first)) ? 1 : 0;
    const found = { state: records[newest], isDamaged: size > 0 && !first && !second };
    return new StateFile(await files.open(path), sha256, found, 1 - newest);
  }

  /** Writes the state of the newest piece. Rejects with `disk_full`. */
  async write(state: SourceState): Promise<void> {
    const record = encodeState(state, this.#sha256);
    await this.#file.write(this.#place * PLACE_BYTES, record);
    this.#place = 1 - this.#place;
    this.#isSynced = false;
  }

  /** Resolves when earlier writes are safe from a power cut. */
  async sync(): Promise<void> {
    if (this.#isSynced) return;
    this.#isSynced = true;
    await this.#file.sync();
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

function encodeState(state: SourceState, sha256: Sha256): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(RECORD_BYTES);
  bytes.set(MARK);
  writeU32(bytes, 4, state.epoch);
  writeU48(bytes, 8, state.seq);
  writeU48(bytes, 14, state.timestampMs);
  writeU32(bytes, 20, state.segment);
  writeU48(bytes, 24, state.reservedSeq);
  bytes.set(state.headerHash, 30);
  bytes.set(liveHash(bytes.subarray(0, BODY_BYTES), sha256), BODY_BYTES);
  return bytes;
}

function decodeState(bytes: Uint8Array, sha256: Sha256): SourceState | undefined {
  if (bytes.length < RECORD_BYTES || !equalBytes(bytes.subarray(0, MARK.length), MARK)) return undefined;
  const sum = liveHash(bytes.subarray(0, BODY_BYTES), sha256);
  if (!equalBytes(sum, bytes.subarray(BODY_BYTES))) return undefined;
  return {
    epoch: readU32(bytes, 4),
    seq: readU48(bytes, 8),
    timestampMs: readU48(bytes, 14),
    segment: readU32(bytes, 20),
    reservedSeq: readU48(bytes, 24),
    headerHash: bytes.slice(30, BODY_BYTES),
  };
}

function isLater(a: SourceState, b: SourceState): boolean {
  return a.epoch > b.epoch || (a.epoch === b.epoch && a.seq > b.seq);
}
