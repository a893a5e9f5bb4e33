import { execFile } from "node:child_process";
import { mkdtemp, open, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { RandomAccess } from "../../src/base/byte-source.ts";
import { writeMediaManifest } from "../../src/media/manifest.ts";
import type { Media } from "../../src/remux/contract.ts";

const run = promisify(execFile);

/** A file on disk as a source of bytes, and what was read of it. */
export interface FileAccess extends RandomAccess {
  readonly reads: { start: number; end: number }[];
  bytesRead: number;
  close(): Promise<void>;
}

export async function fileAccess(path: string): Promise<FileAccess> {
  const file = await open(path);
  const access: FileAccess = {
    size: (await file.stat()).size,
    reads: [],
    bytesRead: 0,
    async read({ start, end }) {
      const bytes = new Uint8Array(end - start);
      access.reads.push({ start, end });
      access.bytesRead += end - start;
      let at = 0;
      while (at < bytes.length) {
        const { bytesRead } = await file.read(bytes, at, bytes.length - at, start + at);
        if (bytesRead === 0) throw new Error(`read past the end at ${start + at}`);
        at += bytesRead;
      }
      return bytes;
    },
    close: () => file.close(),
  };
  return access;
}

/** Bytes in memory as a source. */
export function memoryAccess(bytes: Uint8Array): RandomAccess {
  return { size: bytes.length, read: async ({ start, end }) => bytes.slice(start, end) };
}

export interface ProbedPacket {
  readonly stream: number;
  readonly pts: number;
  readonly dts: number;
  readonly isKey: boolean;
  readonly size: number;
}

/** All packets of a file, as ffprobe sees them; it must have nothing to complain about. */
export async function probePackets(path: string): Promise<ProbedPacket[]> {
  const entries = "packet=stream_index,pts,dts,flags,size";
  const { stdout, stderr } = await run(
    "ffprobe",
    ["-v", "error", "-show_entries", entries, "-of", "json", path],
    { maxBuffer: 1 << 28 },
  );
  if (stderr !== "") throw new Error(`ffprobe: ${stderr}`);
  const packets = JSON.parse(stdout).packets as Record<string, string>[];
  return packets.map((packet) => ({
    stream: Number(packet.stream_index),
    pts: Number(packet.pts),
    dts: Number(packet.dts),
    isKey: packet.flags!.startsWith("K"),
    size: Number(packet.size),
  }));
}

/** What ffmpeg says while decoding everything: nothing, where all is well. */
export async function decodeErrors(path: string): Promise<string> {
  const { stderr } = await run("ffmpeg", ["-v", "error", "-i", path, "-f", "null", "-"], {
    maxBuffer: 1 << 26,
  });
  return stderr;
}

/** A hash of the decoded picture or sound of one stream, whatever its times. */
export async function decodedHash(path: string, stream: string): Promise<string> {
  const args = ["-v", "error", "-i", path, "-map", stream, "-fps_mode", "passthrough", "-f", "md5", "-"];
  const { stdout } = await run(
    "ffmpeg",
    stream.includes("v") ? args : args.filter((_, i) => i !== 6 && i !== 7),
  );
  return stdout.trim();
}

/** When the first frame of each stream is shown, in seconds. */
export async function startTimes(path: string): Promise<number[]> {
  const { stdout } = await run("ffprobe", [
    "-v",
    "error",
    "-show_entries",
    "stream=start_time",
    "-of",
    "csv=p=0",
    path,
  ]);
  // Streams of a programme are listed twice: once under it.
  return stdout
    .trim()
    .split("\n")
    .map((line) => Number.parseFloat(line))
    .filter((time) => Number.isFinite(time));
}

/** All segments of a file, one after another. */
export async function wholeTs(media: Media): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (let i = 0; i < media.segments.length; i++) parts.push(await media.tsSegment(i));
  return Buffer.concat(parts);
}

/** Writes a file's HLS presentation into a folder of its own and returns the path of the manifest. */
export async function writeHls(media: Media, kind: "ts" | "fmp4"): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "sluice-hls-"));
  const ending = kind === "ts" ? "ts" : "m4s";
  for (let i = 0; i < media.segments.length; i++) {
    const bytes = kind === "ts" ? await media.tsSegment(i) : await media.fmp4Segment(i);
    await writeFile(join(folder, `${i}.${ending}`), bytes);
  }
  if (kind === "fmp4") await writeFile(join(folder, "init.mp4"), await media.fmp4Init());
  const manifest = writeMediaManifest({
    kind: "vod",
    segments: media.segments.map(({ durationSeconds }, i) => ({ durationSeconds, uri: `${i}.${ending}` })),
    ...(kind === "fmp4" ? { mapUri: "init.mp4" } : {}),
  });
  const path = join(folder, "main.m3u8");
  await writeFile(path, manifest);
  return path;
}
