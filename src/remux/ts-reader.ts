import type { RandomAccess } from "../base/byte-source.ts";
import { concatBytes } from "../base/bytes.ts";
import { TS_PACKET_BYTES } from "../media/ts-packet.ts";
import type { TsStream } from "../media/ts-programme.ts";
import { alignPackets, type TsLayout } from "../media/ts-sync.ts";
import { nextUnit, type TsUnit } from "../media/ts-units.ts";
import { OwnedMemory } from "./owned-memory.ts";

/** A unit with its place in the file: `at` is the byte where its first packet begins. */
export type FileUnit = TsUnit;

/** A damaged stretch without any packet is given up after so many bytes in memory. */
const MAX_HELD_BYTES = 4 * 1024 * 1024;

/** Reads transport packets of a file, whatever their stride; positions are bytes of the file. */
export class TsReader {
  readonly source: RandomAccess;
  readonly layout: TsLayout;

  constructor(source: RandomAccess, layout: TsLayout) {
    this.source = source;
    this.layout = layout;
  }

  /** Whole packets of 188 bytes that begin in bytes `start` to `end` of the file; they may lie in `memory`. */
  async packets(
    start: number,
    end: number,
    signal?: AbortSignal,
    memory = new OwnedMemory(),
  ): Promise<Uint8Array> {
    // The last packet may reach past `end`: what it begins before belongs to it.
    const to = Math.min(this.source.size, end);
    const bytes = memory.own(await this.source.read({ start, end: to }, signal ? { signal } : {}));
    return alignPackets(bytes, this.layout.stride, false, true).packets;
  }

  /** The units of a stream in file order from `start`, read `chunkBytes` at a time; ends at the end of the file. */
  async *units(
    stream: TsStream,
    start: number,
    chunkBytes: number,
    signal?: AbortSignal,
  ): AsyncGenerator<FileUnit, void, undefined> {
    let from = start;
    let held = new Uint8Array(0);
    let heldAt = start;
    while (from < this.source.size) {
      const end = Math.min(this.source.size, from + chunkBytes);
      const bytes = await this.source.read({ start: from, end }, signal ? { signal } : {});
      held = held.length === 0 ? bytes : concatBytes([held, bytes]);
      from = end;
      const isEnd = end === this.source.size;
      const aligned = alignPackets(held, this.layout.stride, false, isEnd);
      let keepFrom = aligned.used;
      let at = 0;
      for (
        let unit = nextUnit(aligned.packets, at, stream);
        unit;
        unit = nextUnit(aligned.packets, at, stream)
      ) {
        const rawAt = aligned.starts[unit.at / TS_PACKET_BYTES]!;
        if (unit.isKey === undefined && !isEnd && held.length - rawAt < MAX_HELD_BYTES) {
          keepFrom = rawAt; // Its head goes on in the next chunk.
          break;
        }
        yield { ...unit, isKey: unit.isKey ?? false, at: heldAt + rawAt };
        at = unit.at + TS_PACKET_BYTES;
      }
      held = held.slice(keepFrom);
      heldAt += keepFrom;
    }
  }
}
