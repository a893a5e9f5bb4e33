import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Browser, chromium } from "playwright-core";
import { PATTERN_SOUND_CONFIG } from "../../src/media/test-pattern/sound.ts";
import { TestPattern } from "../../src/media/test-pattern/test-pattern.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { LAUNCH, openPage } from "./chromium-launch.ts";

const { after, before, describe, test } = await testsThatNeed("chromium");

/** A busy machine is late. */
const SLOW = { timeout: 100_000 };
const SECONDS = 10;

/** Some seconds of a stream at once, after which the connection stays open. */
function channelServer(): Promise<Server> {
  const pattern = new TestPattern();
  const muxer = new TsMuxer([
    { codec: "h264", language: "und" },
    { codec: "aac", language: "und", config: PATTERN_SOUND_CONFIG },
  ]);
  const bytes = Array.from({ length: SECONDS }, (_, second) =>
    muxer.segment(
      pattern.second(second).map((frame) => ({ ...frame, track: frame.track === "video" ? 0 : 1 })),
    ),
  );
  const server = createServer((request, response) => {
    if (request.url === "/guide.xml") return void response.end(guide());
    response.writeHead(200, { "content-type": "video/mp2t" });
    for (const some of bytes) response.write(some);
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

/** A guide whose channel is not certainly `News`: two programmes of the next hours. */
function guide(): string {
  const time = (hours: number) =>
    `${new Date(Date.now() + 3_600_000 * hours).toISOString().replace(/\D/g, "").slice(0, 14)} +0000`;
  const programmes = [1, 2].map(
    (n) =>
      `<programme channel="n.x" start="${time(n)}" stop="${time(n + 1)}"><title>Evening Quiz</title><episode-num system="onscreen">S01E0${n}</episode-num></programme>`,
  );
  return `<?xml version="1.0"?><tv><channel id="n.x"><display-name>News Nature Wild</display-name></channel>${programmes.join("")}</tv>`;
}

describe("recordings in Chromium", { timeout: 300_000 }, () => {
  let engine: EngineProcess;
  let browser: Browser;
  let channel: Server;

  before(async () => {
    channel = await channelServer();
    engine = await startEngine();
    browser = await chromium.launch(LAUNCH);
    const token = await call("get_api_access_token", {}, "");
    const url = `http://127.0.0.1:${(channel.address() as AddressInfo).port}/live.ts`;
    await call("playlist_add_item", { title: "News", video_url: url, is_live: "1" }, token.token);
  });

  after(async () => {
    await browser?.close();
    await engine?.stop();
    channel?.closeAllConnections();
    channel?.close();
  });

  async function call(method: string, parameters: Record<string, string>, token: string) {
    const query = new URLSearchParams({ api_version: "3", method, token, ...parameters });
    const response = await fetch(`${engine.url}/server/api?${query}`);
    return ((await response.json()) as { result: { token: string } }).result;
  }

  test("a channel is recorded from its menu, then stopped, downloaded and deleted", SLOW, async () => {
    const problems: string[] = [];
    const page = await openPage(browser, { faults: problems });
    await page.goto(engine.url);
    await page.locator(".item-title").first().waitFor();
    await page.getByRole("button", { name: "Menu of News" }).click();
    await page.getByRole("button", { name: "Record…" }).click();
    await page.getByLabel("Minutes", { exact: true }).fill("5");
    await page.getByRole("button", { name: "Record now" }).click();
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.click("#recordings");
    const row = page.locator("dialog .guide-sources li");
    // The row is replaced while the recording grows.
    await row.filter({ hasText: /recording, [1-9]/ }).waitFor();
    await row.getByRole("button", { name: "Stop" }).click();
    await row.filter({ hasText: /recorded, [1-9]/ }).waitFor();
    const link = await row.getByRole("link", { name: "Download" }).getAttribute("href");
    const file = await fetch(link!);
    assert.match(file.headers.get("content-disposition") ?? "", /filename="News - \d{4}-\d\d-\d\d\.ts"/);
    const bytes = new Uint8Array(await file.arrayBuffer());
    assert.deepEqual([bytes[0], bytes.length % 188], [0x47, 0]);
    await row.getByRole("button", { name: "Play" }).click();
    const plays = (from: number) =>
      page.waitForFunction(
        (at) => (document.querySelector("video.dialog-video") as HTMLVideoElement)?.currentTime > at,
        from,
      );
    await plays(0.5);
    const seconds = await page.evaluate(() => {
      const video = document.querySelector("video.dialog-video") as HTMLVideoElement;
      video.currentTime = 6;
      return video.duration;
    });
    // The engine may hold the end of the stream back.
    assert.ok(seconds > 7 && seconds < SECONDS + 1, `${seconds} s`);
    await plays(6.5);
    await page.locator("dialog").last().getByRole("button", { name: "Close" }).click();
    await row.getByRole("button", { name: "Delete" }).click();
    await page.locator("dialog").last().getByRole("button", { name: "Delete" }).click();
    await page.getByText("Nothing is recorded").waitFor();
    assert.deepEqual(problems, []);
  });

  test(
    "a channel without a certain guide gets one, and a series is recorded from the search",
    SLOW,
    async () => {
      const problems: string[] = [];
      const page = await openPage(browser, { faults: problems });
      await page.goto(engine.url);
      await page.click("#guide");
      await page
        .getByPlaceholder("https://…/guide.xml.gz")
        .fill(`http://127.0.0.1:${(channel.address() as AddressInfo).port}/guide.xml`);
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.getByText("Channels without a certain guide: 1").click();
      await page.getByText("Similar: News Nature Wild").waitFor();
      await page.getByRole("button", { name: "Choose…" }).click();
      const choice = page.locator("dialog").last();
      await choice.locator("select").selectOption({ label: "News Nature Wild (n.x)" });
      await choice.getByRole("button", { name: "Save" }).click();
      await page.getByText("Channels without a certain guide").waitFor({ state: "hidden" });
      await page.getByPlaceholder("When is…").fill("quiz");
      await page.getByRole("button", { name: "Search", exact: true }).click();
      await page.getByRole("button", { name: "Record…" }).first().click();
      await page.getByRole("button", { name: "Series" }).first().click();
      await page.getByText("Every episode of Evening Quiz is recorded").waitFor();
      await page.keyboard.press("Escape");
      await page.click("#recordings");
      for (const text of ["Evening Quiz: S01E01", "Evening Quiz: S01E02", "each episode once"])
        await page.getByText(text).first().waitFor();
      assert.deepEqual(problems, []);
    },
  );
});
