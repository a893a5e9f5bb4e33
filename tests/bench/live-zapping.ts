// `bun tests/bench/live-zapping.ts [--changes N]`: memory of an engine that plays one live channel of 3 Mbit/s, and three in turn; and the
// time that mpv needs to change the channel, beside the time it needs to open the same stream from a file.
import { connect } from "node:net";
import { parseArgs } from "node:util";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { type BroadcastProcess, startBroadcast, watchUrl } from "../parts/live-broadcast.ts";
import { type RunningProcess, run, startProcess, usageOf } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { markdownTable, median } from "./table.ts";

const { values } = parseArgs({ options: { changes: { type: "string", default: "30" } } });
const MIB = 1024 * 1024;
const CHANNELS = 3;

/** A running mpv without a window and without sound. It receives commands over its socket. */
class Mpv {
  readonly #process: RunningProcess;
  readonly #socket: ReturnType<typeof connect>;
  #started: () => void = () => {};

  private constructor(process: RunningProcess, socket: ReturnType<typeof connect>) {
    this.#process = process;
    this.#socket = socket;
    let rest = "";
    socket.on("data", (bytes) => {
      const lines = (rest + bytes.toString()).split("\n");
      rest = lines.pop()!;
      if (lines.some((line) => line.includes('"playback-restart"'))) this.#started();
    });
  }

  static async start(path: string): Promise<Mpv> {
    const quiet = ["--no-config", "--vo=null", "--ao=null", "--idle", "--no-terminal"];
    const process = startProcess("mpv", [...quiet, `--input-ipc-server=${path}`]);
    for (;;) {
      const socket = connect(path);
      const isOpen = await new Promise<boolean>((resolve) => {
        socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
      });
      if (isOpen) return new Mpv(process, socket);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Resolves with the milliseconds until the first picture is shown. */
  async play(url: string): Promise<number> {
    const began = performance.now();
    const started = new Promise<void>((resolve) => {
      this.#started = resolve;
    });
    this.#socket.write(`${JSON.stringify({ command: ["loadfile", url, "replace"] })}\n`);
    await started;
    return performance.now() - began;
  }

  async stop(): Promise<void> {
    this.#socket.destroy();
    await this.#process.stop();
  }
}

/** Plays the stream for `ms` and throws the bytes away. */
async function drain(url: string, ms: number): Promise<void> {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), ms);
  try {
    const { body } = await fetch(url, { signal: abort.signal });
    for (const reader = body!.getReader(); !(await reader.read()).done; );
  } catch (thrown) {
    if (!abort.signal.aborted) throw thrown;
  }
  clearTimeout(timer);
}

async function withEngine<T>(work: (engine: EngineProcess) => Promise<T>): Promise<T> {
  const engine = await startEngine({ env: { SLUICE_LOG: "error" } });
  try {
    return await work(engine);
  } finally {
    await engine.stop();
  }
}

function memoryRow(name: string, pid: number, aim: string): string[] {
  const { residentBytes, peakBytes } = usageOf(pid);
  return [name, `${(residentBytes / MIB).toFixed(0)} MiB, peak ${(peakBytes / MIB).toFixed(0)}`, aim];
}

const scratch = await tempFolder("zapping");
const channels: BroadcastProcess[] = [];
try {
  const film = scratch.file("channel.ts");
  const picture = ["-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25:duration=60"];
  const sound = ["-f", "lavfi", "-i", "sine=frequency=440:duration=60", "-c:a", "aac"];
  const coded = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-b:v", "2600k", "-muxrate", "3M"];
  await run("ffmpeg", ["-v", "error", ...picture, ...sound, ...coded, "-shortest", film]);
  for (let i = 0; i < CHANNELS; i++)
    channels.push(await startBroadcast({ place: film }, { name: `channel ${i}`, flags: ["--loop"] }));
  const changes = Number(values.changes);
  const rows: string[][] = [];
  await withEngine(async (engine) => {
    await drain(watchUrl(engine, channels[0]!.magnet), 60_000);
    rows.push(memoryRow("one channel with a player, after a minute", engine.pid, "120 MB"));
  });
  await withEngine(async (engine) => {
    const url = (i: number) => watchUrl(engine, channels[i % CHANNELS]!.magnet);
    for (let i = 0; i < changes; i++) await drain(url(i), 2_000);
    rows.push(memoryRow(`${CHANNELS} channels, ${changes} changes`, engine.pid, "180 MB"));
    const mpv = await Mpv.start(scratch.file("mpv"));
    try {
      const times: number[] = [];
      for (let i = 0; i < changes; i++) {
        times.push(await mpv.play(url(i)));
        await new Promise((resolve) => setTimeout(resolve, 1_000));
      }
      const [files, later] = [[], times.slice(CHANNELS)] as [number[], number[]];
      for (let i = 0; i < 5; i++) files.push(await mpv.play(film));
      const worst = Math.max(...later).toFixed(0);
      rows.push(["mpv, change of the channel", `${median(later).toFixed(0)} ms, most ${worst}`, "300 ms"]);
      rows.push(["mpv, the same stream from a file", `${median(files).toFixed(0)} ms`, ""]);
    } finally {
      await mpv.stop();
    }
  });
  console.log(markdownTable(["3 Mbit/s, live", "figure", "aim"], rows));
} finally {
  for (const channel of channels) await channel.stop();
  await scratch.remove();
}
