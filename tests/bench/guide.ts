import { createReadStream, createWriteStream, existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { isStuffing } from "../../src/catch-up/stream-chunks.ts";
import { startEngine } from "../parts/engine.ts";
import { startProcess, usageOf } from "../parts/process.ts";

// `bun tests/bench/guide.ts [PROGRAMMES]`: an engine that plays a stream fetches a guide of 2 million programmes. Prints its anonymous
// memory, the CPU time, and how long the player waited for data, before the refresh and during it.

const PROGRAMMES = Number(process.argv[2] ?? 2_000_000);
const CHANNELS = Math.min(20_000, PROGRAMMES / 100);
const WORDS =
  "the of a news live from film with world our late show first day sport home night city music new".split(
    " ",
  );
const QUIET_MS = Number(process.env.QUIET_MS ?? 40_000);

const path = join(tmpdir(), `sluice-guide-${PROGRAMMES}-${new Date().toISOString().slice(0, 10)}.xml.gz`);
if (!existsSync(path)) await pipeline(guide(), createGzip({ level: 1 }), createWriteStream(path));

const server = createServer((request, response) => {
  if (request.url === "/guide.xml.gz") createReadStream(path).pipe(response);
  else response.writeHead(404).end();
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const source = startProcess(process.execPath, [
  new URL("../parts/pattern-server.ts", import.meta.url).pathname,
  "0",
]);
const port = Number((await source.line((line) => line.startsWith("port "))).slice(5));
const env = { SLUICE_DHT: "off", SLUICE_LSD: "off", SLUICE_PORT_MAPPING: "off" };
const engine = await startEngine({ env });
let isOver = false;
try {
  const { token } = await call<{ token: string }>("get_api_access_token");
  const url = `http://127.0.0.1:${port}/live.ts`;
  const id = await call<number>("playlist_add_item", {
    url,
    title: "News",
    is_live: "1",
    tvg_id: "c1",
    token,
  });
  let gaps: number[] = [];
  void play(`${engine.url}/play/0/${id}`, (ms) => gaps.push(ms));
  await pause(10_000);
  gaps = [];
  const memory = watchMemory(engine.pid);
  await pause(QUIET_MS);
  report("before", memory.take(), gaps, 0);
  gaps = [];
  const [cpu, startedAt] = [usageOf(engine.pid).cpuSeconds, performance.now()];
  await call("epg_source_add", { token, url: `${base}/guide.xml.gz` });
  for (;;) {
    const [guide] = await call<{ programmes: number; problem: string | null }[]>("epg_source_get_list", {
      token,
    });
    if (guide?.problem) throw new Error(guide.problem);
    if (guide?.programmes === PROGRAMMES) break;
    await pause(250);
  }
  console.log(
    `fetched in ${((performance.now() - startedAt) / 1000).toFixed(1)} s, ${(statSync(path).size / 1e6).toFixed(0)} MB`,
  );
  report("during", memory.take(), gaps, usageOf(engine.pid).cpuSeconds - cpu);
  gaps = [];
  await pause(QUIET_MS);
  report("after", memory.take(), gaps, 0);
  memory.stop();
} finally {
  isOver = true;
  await engine.stop();
  await source.stop();
  server.closeAllConnections();
  server.close();
}
process.exit();

function report(
  name: string,
  { leastBytes, mostBytes }: { leastBytes: number; mostBytes: number },
  gaps: number[],
  cpu: number,
) {
  const sorted = [...gaps].sort((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN);
  console.log(
    `${name}: anonymous memory ${mb(leastBytes)} to ${mb(mostBytes)} MB; ${cpu.toFixed(1)} s of CPU time; gaps between reads p50 ${at(0.5)}, p99 ${at(0.99)}, longest ${at(1)} ms (${gaps.length})`,
  );
}

function mb(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}

/** Reads a stream, and reports the time between two reads that bring media. */
async function play(url: string, gap: (ms: number) => void): Promise<void> {
  let last = 0;
  try {
    for await (const bytes of (await fetch(url)).body!) {
      if (isStuffing(bytes)) continue;
      const now = performance.now();
      if (last > 0) gap(now - last);
      last = now;
    }
  } catch (thrown) {
    if (!isOver) throw thrown;
  }
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
