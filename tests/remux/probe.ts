import { execFile, spawn } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** One packet as ffprobe sees it; times in seconds. */
export interface ProbedPacket {
  readonly stream: number;
  readonly pts: number;
  readonly dts: number;
  readonly isKey: boolean;
}

/** All packets of a media file, in file order. */
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

/** Packets of each stream. */
export function countByStream(packets: readonly ProbedPacket[]): number[] {
  const counts: number[] = [];
  for (const { stream } of packets) counts[stream] = (counts[stream] ?? 0) + 1;
  return counts;
}

/** What ffmpeg complains about when it decodes the bytes; empty where it is content. */
export async function ffmpegComplaints(bytes: Uint8Array, args: readonly string[] = []): Promise<string> {
  const child = spawn("ffmpeg", ["-v", "error", ...args, "-i", "-", "-f", "null", "-"], {
    stdio: ["pipe", "ignore", "pipe"],
  });
  let text = "";
  child.stderr.on("data", (chunk) => {
    text += chunk;
  });
  child.stdin.on("error", () => {}); // ffmpeg may leave before the end: its exit tells why.
  child.stdin.end(bytes);
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return code === 0 ? text : `${text}\nexit ${code}`;
}

/** The decoded frames of one stream, as `pts-free` MD5 lines: equal media has equal lists. */
export async function frameHashes(path: string, stream: string): Promise<string[]> {
  const args = ["-v", "error", "-i", path, "-map", `0:${stream}`, "-f", "framemd5", "-"];
  const { stdout } = await run("ffmpeg", args, { maxBuffer: 1 << 28 });
  return stdout
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.split(",").at(-1)!.trim());
}
