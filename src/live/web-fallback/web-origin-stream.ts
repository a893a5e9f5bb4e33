import { onAbort } from "../../async/abort.ts";
import { SluiceError } from "../../base/errors.ts";
import { after } from "../../base/time.ts";
import { PacketStretch } from "../../media/packet-stretch.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../../media/timestamps.ts";
import { PacketAligner } from "../../media/ts-align.ts";
import { type WebClient, wrongStatus } from "../../web-content/web-client.ts";
import type { OriginOptions, OriginRequest, WebOrigin } from "../contract.ts";

/** A response whose first bytes have been read. */
interface Opened {
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly first: Uint8Array;
}

/** Read ahead of the requested clock value by at most this: the largest lag of a player. */
const AHEAD_SECONDS = 10;
/** Reading time per request. A server may send in real time. */
const MAX_READ_MS = 2_000;

/** An endless MPEG-TS response. It has no past, so it helps only viewers whose peers stay silent. */
export class StreamOrigin implements WebOrigin {
  readonly #client: WebClient;
  readonly #options: OriginOptions;
  #stretch: PacketStretch;
  #aligner = new PacketAligner();
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  constructor(client: WebClient, options: OriginOptions, { reader, first }: Opened) {
    this.#client = client;
    this.#options = options;
    this.#stretch = new PacketStretch(options.limitBytes);
    this.#reader = reader;
    this.#stretch.push(this.#aligner.push(first));
  }

  get stretch(): PacketStretch {
    return this.#stretch;
  }

  async bring({ reference }: OriginRequest, signal: AbortSignal): Promise<boolean> {
    const release = onAbort(signal, () => this.release());
    try {
      this.#reader ??= await this.#open();
      const { clock } = this.#client;
      const until = after(clock.now(), MAX_READ_MS);
      const { end } = this.#stretch;
      while (clock.now() < until && !this.#isBeyond(reference)) {
        const { value, done } = await this.#reader.read();
        if (done) throw new SluiceError("url_unreachable", "the server ended the stream");
        this.#stretch.push(this.#aligner.push(value));
      }
      return this.#stretch.end > end;
    } catch (thrown) {
      this.release();
      throw thrown;
    } finally {
      release();
    }
  }

  release(): void {
    this.#reader?.cancel().catch(() => {}); // The response is discarded anyway.
    this.#reader = undefined;
  }

  /** Whether the stretch is so far ahead of this clock value that more would only use memory. */
  #isBeyond(reference: number): boolean {
    const last = this.#stretch.clocks.at(-1);
    if (!last) return false;
    return (
      deltaTicks(Math.floor(last.reference / 300), Math.floor(reference / 300)) >
      AHEAD_SECONDS * TICKS_PER_SECOND
    );
  }

  async #open(): Promise<ReadableStreamDefaultReader<Uint8Array>> {
    const { body, status } = await this.#client.open(this.#options.url, {
      limitBytes: Number.POSITIVE_INFINITY,
      purpose: "web copy of the stream",
      decode: false,
      signal: this.#options.stopped,
    });
    if (status !== 200) {
      body.cancel().catch(() => {}); // The response is discarded anyway.
      throw wrongStatus(status, "the web copy");
    }
    this.#aligner = new PacketAligner();
    this.#stretch = new PacketStretch(this.#options.limitBytes);
    return body.getReader();
  }
}
