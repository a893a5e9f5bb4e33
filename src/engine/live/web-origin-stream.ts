import { SluiceError } from "../../base/errors.ts";
import { after } from "../../base/time.ts";
import { PacketStretch } from "../../media/packet-stretch.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../../media/timestamps.ts";
import { PacketAligner } from "../../media/ts-align.ts";
import { type WebClient, wrongStatus } from "../http/web-client.ts";
import type { OriginParts, OriginWish, WebOrigin } from "./web-origin.ts";

/** An answer whose head was read already. */
interface Opened {
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly first: Uint8Array;
}

/** What comes now is wanted when players are there: after the largest lag. */
const AHEAD_SECONDS = 10;
/** A server that sends at the pace of the stream is read so long for one wish. */
const MOST_MS = 2_000;

/** MPEG-TS without end at a web server. It has nothing of before it was asked, so it helps those who go without for longer. */
export class StreamOrigin implements WebOrigin {
  readonly #client: WebClient;
  readonly #parts: OriginParts;
  #stretch: PacketStretch;
  #aligner = new PacketAligner();
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  constructor(client: WebClient, parts: OriginParts, { reader, first }: Opened) {
    this.#client = client;
    this.#parts = parts;
    this.#stretch = new PacketStretch(parts.limitBytes);
    this.#reader = reader;
    this.#stretch.push(this.#aligner.push(first));
  }

  get stretch(): PacketStretch {
    return this.#stretch;
  }

  async bring({ reference }: OriginWish, signal: AbortSignal): Promise<boolean> {
    const stop = () => this.rest();
    signal.addEventListener("abort", stop, { once: true });
    try {
      this.#reader ??= await this.#opened();
      const { clock } = this.#client;
      const until = after(clock.now(), MOST_MS);
      const { end } = this.#stretch;
      while (clock.now() < until && !this.#isBeyond(reference)) {
        const { value, done } = await this.#reader.read();
        if (done) throw new SluiceError("url_unreachable", "the server ended the stream");
        this.#stretch.push(this.#aligner.push(value));
      }
      return this.#stretch.end > end;
    } catch (thrown) {
      this.rest();
      throw thrown;
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  rest(): void {
    this.#reader?.cancel().catch(() => {}); // It is given up either way.
    this.#reader = undefined;
  }

  /** Whether so much is here behind this clock that more would only fill memory. */
  #isBeyond(reference: number): boolean {
    const last = this.#stretch.clocks.at(-1);
    if (!last) return false;
    return (
      deltaTicks(Math.floor(last.reference / 300), Math.floor(reference / 300)) >
      AHEAD_SECONDS * TICKS_PER_SECOND
    );
  }

  async #opened(): Promise<ReadableStreamDefaultReader<Uint8Array>> {
    const { body, status } = await this.#client.open(this.#parts.url, {
      limitBytes: Number.POSITIVE_INFINITY,
      purpose: "the stream's copy on the web",
      decode: false,
      signal: this.#parts.stopped,
    });
    if (status !== 200) {
      body.cancel().catch(() => {}); // It is given up either way.
      throw wrongStatus(status, "the stream's copy");
    }
    this.#aligner = new PacketAligner();
    this.#stretch = new PacketStretch(this.#parts.limitBytes);
    return body.getReader();
  }
}
