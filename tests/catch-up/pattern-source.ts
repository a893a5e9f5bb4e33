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

  get isOpen(): boolean {
    return this.#controller !== undefined;
  }

  /** Sends the next second. Returns its size. */
  send(): number {
    const second = this.#second++;
    const frames = pattern
      .second(second)
      .map((frame) => ({ ...frame, track: frame.track === "video" ? 0 : 1 }));
    const bytes = this.#muxer.segment(frames);
    this.#controller!.enqueue(bytes);
    return bytes.length;
  }

  end(): void {
    this.#controller!.close();
    this.#controller = undefined;
  }
}

function newMuxer(): TsMuxer {
  return new TsMuxer([
    { codec: "h264", language: "und" },
    { codec: "aac", language: "und", config: PATTERN_SOUND_CONFIG },
  ]);
}
