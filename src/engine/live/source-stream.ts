import { SluiceError } from "../../base/errors.ts";
import { PacketAligner } from "../../media/ts-align.ts";
import type { LiveFeed, LiveInputFacts } from "./source-feed.ts";

/** A stream in which no packets were found by then is none of MPEG-TS. */
const MAX_SEARCH_BYTES = 1024 * 1024;

/** The packets of a stream of bytes: a pipe, or the body of an answer. */
export class StreamFeed implements LiveFeed {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #facts: LiveInputFacts;
  readonly #aligner = new PacketAligner();
  #skippedBefore = 0;
  #searchedBytes = 0;
  #hasFound = false;
  #isOver = false;

  constructor(stream: ReadableStream<Uint8Array>, facts: LiveInputFacts) {
    this.#reader = stream.getReader();
    this.#facts = facts;
  }

  async next(): Promise<Uint8Array | undefined> {
    while (!this.#isOver) {
      const { done, value } = await this.#reader.read();
      this.#isOver = done;
      const packets = done ? this.#aligner.finish() : this.#aligner.push(value);
      this.#count();
      if (packets.length > 0) {
        this.#hasFound = true;
        return packets;
      }
      this.#searchedBytes += value?.length ?? 0;
      const isHopeless = this.#searchedBytes >= MAX_SEARCH_BYTES || (done && this.#searchedBytes > 0);
      if (isHopeless && !this.#hasFound)
        throw new SluiceError(
          "unsupported_container",
          "expected MPEG-TS; no packets were found in what came",
        );
    }
    return undefined;
  }

  close(): void {
    this.#isOver = true;
    this.#reader.cancel().catch(() => {}); // It is given up either way.
  }

  #count(): void {
    const { skippedBytes } = this.#aligner;
    this.#facts.skippedBytes += skippedBytes - this.#skippedBefore;
    this.#skippedBefore = skippedBytes;
  }
}
