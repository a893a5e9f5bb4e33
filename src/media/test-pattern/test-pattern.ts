import { FlatEncoder } from "../h264-encode.ts";
import { PATTERN_FORMAT, PatternPainter } from "./picture.ts";
import { PATTERN_FRAME_SAMPLES, PATTERN_SAMPLE_RATE, soundFrame } from "./sound.ts";

/** An encoded frame of the pattern. Times are UNIX seconds. */
interface PatternFrame {
  readonly track: "video" | "audio";
  readonly ptsSeconds: number;
  readonly durationSeconds: number;
  readonly isKey: boolean;
  /** H.264 in the byte stream format (Annex B), or raw AAC. */
  readonly data: Uint8Array;
}

/** Duration of the beep at the start of each second, in audio frames: 0.1 s. */
const BEEP_FRAMES = 5;

/**
 * A test stream with a clock picture and a beep every second, encoded as H.264 and AAC without external encoders. Its content depends only
 * on the time and the message, so that all sources of the pattern, also after a restart, produce the same stream. Presentation times are UNIX time.
 */
export class TestPattern {
  readonly #painter: PatternPainter;
  readonly #encoder = new FlatEncoder(PATTERN_FORMAT);
  readonly #silence = soundFrame(undefined);
  readonly #tones = ([0, 1, 2, 3] as const).map((phase) => soundFrame(phase));

  /** @param message shown in place of the labels; default: none */
  constructor(message?: string) {
    this.#painter = new PatternPainter(message);
  }

  /** Returns the frames that begin within the second `unixSeconds`, video first, each track in decode order; the first is a key frame. */
  second(unixSeconds: number): PatternFrame[] {
    return [...this.#video(unixSeconds), ...this.#audio(unixSeconds)];
  }

  #video(second: number): PatternFrame[] {
    const { framesPerSecond } = PATTERN_FORMAT;
    return Array.from({ length: framesPerSecond }, (_, i) => {
      const frame = second * framesPerSecond + i;
      return {
        track: "video",
        ptsSeconds: frame / framesPerSecond,
        durationSeconds: 1 / framesPerSecond,
        isKey: i === 0,
        data: this.#encoder.encode(this.#painter.paint(frame), i === 0),
      };
    });
  }

  #audio(second: number): PatternFrame[] {
    const perSecond = PATTERN_SAMPLE_RATE / PATTERN_FRAME_SAMPLES;
    const first = Math.ceil(second * perSecond);
    const frames: PatternFrame[] = [];
    for (let frame = first; frame < (second + 1) * perSecond; frame++) {
      const isBeep = frame - first < BEEP_FRAMES;
      frames.push({
        track: "audio",
        ptsSeconds: frame / perSecond,
        durationSeconds: 1 / perSecond,
        isKey: true,
        data: isBeep ? this.#tones[frame % 4]! : this.#silence,
      });
    }
    return frames;
  }
}
