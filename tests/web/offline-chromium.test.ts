import assert from "node:assert/strict";
import { chromium } from "playwright-core";
import { startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { LAUNCH, openPage } from "./chromium-launch.ts";

const { test } = await testsThatNeed("chromium");

/** A busy machine answers late. */
const SLOW = { timeout: 100_000 };

test(
  "the app opens without the engine and says so; the control interface is not answered from the cache",
  SLOW,
  async (t) => {
    const engine = await startEngine();
    const browser = await chromium.launch(LAUNCH);
    t.after(() => browser.close());
    const page = await openPage(browser);
    await page.goto(`${engine.url}/`);
    await page.locator("#playlist-nothing:not([hidden])").waitFor();
    await page.evaluate(async () => {
      await navigator.serviceWorker.ready;
    });
    // The second visit is the first one that the worker sees.
    await page.reload();
    await page.locator("#playlist-nothing:not([hidden])").waitFor();
    await page.goto(`${engine.url}/#/control/overview`);
    await page.locator("#control .verdict h2").waitFor();
    await engine.stop();
    await page.goto(`${engine.url}/?again#/control/overview`).catch(() => {});
    await page.goto(`${engine.url}/#/control/overview`);
    await page.reload();
    await page.locator("#control .problem", { hasText: "does not answer" }).waitFor();
    assert.equal(await page.locator("#places a").count(), 3);
    const answered = await page.evaluate(() =>
      fetch("server/api?method=get_version").then(
        () => true,
        () => false,
      ),
    );
    assert.equal(answered, false);
  },
);
