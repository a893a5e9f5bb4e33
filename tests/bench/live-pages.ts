import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { chromium, type Page } from "playwright-core";
import type { ViewerFigures } from "../../src/web/page/viewer/messages.ts";
import { startBroadcast } from "../parts/live-broadcast.ts";
import { usageOf } from "../parts/process.ts";
import { LAUNCH } from "../web/chromium-launch.ts";
import { type PageAttack, sendHostileChunks } from "./hostile-page.ts";

/**
 * `bun tests/bench/live-pages.ts [--pages 8] [--seconds 60] [--source film.ts] [--replaced 6] [--hostile 5 --attack replay]
 * [--flag --upload-limit=69000 …]`: viewers in Chromium of the test pattern (about 240 kbit/s) or of an MPEG-TS file. `--replaced`: that
 * many pages are closed each minute, and new ones opened. Prints where the data came from, the upload of the engine in multiples of the
 * stream, start, stalls, delay, bans, and CPU time and memory of a page.
 *
 * A small picture of 2 Mbit/s: `ffmpeg -f lavfi -i testsrc2=size=160x120:rate=25 -f lavfi -i sine -t 660 -c:v libx264 -preset ultrafast
 * -pix_fmt yuv420p -g 25 -x264-params nal-hrd=cbr:force-cfr=1 -b:v 1750k -minrate 1750k -maxrate 1750k -bufsize 875k -c:a aac -f mpegts film.ts`
 */
const { values } = parseArgs({
  options: {
    pages: { type: "string", default: "8" },
    seconds: { type: "string", default: "60" },
    source: { type: "string" },
    replaced: { type: "string", default: "0" },
    hostile: { type: "string", default: "0" },
    attack: { type: "string", default: "corrupt" },
    flag: { type: "string", multiple: true, default: [] },
  },
});
const pageCount = Number(values.pages);
const hostileCount = Number(values.hostile);
const seconds = Number(values.seconds);
const replacedPerMinute = Number(values.replaced);
/** Between two pages, and until the measurement begins. */
const JOIN_MS = 2_000;
const SETTLE_MS = 20_000;
const SAMPLE_MS = 5_000;
/** Pages of a test are all visible, whatever the window manager says. */
const NOT_THROTTLED = [
  "--disable-background-timer-throttling",
  "--disable-renderer-backgrounding",
  "--disable-backgrounding-occluded-windows",
];

interface Facts {
  readonly figures: ViewerFigures;
  readonly startMs: number;
  readonly stalls: number;
  readonly behindMs: number | undefined;
  readonly isFallback: boolean;
}

interface Sample {
  /** Undefined for pages that were closed. */
  readonly facts: readonly (Facts | undefined)[];
  /** By kind of process; that of the engine is `engine`. */
  readonly cpuSeconds: Readonly<Record<string, number>>;
  readonly residentBytes: number;
  readonly atMs: number;
}

const place = values.source === undefined ? "test-pattern" : { place: values.source };
const source = await startBroadcast(place, {
  flags: ["--viewer-sharing", "on", ...(values.source === undefined ? [] : ["--loop"]), ...values.flag],
});
const browser = await chromium.launch({ ...LAUNCH, args: [...LAUNCH.args, ...NOT_THROTTLED] });
try {
  const hostile: Page[] = [];
  const pages: Page[] = [];
  for (let i = 0; i < pageCount; i++) pages.push(await open());
  for (const page of pages)
    await page.waitForFunction(() => (document.querySelector("video")?.currentTime ?? 0) > 1);
  await pages[0]!.waitForTimeout(SETTLE_MS);
  const starts = (await sample(pages)).facts.map((facts) => Math.round(facts?.startMs ?? 0));
  const before = await sample(pages);
  const samples = [before];
  const isClosed = pages.map(() => false);
  const replacements: Page[] = [];
  let replaced = 0;
  for (let i = 0; i < hostileCount; i++) hostile.push(await open(values.attack as PageAttack));
  while (performance.now() - before.atMs < 1_000 * seconds) {
    await pages.at(-1)!.waitForTimeout(SAMPLE_MS);
    while (replaced < ((performance.now() - before.atMs) * replacedPerMinute) / 60_000) {
      // Half of the pages stay, so that their stalls are those of pages that never leave.
      const at = replaced++ % (pageCount >> 1);
      const leaver = isClosed[at] ? replacements.shift()! : pages[at]!;
      isClosed[at] = true;
      await leaver.context().close();
      replacements.push(await open());
    }
    samples.push(await sample(pages.map((page, i) => (isClosed[i] ? undefined : page))));
    const { facts } = samples.at(-1)!;
    const bans = facts.map((each) => each?.figures.banned ?? "-").join(" ");
    console.log(Math.round((performance.now() - before.atMs) / 1_000), "s, banned:", bans);
  }
  for (const page of replacements) {
    const facts = await factsOf(page).catch(() => undefined);
    if (facts) starts.push(Math.round(facts.startMs));
  }
  console.table(report(samples, starts));
} finally {
  await browser.close();
  await source.stop();
}

async function open(attack?: PageAttack): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 320, height: 240 } });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  if (attack !== undefined) await page.addInitScript(sendHostileChunks, attack);
  await page.goto(`${source.url}/watch/${source.infohash}`);
  await page.waitForTimeout(JOIN_MS);
  return page;
}

function factsOf(page: Page): Promise<Facts> {
  // Getters do not pass to this process.
  return page.evaluate(() => ({ ...(globalThis as unknown as { sluiceViewer: Facts }).sluiceViewer }));
}

async function sample(pages: readonly (Page | undefined)[]): Promise<Sample> {
  const facts = await Promise.all(pages.map((page) => page && factsOf(page)));
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  let residentBytes = 0;
  const cpuSeconds: Record<string, number> = { engine: usageOf(source.pid).cpuSeconds };
  for (const { id, type, cpuTime } of processInfo) {
    cpuSeconds[type] = (cpuSeconds[type] ?? 0) + cpuTime;
    if (type !== "renderer") continue;
    const status = await readFile(`/proc/${id}/status`, "utf8").catch(() => "");
    residentBytes += 1_024 * Number(/^RssAnon:\s+(\d+)/m.exec(status)?.[1] ?? 0);
  }
  return { facts, cpuSeconds, residentBytes, atMs: performance.now() };
}

function report(samples: readonly Sample[], starts: readonly number[]): Record<string, string | number> {
  const [before, now] = [samples[0]!, samples.at(-1)!];
  // Pages that were there the whole time.
  const pairs = now.facts.flatMap((facts, i) => (facts ? [[before.facts[i]!, facts] as const] : []));
  const delta = (name: "fromEngine" | "fromPages" | "toPages") =>
    pairs.reduce((sum, [old, facts]) => sum + facts.figures[name] - old.figures[name], 0) / pairs.length;
  const [fromEngine, fromPages, toPages] = [delta("fromEngine"), delta("fromPages"), delta("toPages")];
  const elapsed = (now.atMs - before.atMs) / 1_000;
  const each = fromEngine + fromPages;
  const kbit = (bytes: number) => ((8 * bytes) / elapsed / 1_000).toFixed(0);
  const spread = (numbers: readonly number[]) => {
    const sorted = [...numbers].sort((a, b) => a - b);
    return `${sorted[sorted.length >> 1]} / ${sorted.at(-1)}`;
  };
  const all = samples.flatMap(({ facts }) => facts.flatMap((one) => one ?? []));
  const mebibytes = samples
    .filter((_, i) => i % Math.ceil(samples.length / 12) === 0)
    .map(({ residentBytes }) => Math.round(residentBytes / pageCount / 2 ** 20));
  const cpu = (type: string) =>
    (100 * ((now.cpuSeconds[type] ?? 0) - (before.cpuSeconds[type] ?? 0))) / elapsed;
  return {
    "received / sent to pages by a page, kbit/s": `${kbit(each)} / ${kbit(toPages)}`,
    "from pages %": ((100 * fromPages) / each).toFixed(1),
    // All that pages receive is one stream with its messages.
    "engine upload x": ((fromEngine * pageCount) / each).toFixed(2),
    "start ms median / most": spread(starts),
    "connected pages": now.facts.map((facts) => facts?.figures.pages ?? "-").join(" "),
    "stalls of each page": pairs.map(([old, facts]) => facts.stalls - old.stalls).join(" "),
    "skipped pieces": pairs
      .map(([old, { figures }]) => figures.skippedPieces - old.figures.skippedPieces)
      .join(" "),
    "banned by each page": pairs.map(([, { figures }]) => figures.banned).join(" "),
    fallbacks: now.facts.filter((facts) => facts?.isFallback).length,
    "newest piece ms median / most": spread(all.map(({ figures }) => figures.delayMs ?? 0)),
    "picture behind the source ms median / most": spread(all.map(({ behindMs }) => behindMs ?? 0)),
    "CPU of a page, % of a core": (cpu("renderer") / pageCount).toFixed(1),
    "CPU of engine, browser, network, GPU": ["engine", "browser", "utility", "GPU"]
      .map((type) => cpu(type).toFixed(0))
      .join(" "),
    "private memory of a page, MiB, over time": mebibytes.join(" "),
  };
}
