import { DecodeError, SluiceError } from "../../base/errors.ts";
import { MIN_FREE_BYTES } from "../../base/free-disk.ts";
import type { UnixSeconds } from "../../base/time.ts";
import type { Files, OpenFile, Runtime } from "../../runtime/contract.ts";
import { foldText } from "../item-names.ts";
import type { Programme } from "./guide-contract.ts";
import { MarkedBlocks } from "./guide-scan.ts";
import { ProgrammeIndex } from "./programme-index.ts";
import type { XmltvChannel, XmltvProgramme } from "./xmltv-reader.ts";

/** Limits of one source: the largest public guides have 20,000 channels and 2 million programmes. */
const MAX_CHANNELS = 50_000;
const MAX_PROGRAMMES = 3_000_000;
/** Of one channel: a year of programmes of five minutes. Sorting more would block other work for seconds. */
const MAX_OF_CHANNEL = 105_000;
const MAX_FILE_BYTES = 2 ** 31;
/** Encoded lines are collected up to this size for one write. */
const WRITE_BYTES = 256 * 1024;
/** The disk is checked each time this much was written; smaller guides are written in any case. */
const CHECK_BYTES = 16 * 1024 * 1024;
/** Longest line: all texts at their limits, escaped. */
const MAX_LINE_BYTES = 64 * 1024;
/** Bytes of one read; most programmes have less than 1 KiB, and the next one follows in most guides. */
const READ_BYTES = 4 * 1024;
/** Bytes of one read of the scan; more than a line. */
const SCAN_BYTES = 256 * 1024;
/** A programme without a stop time that no other follows. */
const DEFAULT_SECONDS = 3_600;
const NEWLINE = 0x0a;
const COMMA = 0x2c;
const ZERO = 0x30;
/** Of the times and the number of a channel. */
const MAX_DIGITS = 10;
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/**
 * The programmes of one source on disk: lines of JSON, `["id",["name"],"icon"]` for the next channel and
 * `[start,stop,channel,"title",…]` for a programme of channel number `channel`. Memory holds 8 bytes for each programme.
 */
export class GuideFile {
  readonly #file: OpenFile;
  /** Returns the free bytes of the disk; undefined if they are unknown. */
  readonly #freeBytes: () => Promise<number | undefined>;
  readonly #channels: StoredChannel[] = [];
  readonly #byId = new Map<string, StoredChannel>();
  readonly #index = new ProgrammeIndex();
  /** Programmes in the file, and in the lines that are not in it yet. */
  #programmeCount = 0;
  /** Bytes in the file. */
  #length = 0;
  /** Encoded lines that are not in the file yet. */
  #lines = new Uint8Array(0);
  #filled = 0;
  /** Bytes in the file when the disk was last checked. */
  #checked = 0;

  private constructor(file: OpenFile, freeBytes: () => Promise<number | undefined>) {
    this.#file = file;
    this.#freeBytes = freeBytes;
  }

  /** Creates an empty file. */
  static async create(files: Files, path: string): Promise<GuideFile> {
    await files.remove(path);
    return new GuideFile(await files.open(path), () => files.freeBytes(path));
  }

  /** Opens a file that `finish` completed. Rejects with `DecodeError` if it is damaged, or beyond the limits. `discarded`: see
   * `Runtime.discarded`. */
  static async open(files: Files, path: string, discarded?: Runtime["discarded"]): Promise<GuideFile> {
    const guide = new GuideFile(await files.open(path), () => files.freeBytes(path));
    try {
      await guide.#scan((await files.stat(path))?.size ?? 0, discarded);
      return guide;
    } catch (error) {
      await guide.close();
      throw error;
    }
  }

  get channels(): readonly XmltvChannel[] {
    return this.#channels;
  }

  get programmeCount(): number {
    return this.#programmeCount;
  }

  /** Adds a channel; later ones with the same id are ignored. Throws `DecodeError` beyond the limits. */
  addChannel({ id, names, icon }: XmltvChannel): void {
    if (this.#byId.has(id)) return;
    if (this.#channels.length >= MAX_CHANNELS)
      throw new DecodeError("XMLTV", this.#length, `more than ${MAX_CHANNELS} channels`);
    this.#append([id, names, icon]);
    // The other texts are parts of the block of the guide that is read, and would keep all of it in memory.
    this.#keepChannel([id, [], ""]);
  }

  /** Adds a programme. Throws `DecodeError` beyond the limits. */
  addProgramme(programme: XmltvProgramme): void {
    const { channel, start, stop = 0, title, subtitle, description, categories, icon, episode } = programme;
    if (!this.#byId.has(channel)) this.addChannel({ id: channel, names: [], icon: "" });
    if (this.#programmeCount >= MAX_PROGRAMMES)
      throw new DecodeError("XMLTV", this.#length, `more than ${MAX_PROGRAMMES} programmes`);
    const stored = this.#byId.get(channel)!;
    this.#append([start, stop, stored.number, title, subtitle, description, categories, icon, episode]);
    this.#programmeCount++;
  }

  /** Writes the collected lines if there are enough of them; awaited between additions, it bounds memory. Rejects with `disk_full`
   * before the disk is full. */
  async flush(isLast = false): Promise<void> {
    if (this.#filled < WRITE_BYTES && !isLast) return;
    if (this.#length + this.#filled > MAX_FILE_BYTES)
      throw new DecodeError("XMLTV", this.#length, "the guide is too large");
    if (this.#length - this.#checked >= CHECK_BYTES) {
      this.#checked = this.#length;
      const free = await this.#freeBytes();
      if (free !== undefined && free < MIN_FREE_BYTES)
        throw new SluiceError("disk_full", "the disk is almost full");
    }
    await this.#file.write(this.#length, this.#lines.subarray(0, this.#filled));
    this.#length += this.#filled;
    this.#filled = 0;
  }

  /** Makes the file complete and durable, and closes it. {@link open} reads it. */
  async finish(): Promise<void> {
    await this.flush(true);
    await this.#file.sync();
    await this.#file.close();
  }

  /** The programmes of a channel that overlap `[from, to)`, in order, at most `limit`. */
  async between(id: string, from: UnixSeconds, to: UnixSeconds, limit: number): Promise<Programme[]> {
    const channel = this.#byId.get(id);
    if (channel === undefined) return [];
    const found: Programme[] = [];
    const lines = new LineReader(this.#file, this.#length);
    // The programme that runs at `from` started before it.
    const index = this.#index;
    const range = index.range(channel.number);
    for (let i = Math.max(range.from, index.firstAfter(channel.number, from) - 1); i < range.to; i++) {
      if (index.startOf(i) >= to || found.length >= limit) break;
      const next = i + 1 < range.to ? index.startOf(i + 1) : undefined;
      const programme = programmeOf(await lines.at(index.offsetOf(i)), next);
      if (programme.stop > from) found.push(programme);
    }
    return found;
  }

  /**
   * Yields the programmes of the given channels that end after `from` and have the folded text `part` in their title or
   * subtitle, in no order. After each read there is an array, which may be empty.
   */
  async *search(
    ids: readonly string[],
    part: string,
    from: UnixSeconds,
  ): AsyncGenerator<FoundInFile[], void> {
    const blocks = new MarkedBlocks(this.#length);
    const wanted = new Set<StoredChannel>();
    for (const id of ids) {
      const channel = this.#byId.get(id);
      if (channel === undefined) continue;
      wanted.add(channel);
      const index = this.#index;
      const range = index.range(channel.number);
      for (let i = Math.max(range.from, index.firstAfter(channel.number, from) - 1); i < range.to; i++)
        blocks.mark(index.offsetOf(i));
      yield [];
    }
    for await (const lines of blocks.linesWith(part, this.#file)) {
      const found: FoundInFile[] = [];
      for (const line of lines) {
        const [start, , number] = parsedLine(line);
        const channel = typeof start === "number" ? this.#channels[Number(number)] : undefined;
        if (channel === undefined || !wanted.has(channel)) continue;
        const programme = programmeOf(line, this.#index.startAfter(channel.number, Number(start)));
        const isMatch =
          foldText(programme.title).includes(part) || foldText(programme.subtitle).includes(part);
        if (isMatch && programme.stop > from) found.push({ channel: channel.id, programme });
      }
      yield found;
    }
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  #append(line: readonly unknown[]): void {
    const text = `${JSON.stringify(line)}\n`;
    // UTF-8 needs at most three bytes for a UTF-16 unit. A caller that adds much between two flushes needs more space.
    while (this.#lines.length - this.#filled < 3 * text.length) this.#lines = grown(this.#lines);
    this.#filled += ENCODER.encodeInto(text, this.#lines.subarray(this.#filled)).written;
  }

  #keepChannel([id, names, icon]: readonly [string, readonly string[], string]): void {
    const channel = { id, names, icon, number: this.#channels.length };
    this.#channels.push(channel);
    this.#byId.set(id, channel);
  }

  /** Reads the channels and the index from a file of `size` bytes. Nothing is allocated for a programme. */
  async #scan(size: number, discarded?: Runtime["discarded"]): Promise<void> {
    this.#length = size;
    const block = new Uint8Array(SCAN_BYTES);
    let filled = 0;
    for (let at = 0; at < size; ) {
      const read = block.subarray(filled, Math.min(block.length, filled + size - at));
      await this.#file.read(at, read);
      const blockAt = at - filled;
      at += read.length;
      filled += read.length;
      let from = 0;
      for (let end = block.indexOf(NEWLINE); end >= 0 && end < filled; end = block.indexOf(NEWLINE, from)) {
        this.#addLine(block, from, end, blockAt + from);
        from = end + 1;
      }
      if (filled - from > MAX_LINE_BYTES)
        throw new DecodeError("guide file", blockAt + from, "a line is too long");
      block.copyWithin(0, from, filled);
      filled -= from;
      // What code creates until it is compiled.
      discarded?.(read.length);
    }
    if (filled > 0) throw new DecodeError("guide file", size, "the last line is incomplete");
    await this.#index.sort();
  }

  /** Adds what the line `[from, to)` of a block has, which is at `offset` in the file. */
  #addLine(block: Uint8Array, from: number, to: number, offset: number): void {
    const stopAt = behindNumber(block, from + 1);
    if (stopAt === 0) {
      this.#keepChannel(parsedLine(block.subarray(from, to)) as [string, string[], string]);
      return;
    }
    const channelAt = behindNumber(block, stopAt);
    const channel = behindNumber(block, channelAt) === 0 ? undefined : numberAt(block, channelAt);
    if (channelAt === 0 || channel === undefined || channel >= this.#channels.length)
      throw new DecodeError("guide file", offset, "a programme has no channel");
    if (this.#index.push(channel, numberAt(block, from + 1), offset) > MAX_OF_CHANNEL)
      throw new DecodeError("guide file", offset, `more than ${MAX_OF_CHANNEL} programmes of one channel`);
    this.#programmeCount++;
  }
}

/** Returns where the decimal number and the comma at `from` end; 0 if there are none. */
function behindNumber(bytes: Uint8Array, from: number): number {
  for (let at = from; at < from + MAX_DIGITS + 1; at++) {
    const byte = bytes[at];
    if (byte === COMMA && at > from) return at + 1;
    if (byte === undefined || byte < ZERO || byte > ZERO + 9) return 0;
  }
  return 0;
}

/** Reads the decimal number at `from`, up to its comma. */
function numberAt(bytes: Uint8Array, from: number): number {
  let value = 0;
  for (let at = from; bytes[at] !== COMMA; at++) value = 10 * value + bytes[at]! - ZERO;
  return value;
}

/** Reads lines of a file, and keeps the block that was read last for the line behind it. */
class LineReader {
  readonly #file: OpenFile;
  /** Bytes in the file. */
  readonly #length: number;
  #block = new Uint8Array(0);
  #blockAt = 0;

  constructor(file: OpenFile, length: number) {
    this.#file = file;
    this.#length = length;
  }

  /** Returns the line that begins at `offset`, valid until the next call. */
  async at(offset: number): Promise<Uint8Array> {
    for (let size = 0; ; size = size === 0 ? READ_BYTES : MAX_LINE_BYTES) {
      if (size > 0) await this.#read(offset, size);
      const from = offset - this.#blockAt;
      const end = from < 0 ? -1 : this.#block.indexOf(NEWLINE, from);
      if (end >= 0) return this.#block.subarray(from, end);
      if (size === MAX_LINE_BYTES) throw new DecodeError("guide file", offset, "a line does not end");
    }
  }

  async #read(offset: number, size: number): Promise<void> {
    this.#block = new Uint8Array(Math.min(size, this.#length - offset));
    this.#blockAt = offset;
    await this.#file.read(offset, this.#block);
  }
}

/** A programme that `GuideFile.search` found, and the id of its channel. */
interface FoundInFile {
  readonly channel: string;
  readonly programme: Programme;
}

interface StoredChannel extends XmltvChannel {
  /** Its place among the channels. */
  readonly number: number;
}

/** Decodes the line of a programme; without a stop time, it ends when the next one starts. */
function programmeOf(line: Uint8Array, nextStart: number | undefined): Programme {
  const [start, stop, , title, subtitle, description, categories, icon, episode] = parsedLine(line) as [
    UnixSeconds,
    number,
    number,
    string,
    string,
    string,
    string[],
    string,
    string,
  ];
  const ends = (stop || nextStart || start + DEFAULT_SECONDS) as UnixSeconds;
  return { start, stop: ends, title, subtitle, description, categories, icon, episode };
}

/** The file is this program's own, but a disk may damage it. */
function parsedLine(line: Uint8Array): unknown[] {
  try {
    const value: unknown = JSON.parse(DECODER.decode(line));
    if (Array.isArray(value)) return value;
  } catch {
    // Handled below.
  }
  throw new DecodeError("guide file", 0, "a line is damaged");
}

function grown(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(2 * bytes.length + MAX_LINE_BYTES);
  larger.set(bytes);
  return larger;
}
