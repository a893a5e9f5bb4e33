import assert from "node:assert/strict";
import { type Browser, chromium, type Page } from "playwright-core";
import { type EngineProcess, freePort, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { LAUNCH, openPage } from "./chromium-launch.ts";

const { after, before, describe, test } = await testsThatNeed("chromium", "ffmpeg");

/** A busy machine answers late. */
const SLOW = { timeout: 100_000 };
/** If set, the folder for screenshots. */
const SHOTS = process.env.PAGE_SCREENSHOTS;
const SIZES = { desktop: [1280, 800], phone: [390, 844], tv: [1920, 1080] } as const;

describe("the Studio and the Control room in Chromium", { timeout: 300_000 }, () => {
  let engine: EngineProcess;
  let browser: Browser;
  let page: Page;
  const scriptErrors: string[] = [];

  const open = (route: string) => page.goto(`${engine.url}/#/${route}`);
  /** Returns the result of a control method. */
  const call = async (method: string, parameters: Record<string, string> = {}) => {
    const query = new URLSearchParams({ api_version: "3", method, token, ...parameters });
    // biome-ignore lint/suspicious/noExplicitAny: the tests read members by name.
    return ((await (await fetch(`${engine.url}/server/api?${query}`)).json()) as { result: any }).result;
  };
  const dialog = () => page.locator("dialog");
  let token = "";

  before(async () => {
    engine = await startEngine();
    ({ token } = await call("get_api_access_token"));
    browser = await chromium.launch(LAUNCH);
    page = await openPage(browser, {
      viewport: { width: 1280, height: 800 },
      colorScheme: "dark",
      faults: scriptErrors,
    });
  }, SLOW);
  after(async () => {
    await browser?.close();
    await engine?.stop();
  });

  test("arrow keys lead from place to place, and back brings the last one", SLOW, async () => {
    await open("watch");
    await page.locator("#places a[data-place=watch]").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.locator("#studio h1").waitFor();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.locator("#control .verdict h2").waitFor();
    assert.equal(await page.title(), "Control room – Sluice");
    await page.goBack();
    await page.locator("#studio h1").waitFor();
    assert.equal(await page.isHidden("#control"), true);
  });

  test(
    "the Studio starts a test pattern, previews it, and shows its link, QR code and embed code",
    SLOW,
    async () => {
      await open("studio");
      await page.getByRole("button", { name: "Start a broadcast" }).click();
      await dialog()
        .getByLabel(/^Source/)
        .selectOption("pattern");
      await dialog()
        .getByLabel(/^Title/)
        .fill("My <b>channel");
      await dialog().getByLabel(/^Name/).fill("one");
      await dialog().getByRole("button", { name: "Start", exact: true }).click();
      const card = page.locator(".broadcast", { hasText: "My <b>channel" });
      await card.locator(".state", { hasText: "On air" }).waitFor();
      await card.getByRole("button", { name: "Preview" }).click();
      await page.waitForFunction(
        () => (document.querySelector(".preview video") as HTMLVideoElement).currentTime > 1,
      );
      if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/studio.png`, fullPage: true });
      await card.getByRole("button", { name: "Link, QR and embed" }).click();
      await page.locator("dialog .qr svg path").waitFor();
      const link = await dialog().getByLabel("Link for Sluice and compatible players").inputValue();
      const [broadcast] = (await call("broadcast_list")).broadcasts;
      assert.equal(link, broadcast.link);
      const embed = await dialog()
        .getByLabel(/HTML code/)
        .inputValue();
      assert.match(embed, /^<iframe src="[^"]*\/watch\/[0-9a-f]{40}\?embed=1" title="My &lt;b&gt;channel"/);
      await page.keyboard.press("Escape");
    },
  );

  test("OBS gets a server and a key, a bad source is refused with the engine's words", SLOW, async () => {
    await open("studio");
    await page.getByRole("button", { name: "Start a broadcast" }).click();
    await dialog()
      .getByLabel(/^Source/)
      .selectOption("udp");
    await dialog().getByLabel("Listen on").fill("udp://nowhere");
    await dialog().getByRole("button", { name: "Start", exact: true }).click();
    await page.locator("dialog .problem", { hasText: /udp/i }).waitFor();
    const port = await freePort();
    await dialog()
      .getByLabel(/^Source/)
      .selectOption("rtmp");
    await dialog().getByLabel("Listen on").fill(`rtmp://127.0.0.1:${port}/live`);
    await dialog().getByLabel(/^Name/).fill("obs");
    await dialog().getByRole("button", { name: "Start", exact: true }).click();
    const card = page.locator(".broadcast", { hasText: `rtmp://127.0.0.1:${port}/live` });
    await card.locator(".publish code").nth(1).waitFor();
    const { publish_urls: urls, stream_key: key } = await call("broadcast_get_status", { name: "obs" });
    assert.deepEqual(await card.locator(".publish code").allTextContents(), [...urls, key]);
    await card.getByRole("button", { name: "Stop" }).click();
    await page.getByRole("button", { name: "Stop broadcasting" }).click();
    await card.waitFor({ state: "detached" });
  });

  test("an SRT broadcast shows one server, with the key as its passphrase", SLOW, async () => {
    await open("studio");
    await page.getByRole("button", { name: "Start a broadcast" }).click();
    await dialog()
      .getByLabel(/^Source/)
      .selectOption("srt");
    const port = await freePort();
    await dialog()
      .getByLabel(/^Address/)
      .fill(`srt://127.0.0.1:${port}?mode=listener`);
    await dialog().getByLabel(/^Name/).fill("srt");
    await dialog().getByRole("button", { name: "Start", exact: true }).click();
    const card = page.locator(".broadcast", { hasText: `srt://127.0.0.1:${port}` });
    await card.locator(".publish code").first().waitFor();
    const { stream_key: key } = await call("broadcast_get_status", { name: "srt" });
    const shown = await card.locator(".publish code").allTextContents();
    assert.deepEqual(shown, [`srt://127.0.0.1:${port}?passphrase=${key}`]);
    await call("broadcast_stop", { name: "srt" });
    await card.waitFor({ state: "detached" });
  });

  test("every number of the Control room is the engine's own within one refresh", SLOW, async () => {
    await open("control/overview");
    const transfer = page.locator(".transfer", { hasText: "My <b>channel" });
    await transfer.locator("summary").click();
    await page.locator("#control .row-item", { hasText: "Chrome" }).first().waitFor();
    await page.waitForFunction(async (query) => {
      const response = await fetch(`server/api?${query}`);
      const { result } = await response.json();
      const [known] = result.transfers;
      const text = document.querySelector(".transfer")?.textContent ?? "";
      return (
        result.transfers.length === document.querySelectorAll(".transfer").length &&
        result.sessions.length === document.querySelectorAll("#control li.row-item").length &&
        text.includes(known.infohash) &&
        text.includes(known.users === 1 ? "1 user" : `${known.users} users`)
      );
    }, new URLSearchParams({ api_version: "3", method: "get_activity", token }).toString());
    for (const [name, [width, height]] of Object.entries(SIZES)) {
      await page.setViewportSize({ width, height });
      for (const route of [
        "control/overview",
        "control/health",
        "control/storage",
        "control/logs",
        "control/access",
        "control/settings",
        "studio",
      ]) {
        await open(route);
        await page.locator("main:not([hidden]) .card").first().waitFor();
        assert.ok(
          await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
          `${route} ${name}`,
        );
        if (SHOTS !== undefined)
          await page.screenshot({ path: `${SHOTS}/${route.replace("/", "-")}-${name}.png` });
      }
    }
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  test("a player is stopped, and leaves the list", SLOW, async () => {
    const [{ infohash }] = (await call("broadcast_list")).broadcasts;
    await fetch(`${engine.url}/ace/manifest.m3u8?infohash=${infohash}&format=json&pid=tv`, {
      headers: { "user-agent": "VLC/3.0.20 LibVLC/3.0.20" },
    });
    await open("control/overview");
    const player = page.locator("#control li.row-item", { hasText: "VLC 3.0.20 at 127.0.0.1" });
    await player.getByRole("button", { name: /Stop/ }).click();
    await player.waitFor({ state: "detached" });
  });

  test("a limit applies without a restart, a bad value is refused with the flag's words", SLOW, async () => {
    await open("control/settings");
    await page.getByLabel("Search settings").fill("download-limit");
    await page.locator("#setting-download-limit").fill("much");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.locator(".settings-state.problem", { hasText: "expected bytes per second" }).waitFor();
    await page.locator("#setting-download-limit").fill("2MB");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.locator(".settings-state", { hasText: "Saved in" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Restart" }).isHidden(), true);
    assert.equal((await call("get_settings")).needs_restart, false);
    await page.getByLabel("Search settings").fill("max-connections");
    await page.locator("#setting-max-connections").fill("50");
    await page.locator(".settings-state", { hasText: "after a restart" }).waitFor();
  });

  test("the log shows new lines, filtered by text", SLOW, async () => {
    await open("control/logs");
    await page.getByLabel("Filter by text").fill("session ended");
    await page.locator(".log li", { hasText: "session ended" }).first().waitFor();
    await page.getByLabel("Level").selectOption("error");
    await page.waitForFunction(() => document.querySelectorAll(".log li").length === 0);
  });

  test("a broadcast stops only after a confirmation", SLOW, async () => {
    await open("studio");
    await page.locator(".broadcast").getByRole("button", { name: "Stop" }).click();
    assert.equal((await call("broadcast_list")).broadcasts.length, 1);
    await page.getByRole("button", { name: "Stop broadcasting" }).click();
    await page.getByText("Nothing is on air").waitFor();
    assert.equal((await call("broadcast_list")).broadcasts.length, 0);
  });

  test("Storage shows the cache and downloads a backup with the date in its name", SLOW, async () => {
    await open("control/storage");
    await page.getByText("The disk cache is empty.").waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download a backup" }).click(),
    ]);
    assert.match(download.suggestedFilename(), /^sluice-\d{4}-\d\d-\d\d\.backup$/);
    const status = page.locator("#control [role=status]");
    const choose = async (file: string | { name: string; mimeType: string; buffer: Buffer }) => {
      const chooser = page.waitForEvent("filechooser");
      await page.getByRole("button", { name: "Restore a backup…" }).click();
      await (await chooser).setFiles(file);
    };
    await choose({ name: "photo.jpg", mimeType: "image/jpeg", buffer: Buffer.from("no backup") });
    await status.getByText("This is not a complete Sluice backup").waitFor();
    const film = { infohash: "a".repeat(40), file_index: "0", title: "Film", link: "a".repeat(40) };
    await call("watched_set", { ...film, position: "60", duration: "6000" });
    await choose(await download.path());
    const row = dialog().getByRole("row", { name: /^Films to continue/ });
    await row.waitFor();
    assert.deepEqual(await row.getByRole("cell").allTextContents(), ["1", "0"]);
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/restore.png` });
    await dialog().getByRole("button", { name: "Replace and restart" }).click();
    await status.getByText(/^The backup is restored: \d+ records\.$/).waitFor();
    assert.deepEqual(await call("watched_get_list"), []);
    await page.getByRole("button", { name: "Reload the page" }).click();
    await page.getByText("The disk cache is empty.").waitFor();
  });

  test("Play on… fits a phone of 360 px if a device has a long name", SLOW, async () => {
    const players = [{ id: "tv", type: "aircast", name: `TV_${"x".repeat(90)}` }];
    const status = { status: "playing", volume: null, position: null, duration: null, title: null };
    const pattern = /\/api\/(?:players\/)?events\?/;
    await page.route(pattern, (route) => {
      const isDevice = route.request().url().includes("device=tv");
      const [name, value] = isDevice ? ["device", status] : ["players", players];
      const body = `event: ${name}\ndata: ${JSON.stringify(value)}\n\n`;
      return route.fulfill({ contentType: "text/event-stream", body });
    });
    await page.setViewportSize({ width: 360, height: 760 });
    await open("watch");
    await page.fill("#link", "a".repeat(40));
    await page.click("#play");
    await page.click("#play-on");
    await dialog().getByRole("button", { name: /^TV_/ }).waitFor();
    const hidden = await dialog().evaluate((shown) => [
      shown.scrollWidth - shown.clientWidth,
      Math.max(0, shown.getBoundingClientRect().right - innerWidth),
    ]);
    assert.deepEqual(hidden, [0, 0]);
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/play-on-360.png` });
    // The content has not started here, but the device can fetch it by its link.
    let sent = "";
    await page.route("**/server/api?*open_in_player*", (route) => {
      sent = route.request().postData() ?? "";
      return route.fulfill({ json: { result: "ok", error: null } });
    });
    await dialog().getByRole("button", { name: /^TV_/ }).click();
    await dialog()
      .getByText(/Playing/)
      .waitFor();
    assert.equal(new URLSearchParams(sent).get("infohash"), "a".repeat(40));
    await page.keyboard.press("Escape");
    await page.unroute(pattern);
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  test("no script failed, and nothing violated the content security policy", () => {
    assert.deepEqual(scriptErrors, []);
  });
});
