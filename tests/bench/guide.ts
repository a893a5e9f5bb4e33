import { createReadStream, createWriteStream, existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { startEngine } from "../parts/engine.ts";
import { startBroadcast, watchUrl } from "../parts/live-broadcast.ts";
import { usageOf } from "../parts/process.ts";
import { GapPlayer, gapsText } from "./gap-player.ts";

// `bun tests/bench/guide.ts [PROGRAMMES [ROUNDS]]`: an engine that plays a live stream of 4 Mbit/s in pieces of 125 ms fetches a guide of
// 2 million programmes. Prints its anonymous memory, the CPU time, and how long the player waited for data, without and during a refresh.

const PROGRAMMES = Number(process.argv[2] ?? 2_000_000);
const ROUNDS = Number(process.argv[3] ?? 2);
const CHANNELS = Math.min(20_000, PROGRAMMES / 100);
const WORDS =
  "the of a news live from film with world our late show first day sport home night city music new".split(
    " ",
  );
const QUIET_MS = Number(process.env.QUIET_MS ?? 30_000);

const path = join(tmpdir(), `sluice-guide-${PROGRAMMES}-${new Date().toISOString().slice(0, 10)}.xml.gz`);
if (!existsSync(path)) await pipeline(guide(), createGzip({ level: 1 }), createWriteStream(path));

const server = createServer((request, response) => {
  if (request.url === "/guide.xml.gz") createReadStream(path).pipe(response);
  else response.writeHead(404).end();
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const source = await startBroadcast({ timedBytesPerSecond: 500_000 });
const env = { SLUICE_DHT: "off", SLUICE_LSD: "off", SLUICE_PORT_MAPPING: "off" };
const engine = await startEngine({ env });
try {
  const { token } = await call<{ token: string }>("get_api_access_token");
  const player = new GapPlayer(watchUrl(engine, source.magnet));
  await pause(10_000);
  const memory = watchMemory(engine.pid);
  const without: number[] = [];
  const during: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    player.takeGapsMs();
    memory.take();
    await pause(QUIET_MS);
    report("without", memory.take(), player.takeGapsMs(), without);
    const [cpu, startedAt] = [usageOf(engine.pid).cpuSeconds, performance.now()];
    const { id } = await call<{ id: number }>("epg_source_add", { token, url: `${base}/guide.xml.gz` });
    await untilRead(token);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    report("during ", memory.take(), player.takeGapsMs(), during);
    const cpuSeconds = (usageOf(engine.pid).cpuSeconds - cpu).toFixed(1);
    console.log(
      `fetched ${(statSync(path).size / 1e6).toFixed(0)} MB in ${seconds} s, ${cpuSeconds} s of CPU time`,
    );
    await call("epg_source_delete", { token, id: String(id) });
  }
  memory.stop();
  console.log(`all without: ${gapsText(without)}\nall during:  ${gapsText(during)}\nended ${player.ends}`);
} finally {
  await engine.stop();
  await source.stop();
  server.closeAllConnections();
  server.close();
}
process.exit();

async function untilRead(token: string): Promise<void> {
  for (;;) {
    const [guide] = await call<{ programmes: number; problem: string | null }[]>("epg_source_get_list", {
      token,
    });
    if (guide?.problem) throw new Error(guide.problem);
    if (guide?.programmes === PROGRAMMES) return;
    await pause(250);
  }
}

function report(
  name: string,
  { leastBytes, mostBytes }: { leastBytes: number; mostBytes: number },
  gapsMs: number[],
  all: number[],
) {
  all.push(...gapsMs);
  console.log(`${name}: anonymous memory ${mb(leastBytes)} to ${mb(mostBytes)} MB; ${gapsText(gapsMs)}`);
}

function mb(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}

/** Samples the anonymous memory of a process. */
function watchMemory(pid: number) {
  let [leastBytes, mostBytes] = [Number.POSITIVE_INFINITY, 0];
  const timer = setInterval(() => {
    const text = readFileSync(`/proc/${pid}/status`, "utf8");
    const bytes = 1024 * Number(/RssAnon:\s+(\d+)/.exec(text)?.[1] ?? 0);
    leastBytes = Math.min(leastBytes, bytes);
    mostBytes = Math.max(mostBytes, bytes);
  }, 100);
  return {
    stop: () => clearInterval(timer),
    take() {
      const taken = { leastBytes, mostBytes };
      [leastBytes, mostBytes] = [Number.POSITIVE_INFINITY, 0];
      return taken;
    },
  };
}

/** A guide of ten days. Its texts are as long as those of public guides, and compress as they do, by about 5. */
async function* guide(): AsyncGenerator<string> {
  let seed = 1;
  const random = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  const text = (words: number) =>
    Array.from({ length: words }, () => WORDS[random(WORDS.length)]! + random(7)).join(" ");
  yield '<?xml version="1.0" encoding="UTF-8"?>\n<tv>\n';
  for (let c = 0; c < CHANNELS; c++)
    yield `<channel id="c${c}"><display-name>Channel ${c}</display-name></channel>\n`;
  const from = Date.now() - 2 * 86_400_000;
  const each = 100;
  const time = (ms: number) => `${new Date(ms).toISOString().replace(/\D/g, "").slice(0, 14)} +0000`;
  const times = Array.from({ length: each + 1 }, (_, i) => time(from + i * 8_640_000));
  for (let c = 0; c < CHANNELS; c++) {
    let lines = "";
    for (let i = 0; i < each; i++)
      lines += `<programme channel="c${c}" start="${times[i]}" stop="${times[i + 1]}"><title lang="en">${text(4)}</title><desc lang="en">${text(28)}</desc><category lang="en">${WORDS[random(20)]}</category></programme>\n`;
    yield lines;
  }
  yield "</tv>\n";
}

async function call<T>(method: string, values: Readonly<Record<string, string>> = {}): Promise<T> {
  const query = new URLSearchParams({ ...values, method });
  const { result, error } = (await (await fetch(`${engine.url}/server/api?${query}`)).json()) as {
    result: T;
    error: unknown;
  };
  if (error !== null && error !== undefined) throw new Error(`${method}: ${error}`);
  return result;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
