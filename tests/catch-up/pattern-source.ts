import { PATTERN_SOUND_CONFIG } from "../../src/media/test-pattern/sound.ts";
import { TestPattern } from "../../src/media/test-pattern/test-pattern.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";

const pattern = new TestPattern();

/** A channel that sends the test pattern, a second at a time, when the test says so. Each opening has a new clock. */
export class PatternSource {
  opened = 0;
  cancelled = 0;
  problem: Error | undefined;
  #second = 0;
  #muxer = newMuxer();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

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
    const second = this.#second++;
    const frames = framesOf(second % PATTERN_SECONDS).map((frame) => ({
      ...frame,
      ptsSeconds: frame.ptsSeconds + second - (second % PATTERN_SECONDS),
    }));
    this.#controller!.enqueue(this.#muxer.segment(frames));
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
