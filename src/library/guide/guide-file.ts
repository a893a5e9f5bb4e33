import { DecodeError, SluiceError } from "../../base/errors.ts";
import { MIN_FREE_BYTES } from "../../base/free-disk.ts";
import type { UnixSeconds } from "../../base/time.ts";
import { decodeUtf8 } from "../../base/utf8.ts";
import type { Files, OpenFile } from "../../runtime/contract.ts";
import { foldText } from "../item-names.ts";
import type { Programme } from "./guide-contract.ts";
import { MarkedBlocks } from "./guide-scan.ts";
import type { XmltvChannel, XmltvProgramme } from "./xmltv-reader.ts";

/** Limits of one source: the largest public guides have 20,000 channels and 2 million programmes. */
const MAX_CHANNELS = 50_000;
const MAX_PROGRAMMES = 3_000_000;
const MAX_FILE_BYTES = 2 ** 31;
/** Encoded lines are collected up to this size for one write. */
const WRITE_BYTES = 256 * 1024;
/** The disk is checked each time this much was written; smaller guides are written in any case. */
const CHECK_BYTES = 16 * 1024 * 1024;
/** Longest line: all texts at their limits, escaped. */
const MAX_LINE_BYTES = 64 * 1024;
/** Bytes of one read; most programmes have less than 1 KiB, and the next one follows in most guides. */
const READ_BYTES = 4 * 1024;
/** A programme without a stop time that no other follows. */
const DEFAULT_SECONDS = 3_600;
const NEWLINE = 0x0a;
const ENCODER = new TextEncoder();

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
  #programmeCount = 0;
  /** Bytes in the file. */
  #length = 0;
  /** Encoded lines that are not in the file yet. */
  #lines = new Uint8Array(2 * WRITE_BYTES);
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

  /** Opens a file that `finish` completed. Rejects with `DecodeError` if it is damaged. */
  static async open(files: Files, path: string): Promise<GuideFile> {
    const guide = new GuideFile(await files.open(path), () => files.freeBytes(path));
    try {
      await guide.#scan(files, path);
      guide.#sort();
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
    this.#keepChannel({ id, names, icon });
  }

  /** Adds a programme. Throws `DecodeError` beyond the limits. */
  addProgramme(programme: XmltvProgramme): void {
    const { channel, start, stop = 0, title, subtitle, description, categories, icon, episode } = programme;
    if (!this.#byId.has(channel)) this.addChannel({ id: channel, names: [], icon: "" });
    if (this.#programmeCount >= MAX_PROGRAMMES)
      throw new DecodeError("XMLTV", this.#length, `more than ${MAX_PROGRAMMES} programmes`);
    const stored = this.#byId.get(channel)!;
    const offset = this.#append([
      start,
      stop,
      stored.number,
      title,
      subtitle,
      description,
      categories,
      icon,
      episode,
    ]);
    stored.index.push(start, offset);
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

  /** Makes everything durable; afterwards programmes can be read. */
  async finish(): Promise<void> {
    await this.flush(true);
    await this.#file.sync();
    this.#lines = new Uint8Array();
    this.#sort();
  }

  /** The programmes of a channel that overlap `[from, to)`, in order, at most `limit`. */
  async between(id: string, from: UnixSeconds, to: UnixSeconds, limit: number): Promise<Programme[]> {
    const channel = this.#byId.get(id);
    if (channel === undefined) return [];
    const found: Programme[] = [];
    const lines = new LineReader(this.#file, this.#length);
    // The programme that runs at `from` started before it.
    const { index } = channel;
    for (let i = Math.max(0, index.firstAfter(from) - 1); i < index.length; i++) {
      if (index.startOf(i) >= to || found.length >= limit) break;
      const next = i + 1 < index.length ? index.startOf(i + 1) : undefined;
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
      const { index } = channel;
      for (let i = Math.max(0, index.firstAfter(from) - 1); i < index.length; i++)
        blocks.mark(index.offsetOf(i));
      yield [];
    }
    for await (const lines of blocks.linesWith(part, this.#file)) {
      const found: FoundInFile[] = [];
      for (const line of lines) {
        const [start, , number] = parsedLine(line);
        const channel = typeof start === "number" ? this.#channels[Number(number)] : undefined;
        if (channel === undefined || !wanted.has(channel)) continue;
        const programme = programmeOf(line, channel.index.startAfter(Number(start)));
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

  /** Returns the offset in the file at which the line will be. */
  #append(line: readonly unknown[]): number {
    const text = `${JSON.stringify(line)}\n`;
    // UTF-8 needs at most three bytes for a UTF-16 unit. A caller that adds much between two flushes needs more space.
    while (this.#lines.length - this.#filled < 3 * text.length) this.#lines = grown(this.#lines);
    const offset = this.#length + this.#filled;
    this.#filled += ENCODER.encodeInto(text, this.#lines.subarray(this.#filled)).written;
    return offset;
  }

  #keepChannel({ id, names, icon }: XmltvChannel): void {
    const channel = { id, names, icon, number: this.#channels.length, index: new ProgrammeIndex() };
    this.#channels.push(channel);
    this.#byId.set(id, channel);
  }

  async #scan(files: Files, path: string): Promise<void> {
    let rest = new Uint8Array();
    for await (const part of files.parts(path)) {
      const bytes = new Uint8Array(rest.length + part.length);
      bytes.set(rest);
      bytes.set(part, rest.length);
      let at = 0;
      for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, at)) {
        this.#index(bytes.subarray(at, end), this.#length + at);
        at = end + 1;
      }
      this.#length += at;
      rest = bytes.slice(at);
      if (rest.length > MAX_LINE_BYTES)
        throw new DecodeError("guide file", this.#length, "a line is too long");
    }
    if (rest.length > 0) throw new DecodeError("guide file", this.#length, "the last line is incomplete");
  }

  #index(line: Uint8Array, offset: number): void {
    const head = decodeUtf8(line.subarray(0, 48));
    const numbers = /^\[(\d{1,10}),\d{1,10},(\d{1,6}),/.exec(head);
    if (numbers === null) {
      const [id, names, icon] = parsedLine(line) as [string, string[], string];
      this.#keepChannel({ id, names, icon });
      return;
    }
    const channel = this.#channels[Number(numbers[2])];
    if (channel === undefined)
      throw new DecodeError("guide file", this.#length, "a programme has no channel");
    channel.index.push(Number(numbers[1]), offset);
    this.#programmeCount++;
  }

  #sort(): void {
    for (const { index } of this.#channels) index.sort();
  }
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
  readonly index: ProgrammeIndex;
}

/** The start times of the programmes of one channel, and the byte offsets of their lines: 8 bytes for each. */
class ProgrammeIndex {
  #starts = new Uint32Array(0);
  #offsets = new Uint32Array(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  startOf(i: number): number {
    return this.#starts[i]!;
  }

  offsetOf(i: number): number {
    return this.#offsets[i]!;
  }

  push(start: number, offset: number): void {
    if (this.#length === this.#starts.length) this.#resize(Math.max(16, Math.ceil(1.5 * this.#length)));
    this.#starts[this.#length] = start;
    this.#offsets[this.#length++] = offset;
  }

  /** Sorts by start. Guides are mostly in order already. */
  sort(): void {
    this.#resize(this.#length);
    const [starts, offsets] = [this.#starts, this.#offsets];
    if (starts.every((start, i) => i === 0 || starts[i - 1]! <= start)) return;
    const order = Array.from(starts, (_, i) => i).sort((a, b) => starts[a]! - starts[b]!);
    this.#starts = Uint32Array.from(order, (i) => starts[i]!);
    this.#offsets = Uint32Array.from(order, (i) => offsets[i]!);
  }

  /** The first start after `time`, if there is one. */
  startAfter(time: number): number | undefined {
    return this.#starts[this.firstAfter(time)];
  }

  /** The index of the first start after `time`. */
  firstAfter(time: number): number {
    let low = 0;
    let high = this.#length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#starts[middle]! <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #resize(size: number): void {
    const [starts, offsets] = [new Uint32Array(size), new Uint32Array(size)];
    starts.set(this.#starts.subarray(0, size));
    offsets.set(this.#offsets.subarray(0, size));
    [this.#starts, this.#offsets] = [starts, offsets];
  }
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
    const value: unknown = JSON.parse(decodeUtf8(line));
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
