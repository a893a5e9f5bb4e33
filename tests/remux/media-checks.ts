import { execFile } from "node:child_process";
import { mkdtemp, open, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { RandomAccess } from "../../src/base/byte-source.ts";
import { writeMediaManifest } from "../../src/media/manifest.ts";
import type { Media } from "../../src/remux/contract.ts";
import { fmp4Segment, tsSegment } from "./segments.ts";

const run = promisify(execFile);

/** A file on disk as a byte source that records its reads. */
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

/** Bytes in memory as a byte source. */
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

/** Returns all packets of a file from ffprobe. Throws if ffprobe reports an error. */
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

/** Returns the errors of ffmpeg when it decodes the whole file; empty if there are none. */
export async function decodeErrors(path: string): Promise<string> {
  const { stderr } = await run("ffmpeg", ["-v", "error", "-i", path, "-f", "null", "-"], {
    maxBuffer: 1 << 26,
  });
  return stderr;
}

/** Returns a hash of the decoded video or audio of a stream, independent of its times. */
export async function decodedHash(path: string, stream: string): Promise<string> {
  const args = ["-v", "error", "-i", path, "-map", stream, "-fps_mode", "passthrough", "-f", "md5", "-"];
  const { stdout } = await run(
    "ffmpeg",
    stream.includes("v") ? args : args.filter((_, i) => i !== 6 && i !== 7),
  );
  return stdout.trim();
}

/** Returns the presentation time of the first frame of each stream, in seconds. */
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
  // ffprobe lists the streams of a programme twice.
  return stdout
    .trim()
    .split("\n")
    .map((line) => Number.parseFloat(line))
    .filter((time) => Number.isFinite(time));
}

/** Returns all segments of a file, concatenated. */
export async function wholeTs(media: Media): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (let i = 0; i < media.segments.length; i++) parts.push(await tsSegment(media, i));
  return Buffer.concat(parts);
}

/** Writes a file as HLS into a new folder and returns the path of the manifest. */
export async function writeHls(media: Media, kind: "ts" | "fmp4"): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "sluice-hls-"));
  const ending = kind === "ts" ? "ts" : "m4s";
  for (let i = 0; i < media.segments.length; i++) {
    const bytes = kind === "ts" ? await tsSegment(media, i) : await fmp4Segment(media, i);
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
