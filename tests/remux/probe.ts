import { execFile, spawn } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A packet reported by ffprobe; times in seconds. */
export interface ProbedPacket {
  readonly stream: number;
  readonly pts: number;
  readonly dts: number;
  readonly isKey: boolean;
}

/** Returns all packets of a media file, in file order. */
export async function probePackets(path: string): Promise<ProbedPacket[]> {
  const args = [
    "-v",
    "error",
    "-show_entries",
    "packet=stream_index,pts_time,dts_time,flags",
    "-of",
    "json",
    path,
  ];
  const { stdout } = await run("ffprobe", args, { maxBuffer: 1 << 28 });
  const { packets } = JSON.parse(stdout) as { packets: Record<string, string>[] };
  return packets.map((packet) => ({
    stream: Number(packet.stream_index),
    pts: Number(packet.pts_time),
    dts: Number(packet.dts_time),
    isKey: packet.flags!.startsWith("K"),
  }));
}

/** Counts the packets of each stream. */
export function countByStream(packets: readonly ProbedPacket[]): number[] {
  const counts: number[] = [];
  for (const { stream } of packets) counts[stream] = (counts[stream] ?? 0) + 1;
  return counts;
}

/** Returns the errors of ffmpeg when it decodes the bytes; empty if there are none. */
export async function ffmpegErrors(bytes: Uint8Array, args: readonly string[] = []): Promise<string> {
  const child = spawn("ffmpeg", ["-v", "error", ...args, "-i", "-", "-f", "null", "-"], {
    stdio: ["pipe", "ignore", "pipe"],
  });
  let text = "";
  child.stderr.on("data", (chunk) => {
    text += chunk;
  });
  child.stdin.on("error", () => {}); // ffmpeg can exit before the end; its exit code is checked.
  child.stdin.end(bytes);
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return code === 0 ? text : `${text}\nexit ${code}`;
}

/** Returns the MD5 of each decoded frame of a stream, without times. */
export async function frameHashes(path: string, stream: string): Promise<string[]> {
  const args = ["-v", "error", "-i", path, "-map", `0:${stream}`, "-f", "framemd5", "-"];
  const { stdout } = await run("ffmpeg", args, { maxBuffer: 1 << 28 });
  return stdout
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.split(",").at(-1)!.trim());
}

/** A subtitle as ffmpeg decodes it; times in seconds. */
export interface DecodedSubtitle {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Returns the subtitles of a stream as ffmpeg decodes them to SubRip. `args` precede the input. */
export async function decodedSubtitles(
  path: string,
  stream = "s:0",
  args: readonly string[] = [],
): Promise<DecodedSubtitle[]> {
  const output = ["-i", path, "-map", `0:${stream}`, "-f", "srt", "-"];
  const { stdout } = await run("ffmpeg", ["-v", "error", ...args, ...output]);
  const seconds = (time: string) =>
    time
      .split(/[:,]/)
      .reduce((sum, part, index) => sum + Number(part) / [1 / 3600, 1 / 60, 1, 1000][index]!, 0);
  return stdout.split(/\n\n+(?=\d+\n)/).flatMap((block) => {
    const [, times = "", ...lines] = block.trim().split("\n");
    const [start, end] = times.split(" --> ");
    const text = lines
      .map((line) => line.trim())
      .filter(Boolean)
      .join("\n");
    return start && end ? [{ start: seconds(start), end: seconds(end), text }] : [];
  });
}
