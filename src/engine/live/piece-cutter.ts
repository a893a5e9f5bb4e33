import { after, type Instant } from "../../base/time.ts";
import { PieceCutter, type PieceCutterOptions } from "../../media/live-cut.ts";
import type { LivePiece } from "../../media/live-piece.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { LiveInput } from "./source.ts";
import { SteadyTime } from "./steady-time.ts";

/** What cutting needs of the machine. */
export interface PieceStreamParts {
  readonly clock: Clock;
  /** The time of day in UNIX ms. */
  unixMs(): number;
}

/** The pieces of a source. */
export interface PieceStream {
  /** The rate of the stream by its own clock; undefined before its first second. */
  readonly bytesPerSecond: number | undefined;
  /**
   * The next piece, as soon as it is complete: by its size, or by the time, whether anything comes or not. Undefined where the source has
   * ended; rejects with `SluiceError` where it cannot go on. Not to be asked again before it has answered.
   */
  next(): Promise<LivePiece | undefined>;
  /** Lets the source go. */
  close(): void;
}

/** Cuts what an input brings, for as long as somebody asks for pieces. */
export function cutPieces(
  input: LiveInput,
  options: PieceCutterOptions,
  { clock, unixMs }: PieceStreamParts,
): PieceStream {
  const cutter = new PieceCutter(options);
  const time = new SteadyTime();
  const packets = new NextPackets(input.packets());
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
        const came = await packets.before(clock, at);
        isFinished = packets.isOver && came === undefined;
        if (isFinished) ready.push(...cutter.finish(now()));
        else ready.push(...(came ? cutter.push(came, now()) : cutter.wake(now())));
      }
      return ready.shift();
    },
    close: () => packets.close(),
  };
}

/** Waits for packets, but not for ever: a read that takes longer goes on, and is waited for again. */
class NextPackets {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #isReading = false;
  #came: Uint8Array | undefined;
  #failure: { readonly reason: unknown } | undefined;
  #wake: () => void = () => {};
  isOver = false;

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader();
  }

  /** What comes next; undefined where it does not come before `at`, or the stream is over. */
  async before(clock: Clock, at: Instant | undefined): Promise<Uint8Array | undefined> {
    // What came while nobody waited is there still.
    if (!this.#isReading && !this.#isSettled) this.#read();
    // Not a race of promises: each would leave something on the read, and a source may be silent for days.
    await new Promise<void>((resolve) => {
      const cancel = at === undefined ? () => {} : clock.at(at, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
      if (!this.#isReading) this.#wake();
    });
    if (this.#failure) throw this.#failure.reason;
    const came = this.#came;
    this.#came = undefined;
    return came;
  }

  get #isSettled(): boolean {
    return this.#came !== undefined || this.#failure !== undefined || this.isOver;
  }

  close(): void {
    this.#reader.cancel().catch(() => {}); // It is given up either way.
  }

  #read(): void {
    this.#isReading = true;
    const settle = () => {
      this.#isReading = false;
      this.#wake();
    };
    this.#reader.read().then(
      ({ done, value }) => {
        this.isOver = done;
        this.#came = value;
        settle();
      },
      (reason: unknown) => {
        this.#failure = { reason };
        settle();
      },
    );
  }
}
