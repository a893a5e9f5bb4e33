// `bun tests/bench/tcp-model.ts [--runs 4]`, as root on Linux with python3: compares the TCP of the live simulation with the
// kernel's, over a line that a program shapes.

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { quantile } from "../parts/live-watch.ts";
import { run } from "../parts/process.ts";
import { seededRandom } from "../seeded-random.ts";
import { EventHeap } from "../simulation/live/event-heap.ts";
import { Line, TcpPipe } from "../simulation/live/tcp.ts";
import { markdownTable } from "./table.ts";

const { values } = parseArgs({ options: { runs: { type: "string", default: "4" } } });
const DELAY_MS = 25;
const CHUNK_BYTES = 7_816;
const SECONDS = 20;
const FAST = 1e9;

/** `perSecond`: 0 to send all at once. */
interface Transfer {
  readonly name: string;
  readonly bytesPerSecond: number;
  readonly lossPercent: number;
  readonly count: number;
  readonly perSecond: number;
}

const stripes = (count: number, lossPercent: number): Transfer => ({
  name: `${count} stripes of 8 Mbit/s, line of 10 Mbit/s, ${lossPercent} % loss`,
  ...{ bytesPerSecond: 1_250_000, lossPercent, count: 8 * count * SECONDS, perSecond: 8 * count },
});
const bulk = (mbit: number, lossPercent: number): Transfer => ({
  name: `2 MB at once, line of ${mbit} Mbit/s, ${lossPercent} % loss`,
  ...{ bytesPerSecond: mbit * 125_000, lossPercent, count: 256, perSecond: 0 },
});
const TRANSFERS = [
  ...[stripes(16, 0), stripes(1, 1), stripes(1, 3), stripes(2, 1), stripes(4, 0.2)],
  ...[bulk(10, 0), bulk(10, 1), bulk(50, 0), bulk(50, 0.2)],
];

/** With a real-time priority: a line does not wait for a processor. */
async function real(
  { bytesPerSecond, lossPercent, count, perSecond }: Transfer,
  seed: number,
): Promise<number[]> {
  const path = fileURLToPath(new URL("tcp_path.py", import.meta.url));
  const words = [path, bytesPerSecond, DELAY_MS, lossPercent, seed, CHUNK_BYTES, count, perSecond];
  return JSON.parse(await run("chrt", ["-f", "1", "python3", ...words.map(String)])) as number[];
}

function model({ bytesPerSecond, lossPercent, count, perSecond }: Transfer, seed: number): number[] {
  const events = new EventHeap();
  const random = seededRandom(seed);
  const pipe = new TcpPipe({
    ...{ events, delayUs: 1_000 * DELAY_MS },
    ...{ up: new Line(events, bytesPerSecond), down: new Line(events, FAST), back: new Line(events, FAST) },
    isLost: () => random() * 100 < lossPercent,
    ...{ isSending: () => true, isReceiving: () => true, drained: () => {} },
  });
  const delays: number[] = [];
  for (let i = 0; i < count; i++) {
    const dueUs = perSecond > 0 ? (i * 1e6) / perSecond : 0;
    events.at(dueUs, () => pipe.write(CHUNK_BYTES, () => delays.push((events.nowUs - dueUs) / 1_000)));
  }
  events.runTo(600e6);
  if (delays.length < count) throw new Error(`${delays.length} of ${count} messages arrived`);
  return delays;
}

/** Of the delays of all runs: for messages that follow each other, quantiles; for one transfer, the mean of its duration. */
function figures({ perSecond }: Transfer, runs: readonly number[][]): string {
  if (perSecond === 0)
    return `${Math.round(runs.reduce((sum, delays) => sum + delays.at(-1)!, 0) / runs.length)}`;
  const all = runs.flat().sort((a, b) => a - b);
  return [0.5, 0.95, 0.99].map((q) => Math.round(quantile(all, q))).join(" / ");
}

const seeds = Array.from({ length: Number(values.runs) }, (_, i) => i + 1);
const rows: string[][] = [];
for (const transfer of TRANSFERS) {
  const kernel = await Promise.all(seeds.map((seed) => real(transfer, seed)));
  const models = Array.from({ length: 20 }, (_, i) => model(transfer, i + 1));
  rows.push([transfer.name, figures(transfer, kernel), figures(transfer, models)]);
  console.error(rows.at(-1)!.join(" | "));
}
console.log(markdownTable(["p50 / p95 / p99 of the delay, or duration, ms", "kernel", "model"], rows));
