import { FlatEncoder } from "../h264-encode.ts";
import { PATTERN_FORMAT, PatternPainter } from "./picture.ts";
import { PATTERN_FRAME_SAMPLES, PATTERN_SAMPLE_RATE, soundFrame } from "./sound.ts";

/** One encoded frame of the pattern, in decode order within its track. Times are seconds since 1970. */
export interface PatternFrame {
  readonly track: "video" | "audio";
  readonly ptsSeconds: number;
  readonly durationSeconds: number;
  readonly isKey: boolean;
  /** H.264 in the byte stream format; raw AAC. */
  readonly data: Uint8Array;
}

/** A beep begins with each second and lasts so many frames of sound: 0.1 s. */
const BEEP_FRAMES = 5;

/**
 * A picture with a clock, and a beep each second: H.264 and AAC made without any encoder's help. What is shown at a time follows from
 * that time alone, so that all who show it, and all who begin anew, agree; presentation times are the time of day.
 */
export class TestPattern {
  readonly #painter = new PatternPainter();
  readonly #encoder = new FlatEncoder(PATTERN_FORMAT);
  readonly #silence = soundFrame(undefined);
  readonly #tones = ([0, 1, 2, 3] as const).map((phase) => soundFrame(phase));

  /** The frames that begin within the second `unixSeconds`, video first; the first is a keyframe. */
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
