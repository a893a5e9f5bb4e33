/**
 * `bun tests/bench/request-load.ts [--seconds 10 --items 100000]`: a viewer of a live stream of 2 Mbit/s (pieces of 125 ms) has a list of
 * 100,000 items and a player. Clients of this machine read the list slowly, or send requests as fast as a limit allows. Prints the longest
 * time without media at the player, the CPU time and the memory of the engine. A row without load is the control.
 */
import { connect, type Socket } from "node:net";
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { startBroadcast, watchUrl } from "../parts/live-broadcast.ts";
import { usageOf } from "../parts/process.ts";
import { GapPlayer } from "./gap-player.ts";
import { markdownTable } from "./table.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "10" },
    items: { type: "string", default: "100000" },
    only: { type: "string", default: "" },
  },
});
const seconds = Number(values.seconds);
const TICK_MS = 20;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A kind of load; `run` returns what the clients did when `isOver` is true. */
interface Load {
  readonly name: string;
  run(port: number, isOver: () => boolean): Promise<string>;
}

const LOADS: readonly Load[] = [
  { name: "none", run: (_, isOver) => until(isOver).then(() => "") },
  { name: "200 readers that read nothing", run: slowReaders(200, 0) },
  { name: "200 readers of 20 kB/s", run: slowReaders(200, 20_000) },
  { name: "200 readers of 100 kB/s", run: slowReaders(200, 100_000) },
  {
    name: "3,250 requests a second of one answer",
    run: requests("/webui/api/service?method=get_version", 3_250),
  },
  { name: "3,250 pages of 25 items a second", run: requests("/playlist/get?limit=25&offset=50000", 3_250) },
  { name: "3,250 searches a second", run: requests("/search?query=channel%2077&page_size=10", 3_250) },
  { name: "none, afterwards", run: (_, isOver) => until(isOver).then(() => "") },
];

/** `count` clients that read the list, each `bytesPerSecond`. */
function slowReaders(count: number, bytesPerSecond: number): Load["run"] {
  return async (port, isOver) => {
    let bytes = 0;
    const sockets = Array.from({ length: count }, () => {
      const socket = connect({ port, host: "127.0.0.1", highWaterMark: 4_096 } as never);
      socket.on("error", () => {});
      socket.on("connect", () => socket.write(head(port, "/playlist/get")));
      socket.pause();
      let allowed = 0;
      socket.on("data", (chunk: Uint8Array) => {
        bytes += chunk.length;
        allowed -= chunk.length;
        if (allowed <= 0) socket.pause();
      });
      return {
        socket,
        allow(more: number) {
          allowed = Math.min(allowed + more, 2 * more);
          if (allowed > 0) socket.resume();
        },
      };
    });
    while (!isOver()) {
      await pause(100);
      if (bytesPerSecond > 0) for (const { allow } of sockets) allow(bytesPerSecond / 10);
    }
    const open = sockets.filter(({ socket }) => !socket.destroyed).length;
    for (const { socket } of sockets) socket.destroy();
    return `${(bytes / 1e6).toFixed(1)} MB, ${open} open`;
  };
}

/** At most `perSecond` requests for `path` over 64 connections, each of which waits for its answer. */
function requests(path: string, perSecond: number): Load["run"] {
  return async (port, isOver) => {
    let [answers, refused, bytes] = [0, 0, 0];
    let allowed = 0;
    const idle: Socket[] = [];
    const send = () => {
      while (allowed >= 1 && idle.length > 0) {
        allowed--;
        idle.pop()!.write(head(port, path));
      }
    };
    const sockets = Array.from({ length: 64 }, () => {
      const socket = connect(port, "127.0.0.1");
      const answer = new Answer();
      socket.on("error", () => {});
      socket.on("connect", () => idle.push(socket));
      socket.on("data", (chunk: Uint8Array) => {
        bytes += chunk.length;
        if (!answer.push(chunk)) return;
        answers++;
        if (!answer.isOk) refused++;
        idle.push(socket);
        send();
      });
      return socket;
    });
    const start = performance.now();
    let last = start;
    while (!isOver()) {
      await pause(TICK_MS);
      const now = performance.now();
      allowed = Math.min(allowed + ((now - last) / 1000) * perSecond, perSecond / 10);
      last = now;
      send();
    }
    const passed = (performance.now() - start) / 1000;
    for (const socket of sockets) socket.destroy();
    const rate = Math.round(answers / passed);
    return `${rate} answers a second, ${refused} refused, ${(bytes / 1e6 / passed).toFixed(1)} MB/s`;
  };
}

/** Finds the end of an answer with a content length or in chunks. */
class Answer {
  isOk = false;
  #head = "";
  #left: number | undefined;
  #tail = "";

  /** Returns true if `chunk` completes the answer. */
  push(chunk: Uint8Array): boolean {
    const text = Buffer.from(chunk).toString("latin1");
    if (this.#left === undefined) {
      this.#head += text;
      const end = this.#head.indexOf("\r\n\r\n");
      if (end < 0) return false;
      this.isOk = this.#head.startsWith("HTTP/1.1 200");
      const length = /\r\ncontent-length: (\d+)/i.exec(this.#head)?.[1];
      this.#left = length === undefined ? Number.POSITIVE_INFINITY : Number(length);
      return this.#body(this.#head.slice(end + 4));
    }
    return this.#body(text);
  }

  #body(text: string): boolean {
    this.#left! -= text.length;
    this.#tail = (this.#tail + text).slice(-7);
    const isWhole =
      this.#left === Number.POSITIVE_INFINITY ? this.#tail.endsWith("0\r\n\r\n") : this.#left! <= 0;
    if (!isWhole) return false;
    this.#head = this.#tail = "";
    this.#left = undefined;
    return true;
  }
}

function head(port: number, path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`;
}

async function until(isOver: () => boolean): Promise<void> {
  while (!isOver()) await pause(100);
}

async function importList(engine: EngineProcess): Promise<void> {
  const lines = ["#EXTM3U"];
  for (let i = 0; i < Number(values.items); i++)
    lines.push(
      `#EXTINF:-1 tvg-id="ch${i}.example" tvg-logo="https://logos.example/${i}.png" group-title="Group ${i % 97}",Channel ${i} HD`,
      `http://tv.example:8080/live/user/pass/${i}.ts`,
    );
  let token = "";
  const call = async <T>(method: string, more: Record<string, string> = {}, body?: FormData) => {
    const query = new URLSearchParams({ method, api_version: "3", token, ...more });
    const answer = await fetch(`${engine.url}/server/api?${query}`, body && { method: "POST", body });
    return ((await answer.json()) as { result: T }).result;
  };
  ({ token } = await call<{ token: string }>("get_api_access_token"));
  const form = new FormData();
  form.set("file", new Blob([lines.join("\n")]), "channels.m3u");
  const { task_id } = await call<{ task_id: number }>("playlist_import", {}, form);
  for (;;) {
    const { status } = await call<{ status: string }>("get_playlist_task_status", {
      task_id: String(task_id),
    });
    if (status === "done") return;
    if (status === "failed") throw new Error("the import failed");
    await pause(200);
  }
}

const source = await startBroadcast({ timedBytesPerSecond: 250_000 });
const viewer = await startEngine({ env: { SLUICE_LOG: "warn", SLUICE_LIVE_LIMIT: "0" } });
try {
  await importList(viewer);
  const player = new GapPlayer(watchUrl(viewer, source.magnet));
  await pause(10_000);
  const rows: string[][] = [];
  for (const { name, run } of LOADS) {
    if (!new RegExp(values.only).test(name)) continue;
    player.takeGapMs();
    const before = usageOf(viewer.pid);
    let most = before.residentBytes;
    const end = performance.now() + seconds * 1000;
    const watch = setInterval(() => {
      most = Math.max(most, usageOf(viewer.pid).residentBytes);
    }, 50);
    const did = await run(Number(new URL(viewer.url).port), () => performance.now() >= end);
    clearInterval(watch);
    const after = usageOf(viewer.pid);
    rows.push([
      name,
      did,
      String(player.takeGapMs()),
      `${(before.residentBytes / 2 ** 20).toFixed(0)} → ${(most / 2 ** 20).toFixed(0)}`,
      `${(((after.cpuSeconds - before.cpuSeconds) / seconds) * 100).toFixed(0)} %`,
    ]);
    console.error(rows.at(-1)!.join(" | "));
    await pause(3_000);
  }
  console.log(
    `${cpus().length} × ${cpus()[0]?.model}, load ${loadavg()[0]!.toFixed(1)}, ends ${player.ends}\n`,
  );
  console.log(
    markdownTable(["load", "clients", "gap ms", "memory MiB, before → most", "CPU of the engine"], rows),
  );
} finally {
  viewer.child.kill("SIGKILL");
  await source.stop();
}
process.exit(0);
