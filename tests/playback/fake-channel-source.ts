import { SluiceError } from "../../src/base/errors.ts";
import { PATTERN_SOUND_CONFIG } from "../../src/media/test-pattern/sound.ts";
import { TestPattern } from "../../src/media/test-pattern/test-pattern.ts";
import type { ChannelSource } from "../../src/playback/channel-feed.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";
import { renumbered } from "../parts/renumbered-ts.ts";

const PATTERN = new TestPattern();

/** A source whose clock begins at `second`, and that sends what the test tells it to. */
export class FakeSource implements ChannelSource {
  readonly name: string;
  /** Other PIDs than those of the test pattern, by these. */
  pids: ReadonlyMap<number, number> = new Map();
  /** The codec of its sound. */
  sound: "aac" | "mp2" | "none" = "aac";
  opened = 0;
  closed = 0;
  fails = false;
  isLost = false;
  #second: number;
  #muxer = newMuxer();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(name: string, second: number) {
    this.name = name;
    this.#second = second;
  }

  async open(_: AbortSignal, convertsSound: boolean): Promise<ReadableStream<Uint8Array>> {
    this.opened++;
    if (convertsSound && this.sound !== "none") this.sound = "aac";
    this.#muxer = newMuxer(this.sound);
    if (this.fails) throw new SluiceError("no_peers", `no peer of ${this.name}`);
    let own: ReadableStreamDefaultController<Uint8Array> | undefined;
    return new ReadableStream({
      start: (controller) => {
        own = this.#controller = controller;
      },
      cancel: () => {
        this.closed++;
        // It may have been opened again.
        if (this.#controller === own) this.#controller = undefined;
      },
    });
  }

  isUnreachable(): boolean {
    return this.isLost;
  }

  /** Sends a second of the stream, without its first packets if `from` is given. */
  send(from = 0): void {
    const second = this.#second++;
    const frames = framesOf(second, second).filter(({ track }) => track === 0 || this.sound !== "none");
    const packets = this.#muxer.segment(frames);
    this.#controller!.enqueue(renumbered(packets, this.pids).subarray(188 * from));
  }

  /** Sends a second again that was sent before, with new times. */
  repeat(second: number): void {
    this.#controller!.enqueue(this.#muxer.segment(framesOf(second, this.#second++)));
  }

  /** Continues at another second, as another encoder: all counters begin again. */
  jump(second: number): void {
    this.#second = second;
    this.#muxer = newMuxer(this.sound);
  }

  get isOpen(): boolean {
    return this.#controller !== undefined;
  }

  end(): void {
    this.#controller!.close();
    this.#controller = undefined;
  }

  break(): void {
    this.#controller!.error(new SluiceError("session_stopped", "gone"));
    this.#controller = undefined;
  }
}

/** The frames of a second of the pattern, at the time `at`. */
export function framesOf(second: number, at: number) {
  return PATTERN.second(second).map((frame) => ({
    ...frame,
    ptsSeconds: frame.ptsSeconds + at - second,
    track: frame.track === "video" ? 0 : 1,
  }));
}

/** Makes a stream of the test pattern whose counters begin at 0. */
export function newMuxer(sound: FakeSource["sound"] = "aac"): TsMuxer {
  if (sound === "none") return new TsMuxer([{ codec: "h264", language: "und" }]);
  return new TsMuxer([
    { codec: "h264", language: "und" },
    sound === "aac"
      ? { codec: "aac", language: "und", config: PATTERN_SOUND_CONFIG }
      : { codec: sound, language: "und" },
  ]);
}
