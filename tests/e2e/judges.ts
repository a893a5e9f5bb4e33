import { run } from "../parts/process.ts";

/** The packets of each stream, as ffprobe counts them: `h264 500`, in no particular order of streams. */
export async function packetCounts(url: string): Promise<string[]> {
  const said = await run("ffprobe", [
    ...["-v", "error", "-count_packets", "-show_streams", "-of", "json"],
    url,
  ]);
  const { streams } = JSON.parse(said) as { streams: { codec_name: string; nb_read_packets: string }[] };
  return streams.map((stream) => `${stream.codec_name} ${stream.nb_read_packets}`).sort();
}

/** Returns the number of packets. Throws if a stream's DTS is not strictly increasing or a PTS is before its DTS. */
export async function checkTimestamps(url: string): Promise<number> {
  const said = await run("ffprobe", [
    ...["-v", "error", "-show_entries", "packet=stream_index,pts,dts", "-of", "json", url],
  ]);
  const { packets } = JSON.parse(said) as { packets: { stream_index: number; pts?: number; dts?: number }[] };
  const last = new Map<number, number>();
  for (const { stream_index: stream, pts, dts } of packets) {
    if (pts === undefined || dts === undefined) throw new Error(`${url}: a packet of ${stream} has no time`);
    if (pts < dts) throw new Error(`${url}: PTS ${pts} before DTS ${dts} in ${stream}`);
    if (dts <= (last.get(stream) ?? -1))
      throw new Error(`${url}: DTS ${dts} after ${last.get(stream)} in ${stream}`);
    last.set(stream, dts);
  }
  return packets.length;
}

/** Decodes everything; throws with ffmpeg's output if it reports an error. */
export async function decodesSilently(url: string): Promise<void> {
  const said = await run("ffmpeg", ["-v", "error", "-i", url, "-map", "0", "-f", "null", "-"]);
  if (said.trim() !== "") throw new Error(`ffmpeg reported for ${url}:\n${said}`);
}

/** The hash of every decoded picture, in order. */
export async function frameHashes(url: string): Promise<string[]> {
  const said = await run("ffmpeg", [
    ...["-v", "error", "-i", url, "-map", "0:v:0", "-vsync", "passthrough"],
    ...["-f", "framehash", "-hash", "md5", "-"],
  ]);
  return said
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.split(",").at(-1)!.trim());
}
