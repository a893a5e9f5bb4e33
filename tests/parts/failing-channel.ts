import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { MAX_SOURCES } from "../../routes/play-links.ts";
import { isStuffing } from "../../src/catch-up/stream-chunks.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../../src/media/timestamps.ts";
import { clockReferenceAt } from "../../src/media/ts-clock.ts";
import { TS_PACKET_BYTES } from "../../src/media/ts-packet.ts";
import { checkTs } from "../remux/ts-checker.ts";
import { type EngineProcess, runtimeCommand, startEngine } from "./engine.ts";
import { type RunningProcess, run, startProcess } from "./process.ts";
import type { Attempt } from "./real-time.ts";
import { tempFolder } from "./torrent-files.ts";

const SERVER = fileURLToPath(new URL("pattern-server.ts", import.meta.url));
const SYNC_BYTE = 0x47;
/** Media that players get between two kills. */
const BETWEEN_BYTES = 90_000;
/** The same if sources are killed again: 10 s, so that a killed one is not needed within the minute in which the engine avoids it. */
const LONG_BETWEEN_BYTES = 270_000;

interface Source {
  process: RunningProcess;
  readonly port: number;
  readonly shift: number;
}

/**
 * Starts enough sources for `kills`, an engine with a channel of them, and a proxy that records what a player gets.
 */
export async function startChannel(attempt: Attempt, kills: number) {
  const scratch = await tempFolder("failover");
  attempt.after(() => scratch.remove());
  const start = (port: number, shift: number) => {
    const [command, ...args] = runtimeCommand();
    const started = startProcess(command, [...args, SERVER, String(port), String(shift)]);
    attempt.after(() => started.stop());
    return started;
  };
  const sources: Source[] = await Promise.all(
    Array.from({ length: Math.min(kills + 1, MAX_SOURCES) }, async (_, i) => {
      // The sound of a source has the PID of the next one's picture.
      const shift = i % 4;
      const process = start(0, shift);
      const line = await process.line((text) => text.startsWith("port "));
      return { process, port: Number(line.slice(5)), shift };
    }),
  );
  const env = { SLUICE_DHT: "off", SLUICE_LSD: "off", SLUICE_PORT_MAPPING: "off", SLUICE_STORE: "memory" };
  const engine = await startEngine({ env });
  attempt.after(() => engine.stop());
  const { token } = await call<{ token: string }>(engine, "get_api_access_token");
  const ids: number[] = [];
  for (const { port } of sources) {
    const url = `http://127.0.0.1:${port}/live.ts`;
    ids.push(await call<number>(engine, "playlist_add_item", { url, title: "News", is_live: "1", token }));
  }
  /** What the last request received; some players open a stream twice. */
  let chunks: Uint8Array[] = [];
  const requests: string[] = [];
  let bytes = 0;
  const playback = new Playback();
  const proxy = createServer((incoming, response) => {
    requests.push(`${incoming.method} ${incoming.headers.range ?? ""}`.trim());
    const headers = { ...incoming.headers, host: new URL(engine.url).host };
    chunks = [];
    const { method } = incoming;
    const upstream = request(`${engine.url}${incoming.url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.on("data", (chunk: Uint8Array) => {
        if (isStuffing(chunk)) return;
        playback.received(chunk, performance.now());
        bytes += chunk.length;
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
  let playing = "";
  let killed: Source | undefined;
  /** For failures. */
  const state = () => `${playing}\n${engine.output().split("\n").slice(-12).join("\n")}`;
  const channel = {
    engine,
    /** The method and the range of each request of the player. */
    requests,
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
      playing = await channelRow(engine);
      return /plays item/.test(playing) ? Number(/(\d+) switch/.exec(playing)?.[1] ?? 0) : -1;
    },
    /** Kills the source that plays as often as planned: waits for the switch and for media after each, and returns how long the picture of a player stood, in ms. */
    async killSources() {
      const betweenBytes = kills < MAX_SOURCES ? BETWEEN_BYTES : LONG_BETWEEN_BYTES;
      const stallsMs: number[] = [];
      for (let done = 0; done <= kills; done++) {
        playback.stallMs = 0;
        if (done > 0) channel.kill();
        await until(
          async () => channel.switches().then((switches) => switches === done),
          () => `switch ${done}: ${state()}`,
        );
        const before = bytes;
        await until(
          async () => bytes > before + betweenBytes,
          () => `media after ${done} kills`,
        );
        if (done > 0) stallsMs.push(Math.round(playback.stallMs));
      }
      assert.equal(await channel.switches(), kills, state());
      return stallsMs;
    },
    /** Checks that what the player received is one continuous stream. */
    async check() {
      const all = Buffer.concat(chunks);
      const received = all.subarray(0, all.length - (all.length % TS_PACKET_BYTES));
      const { faults, units } = checkTs(received);
      // Players read the tables once.
      assert.equal(units.size, 2);
      // No clock for a while: what players notice as a gap, which the next check measures.
      assert.deepEqual(
        faults.filter((fault) => !/ticks without a clock/.test(fault)),
        [],
      );
      const file = scratch.file("received.ts");
      await writeFile(file, received);
      const times = await pictureTimes(file);
      const steps = times.slice(1).map((time, i) => time - times[i]!);
      assert.ok(Math.max(...steps) <= 3, `a gap of ${Math.max(...steps)} s`);
    },
  };
  return channel;
}

/** A player that begins with the first media, and plays it as fast as its clock says. */
class Playback {
  /** For how long it had nothing to play. */
  stallMs = 0;
  #at = 0;
  #bufferMs = 0;
  #clock: number | undefined;

  /** Takes packets that arrive at `now`. */
  received(packets: Uint8Array, now: number): void {
    if (this.#clock !== undefined) {
      const restMs = this.#bufferMs - (now - this.#at);
      this.#bufferMs = Math.max(0, restMs);
      this.stallMs += Math.max(0, -restMs);
    }
    this.#at = now;
    for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES) {
      const reference = packets[at] === SYNC_BYTE ? clockReferenceAt(packets, at) : undefined;
      if (reference === undefined) continue;
      const ticks = Math.floor(reference / 300);
      if (this.#clock !== undefined)
        this.#bufferMs += Math.max(0, deltaTicks(ticks, this.#clock)) / (TICKS_PER_SECOND / 1_000);
      this.#clock = ticks;
    }
  }
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

/** The times of the pictures of a file, in its order. */
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
