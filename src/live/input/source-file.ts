import type { RandomAccess } from "../../base/byte-source.ts";
import { SluiceError } from "../../base/errors.ts";
import { PacketAligner } from "../../media/ts-align.ts";
import { TsRestamper } from "../../media/ts-restamp.ts";
import type { LiveFeed, LiveInputFacts } from "./source-feed.ts";

/** Bytes per read: 0.1 s of 10 Mbit/s. */
const READ_BYTES = 128 * 1024;
/** If no packet is found in this many bytes, the file is not MPEG-TS. */
const MAX_SEARCH_BYTES = 4 * 1024 * 1024;

/** An open file. */
export type LiveFile = RandomAccess & { close(): Promise<void> };

/** The packets of a file; if it is looped, from the start again at its end, with continuous timestamps. */
export class FileFeed implements LiveFeed {
  readonly #open: () => Promise<LiveFile>;
  readonly #facts: LiveInputFacts;
  readonly #restamper: TsRestamper | undefined;
  #file: LiveFile | undefined;
  #aligner = new PacketAligner();
  #at = 0;
  /** Packets found in this pass. */
  #foundPackets = 0;
  #isClosed = false;

  constructor(open: () => Promise<LiveFile>, facts: LiveInputFacts, isLooped: boolean) {
    this.#open = open;
    this.#facts = facts;
    this.#restamper = isLooped ? new TsRestamper() : undefined;
  }

  async next(): Promise<Uint8Array | undefined> {
    const file = await this.#opened();
    while (!this.#isClosed) {
      const end = Math.min(file.size, this.#at + READ_BYTES);
      const isEnd = end === this.#at;
      const packets = isEnd
        ? this.#aligner.finish()
        : this.#aligner.push(await file.read({ start: this.#at, end }));
      this.#at = end;
      if (packets.length > 0) {
        this.#foundPackets += packets.length;
        this.#restamper?.restamp(packets);
        if (isEnd) this.#restart();
        return packets;
      }
      if (this.#foundPackets === 0 && (isEnd || this.#at >= MAX_SEARCH_BYTES))
        throw new SluiceError(
          "unsupported_container",
          "the file contains no MPEG-TS packets; convert it with ffmpeg -c copy -f mpegts",
        );
      if (!isEnd) continue;
      if (!this.#restamper) return undefined;
      this.#restart();
    }
    return undefined;
  }

  close(): void {
    this.#isClosed = true;
    this.#file?.close().catch(() => {}); // The file was only read.
  }

  async #opened(): Promise<LiveFile> {
    if (this.#file) return this.#file;
    this.#file = await this.#open();
    this.#facts.starts++;
    if (this.#file.size === 0) throw new SluiceError("bad_parameter", "the file is empty");
    if (this.#isClosed) this.close();
    return this.#file;
  }

  #restart(): void {
    if (!this.#restamper) return;
    this.#facts.skippedBytes += this.#aligner.skippedBytes;
    this.#facts.starts++;
    this.#aligner = new PacketAligner();
    this.#restamper.restart();
    this.#at = 0;
    this.#foundPackets = 0;
  }
}
