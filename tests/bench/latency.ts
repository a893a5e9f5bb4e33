import { nameContent, startEngine } from "../parts/engine.ts";
import { type Job, rawUrl } from "./downloaders.ts";
import { markdownTable, median } from "./table.ts";

/** Times first bytes and far seeks, each in a new engine without cached data. Milliseconds. */
export async function benchLatency(job: Job, rounds: number): Promise<string> {
  const cases: [name: string, aim: string, run: () => Promise<number>][] = [
    ["request → first byte, transport file", "≤ 40", () => firstByte(job, "transport file", 0)],
    ["request → first byte, magnet", "≤ 40", () => firstByte(job, "magnet", 0)],
    ["Range three quarters in", "≤ 40", () => farSeek(job, Math.floor(job.size * 0.75))],
    ["Range at the end", "≤ 40", () => farSeek(job, job.size - 65_536)],
  ];
  const rows: string[][] = [];
  for (const [name, aim, run] of cases) {
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) times.push(await run());
    rows.push([
      name,
      median(times).toFixed(0),
      Math.min(...times).toFixed(0),
      Math.max(...times).toFixed(0),
      aim,
    ]);
  }
  return markdownTable(["on Bun", "median ms", "min", "max", "aim"], rows);
}

async function firstByte(job: Job, by: "transport file" | "magnet", at: number): Promise<number> {
  const engine = await startEngine({ env: { SLUICE_CACHE_LIMIT: "0", SLUICE_LOG: "error" } });
  try {
    const began = performance.now();
    if (by === "magnet") await nameContent(engine, { magnet: job.magnet });
    else await nameContent(engine, {}, job.announced.bytes);
    await firstChunk(rawUrl(engine.url, job), at);
    return performance.now() - began;
  } finally {
    await engine.stop();
  }
}

/** The stream plays from its start; then a second reader asks for bytes far away. */
async function farSeek(job: Job, at: number): Promise<number> {
  const engine = await startEngine({ env: { SLUICE_CACHE_LIMIT: "0", SLUICE_LOG: "error" } });
  try {
    await nameContent(engine, { magnet: job.magnet });
    await firstChunk(rawUrl(engine.url, job), 0);
    const began = performance.now();
    await firstChunk(rawUrl(engine.url, job), at);
    return performance.now() - began;
  } finally {
    await engine.stop();
  }
}

async function firstChunk(url: string, at: number): Promise<void> {
  const abort = new AbortController();
  const response = await fetch(url, { headers: { range: `bytes=${at}-` }, signal: abort.signal });
  if (response.status !== 206)
    throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  const reader = response.body!.getReader();
  const { done } = await reader.read();
  if (done) throw new Error("an empty body");
  await reader.cancel().catch(() => undefined);
  abort.abort();
}
