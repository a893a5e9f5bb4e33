import { run } from "../parts/process.ts";
import { packetCounts } from "./judges.ts";

/** Plays as mpv does, decoding every picture, and writes what it shows without loss. */
export async function mpv(url: string, out: string, args: readonly string[]): Promise<void> {
  const codecs = ["--of=matroska", "--ovc=ffv1", "--oac=pcm_s16le"];
  await run("timeout", ["60", "mpv", "--no-config", ...args, `--o=${out}`, ...codecs, url]);
}

/** How many packets of each codec VLC takes out of a stream. */
export async function vlcCounts(url: string, out: string): Promise<Map<string, number>> {
  const quiet = ["--no-dbus", "--intf", "dummy", "--no-media-library"];
  const vlc = ["cvlc", ...quiet, "--sout", `#std{access=file,mux=ts,dst=${out}}`, url, "vlc://quit"];
  const asNobody =
    process.getuid?.() === 0 ? ["runuser", "-u", "nobody", "--", "env", "HOME=/nonexistent"] : [];
  await run("timeout", ["60", ...asNobody, ...vlc]);
  return new Map((await packetCounts(out)).map((line) => [line.split(" ")[0]!, Number(line.split(" ")[1])]));
}
