import { concatBytes } from "../base/bytes.ts";
import { TS_PACKET_BYTES } from "./ts-packet.ts";
import { alignPackets, detectLayout } from "./ts-sync.ts";

/** Limit of bytes buffered while the packet layout is unknown; beyond it the oldest bytes are dropped. */
const MAX_UNALIGNED_BYTES = 64 * 1024;

/** Finds packets in a byte stream that begins anywhere and has any chunk sizes, also after loss or garbage. */
export class PacketAligner {
  #raw: Uint8Array = new Uint8Array(0);
  #stride: number | undefined;
  #isSynced = false;
  /** Number of bytes that were not part of a packet. */
  skippedBytes = 0;

  /** Adds bytes and returns the whole packets found, 188 bytes each; empty if more bytes are needed. */
  push(bytes: Uint8Array): Uint8Array {
    this.#raw = this.#raw.length === 0 ? bytes : concatBytes([this.#raw, bytes]);
    return this.#aligned(false);
  }

  /** Ends the stream and returns the last packets. */
  finish(): Uint8Array {
    return this.#aligned(true);
  }

  #aligned(isEnd: boolean): Uint8Array {
    this.#stride ??= detectLayout(this.#raw)?.stride ?? (isEnd ? TS_PACKET_BYTES : undefined);
    if (this.#stride === undefined) {
      const excess = this.#raw.length - MAX_UNALIGNED_BYTES;
      if (excess > 0) this.skippedBytes += excess;
      this.#raw = this.#raw.slice(Math.max(0, excess));
      return new Uint8Array(0);
    }
    const { packets, used, isSynced, skipped } = alignPackets(this.#raw, this.#stride, this.#isSynced, isEnd);
    this.#raw = this.#raw.slice(used);
    this.#isSynced = isSynced;
    this.skippedBytes += skipped;
    return packets;
  }
}
