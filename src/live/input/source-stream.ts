import { SluiceError } from "../../base/errors.ts";
import { PacketAligner } from "../../media/ts-align.ts";
import type { LiveFeed, LiveInputFacts } from "./source-feed.ts";

/** If no packet is found in this many bytes, the stream is not MPEG-TS. */
const MAX_SEARCH_BYTES = 1024 * 1024;

/** The packets of a byte stream: standard input, or the body of an HTTP response. */
export class StreamFeed implements LiveFeed {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #facts: LiveInputFacts;
  readonly #aligner = new PacketAligner();
  #skippedBefore = 0;
  #searchedBytes = 0;
  #hasFound = false;
  #hasEnded = false;

  constructor(stream: ReadableStream<Uint8Array>, facts: LiveInputFacts) {
    this.#reader = stream.getReader();
    this.#facts = facts;
  }

  async next(): Promise<Uint8Array | undefined> {
    while (!this.#hasEnded) {
      const { done, value } = await this.#reader.read();
      this.#hasEnded = done;
      const packets = done ? this.#aligner.finish() : this.#aligner.push(value);
      this.#count();
      if (packets.length > 0) {
        this.#hasFound = true;
        return packets;
      }
      this.#searchedBytes += value?.length ?? 0;
      const isFruitless = this.#searchedBytes >= MAX_SEARCH_BYTES || (done && this.#searchedBytes > 0);
      if (isFruitless && !this.#hasFound)
        throw new SluiceError(
          "unsupported_container",
          "expected MPEG-TS, but the data contains no transport packets",
        );
    }
    return undefined;
  }

  close(): void {
    this.#hasEnded = true;
    this.#reader.cancel().catch(() => {}); // The stream is discarded anyway.
  }

  #count(): void {
    const { skippedBytes } = this.#aligner;
    this.#facts.skippedBytes += skippedBytes - this.#skippedBefore;
    this.#skippedBefore = skippedBytes;
  }
}
