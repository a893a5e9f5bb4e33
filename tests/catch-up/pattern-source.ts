import { concatBytes } from "../../src/base/bytes.ts";
import { PATTERN_SOUND_CONFIG } from "../../src/media/test-pattern/sound.ts";
import { TestPattern } from "../../src/media/test-pattern/test-pattern.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";

const pattern = new TestPattern();

/** A channel that sends the test pattern, a second at a time, when the test says so. Each opening has a new clock. */
export class PatternSource {
  readonly #isThin: boolean;
  opened = 0;
  cancelled = 0;
  problem: Error | undefined;
  #second = 0;
  #muxer = newMuxer();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  /** A thin source sends only the first picture of each second. */
  constructor(isThin = false) {
    this.#isThin = isThin;
  }

  readonly open = async (): Promise<ReadableStream<Uint8Array>> => {
    this.opened++;
    if (this.problem) throw this.problem;
    this.#second = 1_000 * this.opened;
    this.#muxer = newMuxer();
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
      },
      cancel: () => {
        this.cancelled++;
        this.#controller = undefined;
      },
    });
  };

  /** True if everything that was sent is read. */
  get isRead(): boolean {
    return (this.#controller?.desiredSize ?? 1) > 0;
  }

  get isOpen(): boolean {
    return this.#controller !== undefined;
  }

  /** Sends the next second. */
  send(): void {
    this.#controller!.enqueue(this.#make(1));
  }

  /** Sends this many seconds at once; of a thin source, the first picture of every second one. */
  sendMany(seconds: number): void {
    const made: Uint8Array[] = [];
    for (let sent = 0; sent < seconds; sent += this.#isThin ? 2 : 1)
      made.push(this.#make(this.#isThin ? 2 : 1));
    this.#controller!.enqueue(concatBytes(made));
  }

  #make(step: number): Uint8Array {
    const second = this.#second;
    this.#second += step;
    const frames = framesOf(second % PATTERN_SECONDS).map((frame) => ({
      ...frame,
      ptsSeconds: frame.ptsSeconds + second - (second % PATTERN_SECONDS),
    }));
    return this.#muxer.segment(this.#isThin ? frames.slice(0, 1) : frames);
  }

  end(): void {
    this.#controller!.close();
    this.#controller = undefined;
  }
}

/** The pictures repeat after this time, because to draw them takes longer than all else. */
const PATTERN_SECONDS = 8;
const seconds = new Map<number, ReturnType<typeof newFrames>>();

function framesOf(second: number) {
  const made = seconds.get(second) ?? newFrames(second);
  seconds.set(second, made);
  return made;
}

function newFrames(second: number) {
  return pattern.second(second).map((frame) => ({ ...frame, track: frame.track === "video" ? 0 : 1 }));
}

function newMuxer(): TsMuxer {
  return new TsMuxer([
    { codec: "h264", language: "und" },
    { codec: "aac", language: "und", config: PATTERN_SOUND_CONFIG },
  ]);
}
