import { SerialQueue } from "../async/serial-queue.ts";
import type { Instant } from "../base/time.ts";
import { decodeTicksAt } from "../live/window/live-window-times.ts";
import { PieceCutter } from "../media/live-cut.ts";
import type { LivePiece } from "../media/live-piece.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import { TsRestamper } from "../media/ts-restamp.ts";
import { StablePids } from "../remux/streams/stable-pids.ts";
import { TsEntry } from "../remux/ts-join.ts";
import type { Clock, Files, OpenFile } from "../runtime/contract.ts";
import type { Block, KeptBlocks } from "./kept-blocks.ts";

/** Dependencies of {@link ChannelWriter}. */
export interface WriterDependencies {
  readonly clock: Clock;
  readonly files: Files;
  readonly blocks: KeptBlocks;
  /** UNIX time in milliseconds. */
  readonly unixMs: () => number;
}

/** Media is written when this much has arrived; with the commit every half second, a crash loses less than a second. */
const PIECE_MS = 250;
/** Only one position of a piece is found again, so pieces are small even if a source delivers several seconds at once. */
const MAX_PIECE_BYTES = 188 * 1_400;
/** Playback starts at multiples of about this time. */
const SEGMENT_MS = 4_000;
/** A block has about this much: at 8 Mbit/s, 60 MB are evicted at once. */
const BLOCK_MS = 60_000;
/** A block without a key frame ends here in any case. */
const MAX_BLOCK_BYTES = 1024 * 1024 * 1024;
/** The clock of the stream is followed unless it differs from the time of day by more: a source delivers ahead or late. */
const MAX_DRIFT_MS = 15_000;
/** The end of the last block is read to continue its times: some seconds of media. */
const TAIL_BYTES = 188 * 10_000;
/** The version number of PAT and PMT has five bits. */
const VERSIONS = 32;

/** Where the stream is: the ticks of its last segment, and the time of day of these. */
interface Anchor {
  readonly ticks: number | undefined;
  readonly timeMs: number;
  readonly at: Instant;
}

/**
 * Writes a channel into blocks. All that is written is one continuous transport stream: after an interruption, the times, the clock and
 * the counters continue where the last block ends, and the new media starts with a key frame. Nothing is remuxed.
 */
export class ChannelWriter {
  readonly #parts: WriterDependencies;
  readonly #channel: string;
  readonly #restamper = new TsRestamper();
  readonly #pids = new StablePids();
  readonly #queue = new SerialQueue();
  #version = 0;
  #entry: TsEntry | undefined;
  #cutter: PieceCutter | undefined;
  #isJoined = false;
  #hasBreak = true;
  #anchor: Anchor | undefined;
  #open: { readonly block: Block; readonly file: OpenFile } | undefined;

  constructor(parts: WriterDependencies, channel: string) {
    this.#parts = parts;
    this.#channel = channel;
  }

  /** Reads the end of the last block, so that the stream continues it. */
  async continueLast(): Promise<void> {
    const { blocks, files, unixMs } = this.#parts;
    const last = blocks.of(this.#channel).at(-1);
    // After a restart the version differs from the last one, because the source may have other streams.
    this.#version = Math.floor(unixMs() / 1000) % VERSIONS;
    if (!last) return;
    const tail = new Uint8Array(Math.min(TAIL_BYTES, last.bytes));
    const file = await files.open(blocks.path(last));
    await file.read(last.bytes - tail.length, tail).finally(() => file.close());
    this.#pids.learn(tail);
    this.#restamper.restamp(tail);
  }

  /** Begins with another stream of the channel. */
  begin(): void {
    this.#version = (this.#version + 1) % VERSIONS;
    this.#entry = new TsEntry(this.#version);
    this.#cutter = new PieceCutter({
      pieceMs: PIECE_MS,
      maxPieceBytes: MAX_PIECE_BYTES,
      segmentMs: SEGMENT_MS,
    });
    this.#isJoined = false;
    this.#hasBreak = true;
  }

  /** Takes the next bytes of the stream. Resolves to a problem if there is no space: these bytes are lost. */
  push(bytes: Uint8Array): Promise<string | undefined> {
    return this.#queue.run(() => this.#push(bytes));
  }

  /** Writes what has arrived, if that is due by the time. */
  async wake(): Promise<void> {
    await this.#queue.run(() => this.#write(this.#cutter?.wake(this.#parts.unixMs()) ?? []));
  }

  async #push(bytes: Uint8Array): Promise<string | undefined> {
    const packets = this.#entry!.push(bytes);
    if (packets.length === 0) return undefined;
    if (!this.#isJoined) this.#restamper.join(this.#entry!.first!);
    this.#isJoined = true;
    this.#pids.apply(this.#entry!, packets);
    return this.#write(this.#cutter!.push(packets, this.#parts.unixMs()));
  }

  /** Writes what is left of the stream, and ends its block. */
  async finish(): Promise<void> {
    await this.#queue.run(async () => {
      const rest = this.#cutter?.finish(this.#parts.unixMs()) ?? [];
      this.#cutter = undefined;
      await this.#write(rest).finally(() => this.#closeBlock());
    });
  }

  async #write(pieces: readonly LivePiece[]): Promise<string | undefined> {
    for (const { bytes, isSegmentStart, isDiscontinuity, randomAccessOffset = 0 } of pieces) {
      if (bytes.length === 0) continue;
      this.#restamper.restamp(bytes);
      this.#hasBreak ||= isDiscontinuity;
      const cutAt = isSegmentStart ? randomAccessOffset : bytes.length;
      const problem =
        (await this.#append(bytes.subarray(0, cutAt))) ??
        (isSegmentStart ? await this.#beginSegment(bytes.subarray(cutAt)) : undefined);
      if (problem === undefined) continue;
      // After lost bytes, only a key frame can follow.
      await this.#closeBlock();
      this.#hasBreak = true;
      return problem;
    }
    return undefined;
  }

  async #beginSegment(bytes: Uint8Array): Promise<string | undefined> {
    const { blocks, clock, files } = this.#parts;
    const ticks = decodeTicksAt(bytes, 0);
    const timeMs = this.#timeOf(ticks);
    const problem = await blocks.makeRoom(bytes.length);
    if (problem !== undefined) return problem;
    const isDiscontinuous = this.#hasBreak;
    this.#hasBreak = false;
    this.#anchor = { ticks, timeMs, at: clock.now() };
    const block = this.#open?.block;
    if (block && !isDiscontinuous) block.endMs = timeMs;
    if (block && (isDiscontinuous || timeMs - block.startMs >= BLOCK_MS)) await this.#closeBlock();
    if (!this.#open) {
      const added = blocks.add(this.#channel, timeMs);
      this.#open = { block: added, file: await files.open(blocks.path(added)) };
    }
    const open = this.#open.block;
    open.cuts!.push({ at: open.bytes, timeMs, ticks, isDiscontinuous });
    return this.#append(bytes);
  }

  /** Appends to the segment; bytes before the first one are dropped. */
  async #append(bytes: Uint8Array): Promise<string | undefined> {
    const open = this.#open;
    if (!open || bytes.length === 0) return undefined;
    const { blocks, clock } = this.#parts;
    if (open.block.bytes + bytes.length > MAX_BLOCK_BYTES) return "the channel has no key frames";
    const problem = await blocks.makeRoom(bytes.length);
    if (problem !== undefined) return problem;
    await open.file.write(open.block.bytes, bytes);
    const { timeMs, at } = this.#anchor!;
    blocks.wrote(open.block, bytes.length, timeMs + (clock.now() - at));
    return undefined;
  }

  async #closeBlock(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    if (!open) return;
    this.#parts.blocks.close(open.block);
    await open.file.sync().finally(() => open.file.close());
  }

  /** The time of day of a segment: that of the segment before it plus its playing time, or the present time after a break. */
  #timeOf(ticks: number | undefined): number {
    const nowMs = this.#parts.unixMs();
    const { ticks: before, timeMs = 0 } = this.#anchor ?? {};
    const last = this.#open?.block ?? this.#parts.blocks.of(this.#channel).at(-1);
    // Keys of blocks are unique.
    const leastMs = last === undefined ? 0 : Math.max(last.startMs + 1, last.cuts?.at(-1)?.timeMs ?? 0);
    if (!this.#hasBreak && before !== undefined && ticks !== undefined) {
      const next = timeMs + (1000 * deltaTicks(ticks, before)) / TICKS_PER_SECOND;
      if (Math.abs(next - nowMs) <= MAX_DRIFT_MS) return Math.max(leastMs, Math.round(next));
    }
    this.#hasBreak = true;
    return Math.max(leastMs, nowMs);
  }
}
