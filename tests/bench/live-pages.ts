import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { type Browser, chromium, type Page } from "playwright-core";
import type { ViewerFigures } from "../../src/web/page/viewer/messages.ts";
import { startBroadcast } from "../parts/live-broadcast.ts";
import { LAUNCH } from "../web/chromium-launch.ts";

/**
 * `bun tests/bench/live-pages.ts [--pages 8] [--seconds 60] [--flag --upload-limit=69000 …]`: viewers in Chromium of the test pattern
 * (about 240 kbit/s). Prints where their data came from, the upload of the engine in multiples of the stream, stalls, delay, and CPU time
 * and memory of a page.
 */
const { values } = parseArgs({
  options: {
    pages: { type: "string", default: "8" },
    seconds: { type: "string", default: "60" },
    flag: { type: "string", multiple: true, default: [] },
  },
});
const pageCount = Number(values.pages);
const seconds = Number(values.seconds);
/** Between two pages, and until the measurement begins. */
const JOIN_MS = 2_000;
const SETTLE_MS = 20_000;

interface Facts {
  readonly figures: ViewerFigures;
  readonly stalls: number;
  readonly isFallback: boolean;
}

interface Sample {
  readonly facts: readonly Facts[];
  readonly cpuSeconds: number;
  readonly residentBytes: number;
  readonly atMs: number;
}

const source = await startBroadcast("test-pattern", { flags: ["--viewer-sharing", "on", ...values.flag] });
const browser = await chromium.launch(LAUNCH);
try {
  const pages: Page[] = [];
  for (let i = 0; i < pageCount; i++) {
    const context = await browser.newContext({ viewport: { width: 320, height: 240 } });
    const page = await context.newPage();
    page.setDefaultTimeout(120_000);
    await page.goto(`${source.url}/watch/${source.infohash}`);
    pages.push(page);
    await page.waitForTimeout(JOIN_MS);
  }
  for (const page of pages)
    await page.waitForFunction(() => (document.querySelector("video")?.currentTime ?? 0) > 1);
  await pages[0]!.waitForTimeout(SETTLE_MS);
  const before = await sample(browser, pages);
  await pages[0]!.waitForTimeout(1_000 * seconds);
  console.table(report(before, await sample(browser, pages)));
} finally {
  await browser.close();
  await source.stop();
}

async function sample(from: Browser, pages: readonly Page[]): Promise<Sample> {
  const facts = await Promise.all(
    pages.map((page) => page.evaluate(() => (globalThis as unknown as { sluiceViewer: Facts }).sluiceViewer)),
  );
  const session = await from.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  const renderers = processInfo.filter(({ type }) => type === "renderer");
  let residentBytes = 0;
  for (const { id } of renderers) {
    const status = await readFile(`/proc/${id}/status`, "utf8").catch(() => "");
    residentBytes += 1_024 * Number(/^RssAnon:\s+(\d+)/m.exec(status)?.[1] ?? 0);
  }
  const cpuSeconds = renderers.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
  return { facts, cpuSeconds, residentBytes, atMs: performance.now() };
}

function report(before: Sample, now: Sample): Record<string, string | number> {
  const delta = (name: "fromEngine" | "fromPages" | "toPages") =>
    now.facts.reduce((sum, { figures }, i) => sum + figures[name] - before.facts[i]!.figures[name], 0);
  const [fromEngine, fromPages] = [delta("fromEngine"), delta("fromPages")];
  const elapsed = (now.atMs - before.atMs) / 1_000;
  const each = (fromEngine + fromPages) / pageCount;
  const stalls = now.facts.map((facts, i) => facts.stalls - before.facts[i]!.stalls);
  const delays = now.facts.map(({ figures }) => figures.delayMs ?? 0).sort((a, b) => a - b);
  const mebibytes = (bytes: number) => (bytes / pageCount / 2 ** 20).toFixed(0);
  return {
    "received by a page, kbit/s": ((8 * each) / elapsed / 1_000).toFixed(0),
    "from pages %": ((100 * fromPages) / (fromEngine + fromPages)).toFixed(1),
    // All that pages receive is one stream with its messages.
    "engine upload x": (fromEngine / each).toFixed(2),
    "connected pages": now.facts.map(({ figures }) => figures.pages).join(" "),
    "stalls of each page": stalls.join(" "),
    "skipped pieces": now.facts
      .map(({ figures }, i) => figures.skippedPieces - before.facts[i]!.figures.skippedPieces)
      .join(" "),
    fallbacks: now.facts.filter(({ isFallback }) => isFallback).length,
    "delay ms median / most": `${delays[delays.length >> 1]} / ${delays.at(-1)}`,
    "CPU of a page, % of a core": (
      (100 * (now.cpuSeconds - before.cpuSeconds)) /
      elapsed /
      pageCount
    ).toFixed(1),
    "private memory of a page, MiB, before and after": `${mebibytes(before.residentBytes)} ${mebibytes(now.residentBytes)}`,
  };
}
