import { TS_PACKET_BYTES } from "./ts-packet.ts";
import { alignPackets, detectLayout } from "./ts-sync.ts";

/** So much is held to find out how packets lie; without five of them in a row by then the oldest bytes go. */
const MAX_UNSURE_BYTES = 64 * 1024;

/** Finds the packets in bytes that come in any chunks, from any point on, and finds them again after loss or garbage. */
export class PacketAligner {
  #raw: Uint8Array = new Uint8Array(0);
  #stride: number | undefined;
  #isSynced = false;
  /** Bytes that were no packets. */
  skippedBytes = 0;

  /** The whole packets that there are now, one after another; none where more bytes are needed. */
  push(bytes: Uint8Array): Uint8Array {
    this.#raw = this.#raw.length === 0 ? bytes : joined(this.#raw, bytes);
    return this.#aligned(false);
  }

  /** No more bytes will come: the packets that were too few to judge before. */
  finish(): Uint8Array {
    return this.#aligned(true);
  }

  #aligned(isEnd: boolean): Uint8Array {
    this.#stride ??= detectLayout(this.#raw)?.stride ?? (isEnd ? TS_PACKET_BYTES : undefined);
    if (this.#stride === undefined) {
      const excess = this.#raw.length - MAX_UNSURE_BYTES;
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

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
