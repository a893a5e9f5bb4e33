import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** H.264 with three B-frames and a key frame every two seconds. */
export const H264 = "-c:v libx264 -preset ultrafast -bf 3 -b_strategy 0 -g 50 -pix_fmt yuv420p".split(" ");
/** HEVC with the same structure. */
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
 * Makes a media file with ffmpeg and returns its path. `name` sets the extension. The same name and arguments return the same file, which
 * stays in the temporary folder between runs. Writes a draft and renames it, so that parallel tests can request the same file.
 */
export async function makeMedia(name: string, ffmpegArgs: readonly string[]): Promise<string> {
  const key = createHash("sha256")
    .update(JSON.stringify([name, ffmpegArgs]))
    .digest("hex")
    .slice(0, 16);
  const path = await mediaPath(`${key}-${name}`);
  if (existsSync(path)) return path;
  const draft = await mediaPath(`${key}-${randomUUID()}-${name}`);
  try {
    await run("ffmpeg", ["-v", "error", "-y", ...ffmpegArgs, draft], { maxBuffer: 1 << 24 });
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
  return path;
}

/** Returns the path of a file in the folder of generated media, which stays between runs. */
export async function mediaPath(name: string): Promise<string> {
  const folder = join(tmpdir(), "sluice-test-media");
  await mkdir(folder, { recursive: true });
  return join(folder, name);
}

const scratchFiles = new Set<string>();

/** Writes bytes to a file that ffprobe can read. The file is removed when the process exits, or under Deno when the test file ends.
 * `extension` has no dot. */
export async function scratchFile(bytes: Uint8Array, extension: string): Promise<string> {
  const path = join(tmpdir(), `sluice-test-${randomUUID()}.${extension}`);
  if (scratchFiles.size === 0) {
    process.once("exit", removeScratchFiles);
    // Deno emits this event at the end of each test file, and no exit event.
    globalThis.addEventListener?.("unload", removeScratchFiles);
  }
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
