import type { AbortSignalLike, RandomAccess } from "../base/byte-source.ts";
import { concatBytes } from "../base/bytes.ts";
import { TS_PACKET_BYTES } from "../media/ts-packet.ts";
import type { TsStream } from "../media/ts-programme.ts";
import { alignPackets, type TsLayout } from "../media/ts-sync.ts";
import { nextUnit, type TsUnit } from "../media/ts-units.ts";

/** Limit of buffered bytes while the head of a unit is incomplete. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;

/** Reads transport packets of a file with any packet stride. Positions are byte positions in the file. */
export class TsReader {
  readonly source: RandomAccess;
  readonly layout: TsLayout;

  constructor(source: RandomAccess, layout: TsLayout) {
    this.source = source;
    this.layout = layout;
  }

  /** Returns the packets that begin in the bytes `[start, end)`, 188 bytes each. */
  async packets(start: number, end: number, signal?: AbortSignalLike): Promise<Uint8Array> {
    const to = Math.min(this.source.size, end);
    const bytes = await this.source.read({ start, end: to }, signal ? { signal } : {});
    return alignPackets(bytes, this.layout.stride, false, true).packets;
  }

  /** Yields the units of a stream from byte `start` to the end of the file, with `at` as a byte position in the file. */
  async *units(
    stream: TsStream,
    start: number,
    chunkBytes: number,
    signal?: AbortSignalLike,
  ): AsyncGenerator<TsUnit, void, undefined> {
    let from = start;
    let buffered = new Uint8Array(0);
    let bufferedAt = start;
    while (from < this.source.size) {
      const end = Math.min(this.source.size, from + chunkBytes);
      const bytes = await this.source.read({ start: from, end }, signal ? { signal } : {});
      buffered = buffered.length === 0 ? bytes : concatBytes([buffered, bytes]);
      from = end;
      const isEnd = end === this.source.size;
      const aligned = alignPackets(buffered, this.layout.stride, false, isEnd);
      let keepFrom = aligned.used;
      let at = 0;
      for (
        let unit = nextUnit(aligned.packets, at, stream);
        unit;
        unit = nextUnit(aligned.packets, at, stream)
      ) {
        const rawAt = aligned.starts[unit.at / TS_PACKET_BYTES]!;
        if (unit.isKey === undefined && !isEnd && buffered.length - rawAt < MAX_BUFFERED_BYTES) {
          keepFrom = rawAt; // Its head continues in the next chunk.
          break;
        }
        yield { ...unit, isKey: unit.isKey ?? false, at: bufferedAt + rawAt };
        at = unit.at + TS_PACKET_BYTES;
      }
      buffered = buffered.slice(keepFrom);
      bufferedAt += keepFrom;
    }
  }
}
