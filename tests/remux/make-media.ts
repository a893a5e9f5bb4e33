import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** H.264 with three B-frames and a keyframe every two seconds. */
export const H264 = "-c:v libx264 -preset ultrafast -bf 3 -b_strategy 0 -g 50 -pix_fmt yuv420p".split(" ");
/** The same in HEVC. */
export const HEVC =
  "-c:v libx265 -preset ultrafast -x265-params log-level=none:bframes=3:keyint=50 -pix_fmt yuv420p".split(
    " ",
  );

/** The ffmpeg inputs of a small test clip: a moving picture and a tone. */
export function lavfi(seconds: number, size = "320x180", rate = 25): string[] {
  return [
    ..."-f lavfi -i".split(" "),
    `testsrc2=size=${size}:rate=${rate}:duration=${seconds}`,
    ..."-f lavfi -i".split(" "),
    `sine=frequency=440:sample_rate=48000:duration=${seconds}`,
  ];
}

/**
 * Makes a media file with ffmpeg and returns its path. `name` gives the extension; the same name and arguments give
 * the same file, kept in the temporary folder between runs. Written beside and renamed, so that parallel tests may ask at once.
 */
export async function makeMedia(name: string, ffmpegArgs: readonly string[]): Promise<string> {
  const key = createHash("sha256")
    .update(JSON.stringify([name, ffmpegArgs]))
    .digest("hex")
    .slice(0, 16);
  const folder = join(tmpdir(), "sluice-test-media");
  const path = join(folder, `${key}-${name}`);
  if (existsSync(path)) return path;
  await mkdir(folder, { recursive: true });
  const draft = join(folder, `${key}-${process.pid}-${Math.random().toString(36).slice(2)}-${name}`);
  await run("ffmpeg", ["-v", "error", "-y", ...ffmpegArgs, draft], { maxBuffer: 1 << 24 });
  await rename(draft, path);
  return path;
}

const scratchFiles = new Set<string>();

/** Writes bytes where ffprobe can read them; the file goes when the process ends. `extension` has no dot. */
export async function scratchFile(bytes: Uint8Array, extension: string): Promise<string> {
  const path = join(tmpdir(), `sluice-test-${process.pid}-${scratchFiles.size}.${extension}`);
  if (scratchFiles.size === 0) process.once("exit", removeScratchFiles);
  scratchFiles.add(path);
  await writeFile(path, bytes);
  return path;
}

function removeScratchFiles(): void {
  for (const path of scratchFiles) rmSync(path, { force: true });
}

/** Whether ffmpeg can be run here; tests that need it are skipped where it cannot. */
export async function hasFfmpeg(): Promise<boolean> {
  return run("ffmpeg", ["-version"]).then(
    () => true,
    () => false,
  );
}
