/**
 * Scrolls a list of 20,000 channels and a guide of 1,000 channels and 24 hours in Chromium, and prints the frames a second.
 * Usage: bun tests/bench/page-scroll.ts. Needs Chromium.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { chromium, type Page } from "playwright-core";
import { startEngine } from "../parts/engine.ts";
import { LAUNCH, openPage } from "../web/chromium-launch.ts";

const CHANNELS = 20_000;
const WITH_GUIDE = 1_000;
const SECONDS = 6;

const numbers = Array.from({ length: CHANNELS }, (_, i) => i + 1);
const hour = 3_600_000 * Math.floor(Date.now() / 3_600_000);
const time = (halfHours: number) =>
  `${new Date(hour + 1_800_000 * halfHours).toISOString().replace(/\D/g, "").slice(0, 14)} +0000`;
const guide = `<tv>${numbers
  .slice(0, WITH_GUIDE)
  .map(
    (n) =>
      `<channel id="c${n}"><display-name>Channel ${n}</display-name></channel>${Array.from({ length: 48 }, (_, i) => `<programme channel="c${n}" start="${time(i)}" stop="${time(i + 1)}"><title>Show ${n} ${i}</title></programme>`).join("")}`,
  )
  .join("")}</tv>`;
const list = `#EXTM3U\n${numbers.map((n) => `#EXTINF:-1 tvg-id="c${n}" group-title="Group ${n % 20}",Channel ${n}\nacestream://${n.toString(16).padStart(40, "0")}\n`).join("")}`;
const server = createServer((_, response) => response.end(guide));
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const engine = await startEngine();
const browser = await chromium.launch(LAUNCH);
try {
  const call = async (method: string, values: Record<string, string> = {}, body?: FormData) => {
    const url = `${engine.url}/server/api?${new URLSearchParams({ api_version: "3", method, ...values })}`;
    const answer = await fetch(url, body ? { method: "POST", body } : {});
    return ((await answer.json()) as { result: { token: string } }).result;
  };
  const { token } = await call("get_api_access_token");
  const form = new FormData();
  form.set("file", new File([list], "list.m3u"));
  await call("playlist_import", { token }, form);
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/guide.xml`;
  await call("epg_source_add", { token, url });
  const page = await openPage(browser, { viewport: { width: 1280, height: 800 } });
  await page.goto(engine.url);
  await page.locator("#playlist-count", { hasText: "20,000" }).waitFor();
  await page.locator(".home .item-programme").first().waitFor();
  console.log("list:", await scrolled(page, undefined));
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.click("#guide-grid");
  await page.locator(".grid-cell").first().waitFor();
  console.log("guide:", await scrolled(page, ".grid-view"));
} finally {
  await browser.close();
  await engine.stop();
  server.close();
  server.closeAllConnections();
}

/** Scrolls 40 pixels a frame, down and to the right, and back; resolves to the frames a second and the longest of 95 % of the frames. */
function scrolled(page: Page, selector: string | undefined): Promise<string> {
  return page.evaluate(
    async ([chosen, seconds]) => {
      const found = chosen === undefined ? document.scrollingElement : document.querySelector(chosen);
      const box = found!;
      const times: number[] = [];
      await new Promise<void>((resolve) => {
        const start = performance.now();
        const step = (now: number) => {
          times.push(now);
          const isBack = now - start > (seconds * 1000) / 2;
          box.scrollBy({ top: isBack ? -40 : 40, left: isBack ? -8 : 8, behavior: "instant" });
          if (now - start < seconds * 1000) requestAnimationFrame(step);
          else resolve();
        };
        requestAnimationFrame(step);
      });
      const frames = times.slice(1).map((at, i) => at - times[i]!);
      frames.sort((a, b) => a - b);
      const fps = (1000 * frames.length) / (times.at(-1)! - times[0]!);
      return `${fps.toFixed(1)} frames a second, 95 % within ${frames[Math.floor(0.95 * frames.length)]!.toFixed(1)} ms, scrolled to ${Math.round(box.scrollTop)}`;
    },
    [selector, SECONDS] as const,
  );
}
