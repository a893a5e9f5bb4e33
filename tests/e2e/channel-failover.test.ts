import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { type EngineProcess, runtimeCommand, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type RunningProcess, run, startProcess } from "../parts/process.ts";
import { type Attempt, inRealTime } from "../parts/real-time.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { checkTs } from "../remux/ts-checker.ts";

const { test } = await testsThatNeed("ffmpeg", "mpv", "vlc");

const SERVER = fileURLToPath(new URL("../parts/pattern-server.ts", import.meta.url));
/** Enough that a killed source is not needed again within the minute in which the engine avoids it. */
const SOURCES = 4;
const KILLS = Number(process.env.FAILOVER_KILLS ?? 3);
/** Media that players get between two kills. */
const BETWEEN_BYTES = 90_000;
const AS_NOBODY =
  process.getuid?.() === 0 ? ["runuser", "-u", "nobody", "--", "env", "HOME=/nonexistent"] : [];

/** The commands of players without a screen, which play until they are stopped. */
const PLAYERS: Readonly<Record<string, (url: string) => string[]>> = {
  ffmpeg: (url) => ["ffmpeg", "-v", "error", "-i", url, "-f", "null", "-"],
  mpv: (url) => ["mpv", "--no-config", "--vo=null", "--ao=null", "--no-terminal", url],
  VLC: (url) => [
    ...AS_NOBODY,
    "cvlc",
    "--no-dbus",
    "--no-media-library",
    "--vout=vdummy",
    "--aout=adummy",
    url,
  ],
};

for (const [name, commandOf] of Object.entries(PLAYERS))
  test(
    `${name}: sources killed one after another are switches of one unbroken stream on one connection`,
    { timeout: 120_000 + 30_000 * KILLS },
    inRealTime(async (attempt) => {
      const channel = await startChannel(attempt);
      const player = startProcess("timeout", ["900", ...commandOf(channel.url)]);
      attempt.after(() => player.stop());
      for (let kills = 0; kills <= KILLS; kills++) {
        if (kills > 0) channel.kill();
        await until(
          async () => channel.switches().then((switches) => switches === kills),
          () => `switch ${kills}: ${channel.row()}`,
        );
        const before = channel.receivedBytes();
        await until(
          async () => channel.receivedBytes() > before + BETWEEN_BYTES,
          () => `media after ${kills} kills`,
        );
      }
      assert.equal(player.child.exitCode, null, player.output());
      assert.equal(await channel.switches(), KILLS);
      await player.stop();
      assert.equal(channel.connections(), 1);
      const received = channel.received();
      const { faults, units } = checkTs(received);
      // Players read the tables once.
      assert.equal(units.size, 2);
      // No clock for a while: what players notice as a gap, which the next check measures.
      assert.deepEqual(
        faults.filter((fault) => !/ticks without a clock/.test(fault)),
        [],
      );
      const file = channel.scratch.file("received.ts");
      await writeFile(file, received);
      const times = await pictureTimes(file);
      const steps = times.slice(1).map((time, i) => time - times[i]!);
      assert.ok(Math.max(...steps) <= 3, `a gap of ${Math.max(...steps)} s`);
      if (process.env.FAILOVER_KILLS)
        console.log(name, {
          kills: KILLS,
          longestWaitMs: channel.longestWaitMs(),
          largestStep: Math.max(...steps),
        });
    }),
  );

/** Starts sources, an engine with a channel of them, and a proxy that records what a player gets. */
async function startChannel(attempt: Attempt) {
  const scratch = await tempFolder("failover");
  attempt.after(() => scratch.remove());
  const sources: { process: RunningProcess; readonly port: number; readonly shift: number }[] = [];
  const start = (port: number, shift: number) => {
    const [command, ...args] = runtimeCommand();
    const started = startProcess(command, [...args, SERVER, String(port), String(shift)]);
    attempt.after(() => started.stop());
    return started;
  };
  for (let i = 0; i < SOURCES; i++) {
    // The sound of a source has the PID of the next one's picture.
    const source = start(0, i);
    const port = Number((await source.line((line) => line.startsWith("port "))).slice(5));
    sources.push({ process: source, port, shift: i });
  }
  const env = { SLUICE_DHT: "off", SLUICE_LSD: "off", SLUICE_PORT_MAPPING: "off", SLUICE_STORE: "memory" };
  const engine = await startEngine({ env });
  attempt.after(() => engine.stop());
  const { token } = await call<{ token: string }>(engine, "get_api_access_token");
  const ids: number[] = [];
  for (const { port } of sources) {
    const url = `http://127.0.0.1:${port}/live.ts`;
    ids.push(await call<number>(engine, "playlist_add_item", { url, title: "News", is_live: "1", token }));
  }
  const chunks: Uint8Array[] = [];
  const facts = { connections: 0, bytes: 0, longestWaitMs: 0, last: 0 };
  const proxy = createServer((incoming, response) => {
    facts.connections++;
    const headers = { ...incoming.headers, host: new URL(engine.url).host };
    const upstream = request(`${engine.url}${incoming.url}`, { headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.on("data", (chunk: Uint8Array) => {
        if (isStuffing(chunk)) return;
        const now = performance.now();
        if (facts.last > 0) facts.longestWaitMs = Math.max(facts.longestWaitMs, now - facts.last);
        facts.last = now;
        facts.bytes += chunk.length;
        chunks.push(chunk);
      });
      answer.pipe(response);
    });
    upstream.on("error", () => response.destroy());
    response.on("close", () => upstream.destroy());
    upstream.end();
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  attempt.after(() => proxy.closeAllConnections());
  attempt.after(() => proxy.close());
  const row = () => channelRow(engine);
  let playing = "";
  let killed: (typeof sources)[number] | undefined;
  return {
    scratch,
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/play/0/${ids[0]}`,
    /** Kills the source that plays, and starts the one that was killed before it. */
    kill() {
      const source = sources[ids.indexOf(Number(/plays item (\d+)/.exec(playing)![1]))]!;
      source.process.child.kill("SIGKILL");
      // Not restarted at once: the engine would connect to it again, without a switch.
      if (killed) killed.process = start(killed.port, killed.shift);
      killed = source;
    },
    /** The number of switches; -1 while no source plays. */
    async switches() {
      playing = await row();
      return /plays item/.test(playing) ? Number(/(\d+) switch/.exec(playing)?.[1] ?? 0) : -1;
    },
    row: () => playing,
    receivedBytes: () => facts.bytes,
    longestWaitMs: () => Math.round(facts.longestWaitMs),
    connections: () => facts.connections,
    received() {
      const all = Buffer.concat(chunks);
      return all.subarray(0, all.length - (all.length % 188));
    },
  };
}

/** Null packets keep a connection; they are no media. */
function isStuffing(chunk: Uint8Array): boolean {
  return chunk.length <= 188 && chunk[1] === 0x1f && chunk[2] === 0xff;
}

async function call<T>(
  { url }: EngineProcess,
  method: string,
  values: Readonly<Record<string, string>> = {},
): Promise<T> {
  const query = new URLSearchParams({ ...values, method });
  const { result, error } = await (await fetch(`${url}/server/api?${query}`)).json();
  assert.equal(error, null, method);
  return result;
}

/** What the engine says about its played channel. */
async function channelRow({ url }: EngineProcess): Promise<string> {
  const { result } = (await (await fetch(`${url}/api/diagnosis`)).json()) as {
    result: { rows: { name: string; text: string }[] };
  };
  return result.rows.find(({ name }) => name === "Channel")?.text ?? "";
}

async function pictureTimes(file: string): Promise<number[]> {
  const entries = ["-select_streams", "v", "-show_entries", "packet=pts_time", "-of", "csv=p=0"];
  const said = await run("ffprobe", ["-v", "error", ...entries, file]);
  return said
    .split("\n")
    .filter((line) => /^\d/.test(line))
    .map(Number.parseFloat);
}

/** Waits until `is` returns true; the test's timeout bounds it, and `what` names it. */
async function until(is: () => Promise<boolean>, what: () => string): Promise<void> {
  for (let left = 300; !(await is()); left--) {
    assert.ok(left > 0, `timed out waiting for ${what()}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
