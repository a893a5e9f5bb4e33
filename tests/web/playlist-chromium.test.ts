import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type PlainSeeder, startSeeder } from "../parts/plain-seeder.ts";
import { run } from "../parts/process.ts";
import { type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { LAUNCH, openPage } from "./chromium-launch.ts";

const { after, before, describe, test } = await testsThatNeed("chromium", "ffmpeg", "mpv");

/** A busy machine is late. */
const SLOW = { timeout: 100_000 };

/** If set, the folder for screenshots. */
const SHOTS = process.env.PAGE_SCREENSHOTS;

/** A device of the same network, behind a trusted proxy. */
const NEIGHBOUR = { extraHTTPHeaders: { "x-forwarded-for": "203.0.113.9" } };

/** Titles that break a page that parses them as markup, or lets them overflow. */
const HOSTILE = [
  `<img src=x onerror="window.broken='markup'">`,
  `\u202Egnp.exe \u2066 reversed`,
  `</button></li><script>window.broken='script'</script>`,
  "W".repeat(10_000),
  "\u0301".repeat(200),
];

/** What axe reports. */
interface Axe {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}

function hash(number: number): string {
  return number.toString(16).padStart(40, "0");
}

function listOf(titles: readonly string[], firstHash: number): string {
  const entries = titles.map(
    (title, i) => `#EXTINF:-1 group-title="Group ${i % 7}",${title}\nacestream://${hash(firstHash + i)}\n`,
  );
  return `#EXTM3U\n${entries.join("")}`;
}

describe("the playlist in Chromium", { timeout: 600_000 }, () => {
  let scratch: TempFolder;
  let seeder: PlainSeeder;
  let engine: EngineProcess;
  let browser: Browser;
  let page: Page;
  let lists: Server;
  let listUrl: string;
  let listed: string | undefined;
  const scriptErrors: string[] = [];

  before(async () => {
    scratch = await tempFolder("playlist");
    const films = scratch.file("films");
    await mkdir(films);
    await run("ffmpeg", [
      ...["-v", "error", "-f", "lavfi", "-i", "testsrc=size=320x180:rate=25:duration=12"],
      ..."-c:v libx264 -preset veryfast -g 50 -pix_fmt yuv420p".split(" "),
      `${films}/test.mp4`,
    ]);
    await mkdir(scratch.file("hls"));
    await run("ffmpeg", [
      ...["-v", "error", "-i", `${films}/test.mp4`, "-c", "copy", "-f", "hls"],
      ...["-hls_time", "4", "-hls_list_size", "0", scratch.file("hls/v.m3u8")],
    ]);
    const torrent = await torrentOf(films, 64 * 1024, scratch.file("films.torrent"));
    seeder = await startSeeder(torrent, scratch.path);
    const magnet = `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seeder.port}`;
    const titles = Array.from({ length: 1000 }, (_, i) => `Channel ${i + 1}`);
    await writeFile(
      scratch.file("big.m3u"),
      `${listOf([...HOSTILE, ...titles], 1)}#EXTINF:-1,A film of ours\n${magnet}\n`,
    );
    lists = createServer((request, response) => {
      const hls = /^\/hls\/[\w.]+$/.exec(request.url ?? "")?.[0];
      if (hls !== undefined) createReadStream(scratch.file(hls)).pipe(response);
      else if (listed === undefined) response.writeHead(503).end();
      else response.writeHead(200, { "content-type": "audio/x-mpegurl" }).end(listed);
    });
    await new Promise<void>((resolve) => lists.listen(0, "127.0.0.1", resolve));
    listUrl = `http://127.0.0.1:${(lists.address() as AddressInfo).port}/list.m3u`;
    // A fake player on the engine's computer, which writes its last argument to a file.
    await mkdir(scratch.file("bin"));
    const script = `#!/bin/sh\nfor last; do :; done; echo "$last" > '${scratch.file("opened")}'\n`;
    await writeFile(scratch.file("bin/mpv"), script, { mode: 0o755 });
    engine = await startEngine({
      env: {
        PATH: `${scratch.file("bin")}:${process.env.PATH}`,
        DISPLAY: ":0",
        SLUICE_TRUSTED_PROXIES: "127.0.0.1",
        SLUICE_INTRANET_NETWORKS: "203.0.113.0/24",
      },
    });
    browser = await chromium.launch(LAUNCH);
    page = await openStart();
  }, SLOW);
  after(async () => {
    await browser?.close();
    await engine?.stop();
    await seeder?.stop();
    lists?.close();
    await scratch?.remove();
  });

  async function openStart(options: BrowserContextOptions = {}): Promise<Page> {
    const opened = await openPage(browser, {
      viewport: { width: 1100, height: 1000 },
      colorScheme: "dark",
      faults: scriptErrors,
      ...options,
    });
    await opened.goto(`${engine.url}/`);
    return opened;
  }

  async function shot(name: string, of = page): Promise<void> {
    if (SHOTS !== undefined) await of.screenshot({ path: `${SHOTS}/playlist-${name}.png` });
  }

  test("an empty playlist shows how to fill it", SLOW, async () => {
    await page.locator("#playlist-nothing:not([hidden])").waitFor();
    assert.equal(await page.isHidden("#playlist-filters"), true);
    await page.locator("#add").waitFor();
    await shot("empty");
  });

  test("a chosen file is imported, and scrolling loads more items", SLOW, async () => {
    await page.setInputFiles("#playlist-files", scratch.file("big.m3u"));
    await counts(page, 1006);
    await shot("imported");
    const shown = await page.locator(".item").count();
    assert.ok(shown > 5 && shown < 60, `${shown} rows exist`);
    await page.locator(".item-play").first().focus();
    await page.keyboard.press("End");
    await page.locator(".item-title", { hasText: "A film of ours" }).waitFor();
    assert.ok((await page.locator(".item").count()) < 60);
    await page.keyboard.press("Home");
    await page.locator(".item-title", { hasText: "<img src=x" }).waitFor();
  });

  test("hostile titles are shown as text and do not overflow", SLOW, async () => {
    const shown = await page.locator(".item-title").allTextContents();
    assert.ok(shown.some((title) => title.startsWith("<img src=x")));
    assert.ok(shown.every((title) => title.length <= 300));
    assert.equal(await page.evaluate(() => "broken" in window), false);
    assert.equal(await page.locator("#playlist-items script, #playlist-items img[onerror]").count(), 0);
    const heights = await page
      .locator(".item")
      .evaluateAll((rows) => rows.slice(0, 6).map((row) => row.getBoundingClientRect().height));
    assert.ok(
      heights.every((height) => height < 120),
      heights.join(),
    );
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await page.evaluate(() => scrollTo(0, 0));
    await page.locator(".item").first().click({ trial: true });
    await shot("hostile");
  });

  test("the page is accessible: axe finds nothing", SLOW, async () => {
    const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
    await page.evaluate(await readFile(axe, "utf8"));
    const found = await page.evaluate(async () => {
      const { violations } = await (globalThis as unknown as { axe: { run(): Promise<Axe> } }).axe.run();
      return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 200)}`);
    });
    assert.deepEqual(found, []);
  });

  test("search works while typing, and the filters can be cleared", SLOW, async () => {
    await page.fill("#playlist-search", "channel 77");
    await counts(page, 11);
    await page.fill("#playlist-search", "no such thing");
    await page.locator("#playlist-not-found:not([hidden])").waitFor();
    await page.click("#playlist-clear");
    await counts(page, 1006);
    await page.locator(".item", { hasText: "Channel 4" }).first().locator(".tag").click();
    await page.waitForFunction(() =>
      /^14\d items/.test(document.querySelector("#playlist-count")?.textContent ?? ""),
    );
    await page.fill("#playlist-tag", "");
    await counts(page, 1006);
  });

  test("the star is stored, and the favourites filter finds the item", SLOW, async () => {
    await page.fill("#playlist-search", "channel 500");
    await counts(page, 1);
    await page.click(".item-star");
    await page.locator('.item-star[aria-pressed="true"]').waitFor();
    await page.fill("#playlist-search", "");
    await page.check("#playlist-favorites");
    await counts(page, 1);
    assert.equal(await page.textContent(".item-title"), "Channel 500");
    await page.uncheck("#playlist-favorites");
    await counts(page, 1006);
  });

  test("the menu changes title, lock and visibility; Escape returns the focus", SLOW, async () => {
    await page.fill("#playlist-search", "channel 500");
    await counts(page, 1);
    await page.click(".item-more");
    await shot("menu");
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(() => document.activeElement?.className), "item-more");
    await choose(page, /^Lock/);
    await page.locator(".badge", { hasText: "Locked" }).waitFor();
    await choose(page, /^Hide/);
    await page.locator(".item.off").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.className), "item-more");
    await choose(page, /^Edit/);
    await page.fill("dialog input >> nth=0", "Channel 500 renamed");
    await page.click("dialog button[type=submit]");
    await page.locator(".item-title", { hasText: "renamed" }).waitFor();
  });

  test("arrow keys move through the list and between controls", SLOW, async () => {
    await page.fill("#playlist-search", "channel 77");
    await counts(page, 11);
    await page.locator(".item-play").first().focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
    const focused = await page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
    assert.equal(focused, `Favourite: ${await page.locator(".item-title").nth(2).textContent()}`);
    await page.locator("[data-tab=items]").focus();
    const ids: (string | undefined)[] = [];
    for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp"]) {
      await page.keyboard.press(key);
      ids.push(await page.evaluate(() => document.activeElement?.id));
    }
    // In a text field with text, left and right move the cursor, up and down move the focus.
    const [search, category, group, up] = ids;
    assert.deepEqual(
      [search, category, group, up],
      ["playlist-search", "playlist-category", "playlist-tag", "playlist-search"],
    );
    assert.equal(await page.inputValue("#playlist-category"), "");
  });

  test("a click plays the item and shows its title", SLOW, async () => {
    await page.fill("#playlist-search", "film of ours");
    await page.locator(".item:only-child", { hasText: "A film" }).waitFor();
    await page.click(".item-play");
    await page.waitForFunction(() => (document.querySelector("video")?.currentTime ?? 0) > 1, undefined, {
      timeout: 75_000,
    });
    assert.equal(await page.textContent("#title"), "A film of ours");
    await shot("playing");
    await page.keyboard.press("Escape");
    await page.click("#stop");
  });

  test("the link for a player plays", SLOW, async () => {
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
    await choose(page, /^Copy link/);
    const link = await page.locator("dialog input").inputValue();
    assert.ok(link.startsWith(`${engine.url}/`), link);
    await page.keyboard.press("Escape");
    const session = await fetch(`${link}&format=json`);
    assert.equal(((await session.json()) as { error: unknown }).error, null);
  });

  test("the menu opens the item in a player on the engine's computer", SLOW, async () => {
    await choose(page, /^Open in mpv/);
    await page.waitForFunction(() =>
      /Opened in mpv/.test(document.getElementById("toast")?.textContent ?? ""),
    );
    const opened = await until(() => readFile(scratch.file("opened"), "utf8"));
    assert.match(opened, new RegExp(`^${engine.url}/play/0/\\d+\\?container=raw\n$`));
  });

  test("a deleted item is in the trash and can be restored", SLOW, async () => {
    await page.fill("#playlist-search", "channel 777");
    await page.locator(".item:only-child", { hasText: "Channel 777" }).waitFor();
    await choose(page, /trash$/);
    await counts(page, 0);
    await page.click("[data-tab=trash]");
    await page.locator(".trashed", { hasText: "Channel 777" }).waitFor();
    await shot("trash");
    await page.locator(".trashed button").click();
    await page.waitForFunction(
      () => document.querySelector("#trash-count")?.textContent === "The trash is empty.",
    );
    await page.click("[data-tab=items]");
    await counts(page, 1);
    await choose(page, /trash$/);
    await page.click("[data-tab=trash]");
    await page.click("#trash-empty");
    await page.locator("dialog .danger").click();
    await page.waitForFunction(
      () => document.querySelector("#trash-count")?.textContent === "The trash is empty.",
    );
  });

  test(
    "a subscription shows its error, adds its items after an update, and deletes them with itself",
    SLOW,
    async () => {
      await page.click("[data-tab=subscriptions]");
      await page.click("#panel-subscriptions [data-subscribe]");
      await page.fill("dialog input[type=url]", listUrl);
      await page.fill("dialog input[type=text] >> nth=0", "My list");
      await page.click("dialog button[type=submit]");
      await page.locator(".subscription .problem:not([hidden])").waitFor();
      assert.match((await page.textContent(".subscription .problem")) ?? "", /503/);
      await shot("problem");
      listed = listOf(["First of the list", "Second of the list"], 5_000_000);
      await page.click("text=Update now");
      await page.locator(".subscription", { hasText: "2 items" }).waitFor();
      await page.click("text=Show items");
      await page.click("#playlist-search");
      await page.fill("#playlist-search", "");
      await counts(page, 2);
      await page.click("[data-tab=subscriptions]");
      await page.locator(".subscription .danger").click();
      await page.locator("dialog .danger").click();
      await page.locator("#no-subscriptions:not([hidden])").waitFor();
      await page.click("[data-tab=items]");
      await counts(page, 1005);
    },
  );

  test(
    "a pasted link is added; for the address of a playlist the subscription form opens",
    SLOW,
    async () => {
      await page.fill("#link", `magnet:?xt=urn:btih:${hash(9_000_000)}&dn=Pasted+one`);
      await page.click("#add");
      await counts(page, 1006);
      await page.fill("#link", listUrl);
      await page.click("#add");
      await page.locator("dialog", { hasText: "Subscribe" }).waitFor();
      assert.equal(await page.inputValue("dialog input[type=url]"), listUrl);
      await page.keyboard.press("Escape");
      await page.fill("#link", "nonsense");
      await page.click("#add");
      assert.match((await page.textContent("#problem")) ?? "", /neither/);
    },
  );

  test("a pasted HLS address becomes an item that plays", SLOW, async () => {
    await page.fill("#link", listUrl.replace("list.m3u", "hls/v.m3u8"));
    await page.click("#add");
    await counts(page, 1007);
    await page.fill("#playlist-search", "v");
    await page
      .locator(".item", { hasText: /^\d+\s*V\s*v/ })
      .locator(".item-play")
      .click();
    await page.waitForFunction(() => (document.querySelector("video")?.currentTime ?? 0) > 1, undefined, {
      timeout: 75_000,
    });
    await page.keyboard.press("Escape");
    await page.click("#stop");
    await page.fill("#playlist-search", "");
  });

  test(
    "an added transport file becomes an item; a file that is not a playlist shows an error",
    SLOW,
    async () => {
      await page.setInputFiles("#playlist-files", scratch.file("films.torrent"));
      await counts(page, 1008);
      await writeFile(scratch.file("page.m3u"), "<!doctype html><html><body>Not here</body></html>");
      await page.setInputFiles("#playlist-files", scratch.file("page.m3u"));
      const refusal = page.locator("#playlist-problem:not([hidden])", { hasText: "a web page came" });
      await refusal.waitFor();
      // Loading the list afterwards does not hide the error.
      await page.fill("#playlist-search", "channel 77");
      await counts(page, 10);
      assert.equal(await refusal.isVisible(), true);
      await page.fill("#playlist-search", "");
      await counts(page, 1008);
      await shot("not-a-playlist");
    },
  );

  test("the address for other players returns a playlist", SLOW, async () => {
    await page.click("[data-tab=share]");
    await shot("share");
    const link = await page.inputValue("#share-link");
    assert.match(await (await fetch(link)).text(), /^#EXTM3U/);
    await page.check("#share-alive");
    assert.match(await page.inputValue("#share-link"), /[?&]skip_dead=1/);
    await page.uncheck("#share-alive");
    await page.click("[data-tab=items]");
  });

  test(
    "another device of the network is read-only, and can edit with the token, also after a reload",
    SLOW,
    async () => {
      const guest = await openStart(NEIGHBOUR);
      await guest.locator("#playlist-read-only:not([hidden])").waitFor();
      await counts(guest, 1007);
      assert.equal(await guest.locator(".item-star").count(), 0);
      assert.equal(await guest.isHidden("#add"), true);
      assert.equal(await guest.isHidden("[data-tab=trash]"), true);
      await guest.fill("#playlist-search", "channel 77");
      await counts(guest, 10);
      await shot("read-only", guest);
      await guest.click("#playlist-read-only summary");
      await guest.fill("#playlist-read-only input", "0".repeat(64));
      await guest.keyboard.press("Enter");
      await guest.locator("#playlist-read-only .problem", { hasText: "not valid" }).waitFor();
      const answer = await fetch(`${engine.url}/server/api?api_version=3&method=get_api_access_token`);
      const { token } = ((await answer.json()) as { result: { token: string } }).result;
      await guest.fill("#playlist-read-only input", token);
      await guest.keyboard.press("Enter");
      await guest.locator(".item-star").first().waitFor();
      await guest.reload();
      await guest.locator(".item-star").first().waitFor();
      await guest.goto(`${engine.url}/#/control/access`);
      await guest.getByRole("button", { name: "Remove the access token" }).waitFor();
      assert.equal(await guest.isHidden("#access-intranet"), true);
      await guest.context().close();
    },
  );

  test("the access switch blocks other devices", SLOW, async () => {
    await page.goto(`${engine.url}/#/control/access`);
    await page.locator("#access-intranet button", { hasText: "Block" }).click();
    await page.waitForFunction(() => /now blocked/.test(document.getElementById("toast")?.textContent ?? ""));
    const refused = await fetch(`${engine.url}/`, { headers: NEIGHBOUR.extraHTTPHeaders });
    assert.equal(refused.status, 403);
    await page.locator("#access-intranet button", { hasText: "Allow" }).click();
    await page.waitForFunction(() => /now allowed/.test(document.getElementById("toast")?.textContent ?? ""));
    await page.goto(`${engine.url}/#/watch`);
    await page.click("[data-tab=items]");
  });

  test("the page fits the width of a phone", SLOW, async () => {
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 360, height: 740 });
    for (const tab of ["items", "subscriptions", "trash", "share"]) {
      await page.click(`[data-tab=${tab}]`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 360), tab);
    }
    await page.click("[data-tab=items]");
    await page.locator("#playlist").scrollIntoViewIfNeeded();
    await shot("phone");
  });

  test("a stopped engine shows an error", SLOW, async () => {
    await engine.stop();
    await page.fill("#playlist-search", "channel");
    await page.locator("#playlist-problem:not([hidden])", { hasText: "does not answer" }).waitFor();
  });

  test("no script failed, and nothing violated the content security policy", () => {
    assert.deepEqual(scriptErrors, []);
  });
});

/** Waits until the list shows this number of items. */
async function counts(page: Page, items: number): Promise<void> {
  const text = `${items.toLocaleString("en-US")} ${items === 1 ? "item" : "items"}`;
  await page.waitForFunction(
    (wanted) => document.querySelector("#playlist-count")?.textContent === wanted,
    text,
    { timeout: 75_000 },
  );
}

/** Returns the text of a file once it exists. */
async function until(read: () => Promise<string>): Promise<string> {
  for (let tries = 0; tries < 400; tries++) {
    const text = await read().catch(() => "");
    if (text !== "") return text;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error("the file was not written");
}

/** Opens the menu of the first item, and chooses the entry with this name. */
async function choose(page: Page, name: RegExp): Promise<void> {
  // Rows outside the window do not exist, and the home page may appear above the list at any time.
  await page.waitForFunction(() => {
    document.getElementById("playlist-search")!.scrollIntoView({ block: "start" });
    return document.querySelector(".item-more") !== null;
  });
  await page.click(".item-more");
  await page.locator(".sheet button").filter({ hasText: name }).click();
}
