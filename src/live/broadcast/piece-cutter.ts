import { after, type Instant } from "../../base/time.ts";
import { PieceCutter, type PieceCutterOptions } from "../../media/live-cut.ts";
import type { LivePiece } from "../../media/live-piece.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { LiveInput } from "../input/source.ts";
import { SteadyTime } from "../input/steady-time.ts";

/** What cutting depends on. */
export interface PieceStreamDependencies {
  readonly clock: Clock;
  /** The time of day in UNIX ms. */
  unixMs(): number;
}

/** The pieces of a source. */
export interface PieceStream {
  /** The bitrate in bytes per second, by the stream's own clock; undefined in its first second. */
  readonly bytesPerSecond: number | undefined;
  /** Resolves with the next piece when it is complete: by size, or by time, even without data. Undefined at the end of
   * the source; rejects with `SluiceError` if the source fails. Call it again only after it has settled. */
  next(): Promise<LivePiece | undefined>;
  /** Closes the source. */
  close(): void;
}

/** Cuts an input into pieces, driven by the calls of `next`. */
export function cutPieces(
  input: LiveInput,
  options: PieceCutterOptions,
  { clock, unixMs }: PieceStreamDependencies,
): PieceStream {
  const cutter = new PieceCutter(options);
  const time = new SteadyTime();
  const packets = new PacketReader(input.packets());
  const now = () => time.now(clock.now(), unixMs());
  const ready: LivePiece[] = [];
  let isFinished = false;

  return {
    get bytesPerSecond() {
      return cutter.bytesPerSecond;
    },
    async next() {
      while (ready.length === 0 && !isFinished) {
        const wakeMs = cutter.nextWakeMs();
        const at = wakeMs === undefined ? undefined : after(clock.now(), Math.max(1, wakeMs - now()));
        const received = await packets.before(clock, at);
        isFinished = packets.hasEnded && received === undefined;
        if (isFinished) ready.push(...cutter.finish(now()));
        else ready.push(...(received ? cutter.push(received, now()) : cutter.wake(now())));
      }
      return ready.shift();
    },
    close: () => packets.close(),
  };
}

/** Reads packets with a timeout: a read that takes longer continues, and the next call waits for it. */
class PacketReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #isReading = false;
  #received: Uint8Array | undefined;
  #failure: { readonly reason: unknown } | undefined;
  #wake: () => void = () => {};
  hasEnded = false;

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader();
  }

  /** Resolves with the next packets; undefined if none arrive before `at`, or the stream has ended. */
  async before(clock: Clock, at: Instant | undefined): Promise<Uint8Array | undefined> {
    // Packets that arrived after a timeout are still here.
    if (!this.#isReading && !this.#isReady) this.#read();
    // Not `Promise.race`: each race would add a reaction to the read, and a source may be silent for days.
    await new Promise<void>((resolve) => {
      const cancel = at === undefined ? () => {} : clock.at(at, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
      if (!this.#isReading) this.#wake();
    });
    if (this.#failure) throw this.#failure.reason;
    const received = this.#received;
    this.#received = undefined;
    return received;
  }

  get #isReady(): boolean {
    return this.#received !== undefined || this.#failure !== undefined || this.hasEnded;
  }

  close(): void {
    this.#reader.cancel().catch(() => {}); // The source is discarded anyway.
  }

  #read(): void {
    this.#isReading = true;
    const settle = () => {
      this.#isReading = false;
      this.#wake();
    };
    this.#reader.read().then(
      ({ done, value }) => {
        this.hasEnded = done;
        this.#received = value;
        settle();
      },
      (reason: unknown) => {
        this.#failure = { reason };
        settle();
      },
    );
  }
}
