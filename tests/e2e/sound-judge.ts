import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The rate at which sound is compared, in Hz. */
export const JUDGED_RATE = 16_000;

/** Arguments of ffmpeg for a rising tone with noise: a shift by a millisecond lowers the correlation. */
export function chirp(seconds: number): string[] {
  const sound = `aevalsrc=0.3*sin(2*PI*(300+4*t)*t)+0.1*(random(0)-0.5):s=48000:d=${seconds}`;
  return ["-f", "lavfi", "-i", sound];
}

/** The first audio track of `input` as ffmpeg decodes it, mono, and the presentation time of its first sample. */
export async function soundOf(input: string): Promise<{ samples: Float32Array; seconds: number }> {
  const probe = "-select_streams a:0 -read_intervals %+#3 -show_entries frame=pts_time -of json".split(" ");
  const { frames } = JSON.parse((await run("ffprobe", ["-v", "error", ...probe, input])).stdout);
  const raw = ["-map", "0:a:0", "-ac", "1", "-ar", String(JUDGED_RATE), "-f", "f32le", "-"];
  const { stdout } = await run("ffmpeg", ["-v", "error", "-i", input, ...raw], {
    encoding: "buffer",
    maxBuffer: 1 << 28,
  });
  const whole = stdout.buffer.slice(stdout.byteOffset, stdout.byteOffset + (stdout.length & ~3));
  return { samples: new Float32Array(whole), seconds: Number(frames[0].pts_time) };
}

/** How well `part` matches `source` around position `at`: the best correlation, and its distance in seconds. */
export function match(
  source: Float32Array,
  part: Float32Array,
  at: number,
  withinSeconds = 0.1,
): { correlation: number; offsetSeconds: number } {
  const limit = Math.round(withinSeconds * JUDGED_RATE);
  let best = { correlation: -1, offsetSeconds: 0 };
  for (let shift = -limit; shift <= limit; shift++) {
    let [both, first, second] = [0, 0, 0];
    for (let i = 0; i < part.length; i += 5) {
      const original = source[at + shift + i] ?? 0;
      both += original * part[i]!;
      first += original ** 2;
      second += part[i]! ** 2;
    }
    const correlation = both / Math.sqrt(first * second || 1);
    if (correlation > best.correlation) best = { correlation, offsetSeconds: shift / JUDGED_RATE };
  }
  return best;
}
