import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { type Browser, chromium, type Page } from "playwright-core";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type PlainSeeder, startSeeder } from "../parts/plain-seeder.ts";
import { run } from "../parts/process.ts";
import { type TempFolder, type TorrentFile, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { LAUNCH, openPage } from "./chromium-launch.ts";
import { type Device, INFOHASH, JOURNEYS, type Journey, MAGNET, PAGES, type Step } from "./journeys.ts";
import { PLAYER_JOURNEYS } from "./journeys-player.ts";
import { ROOM_JOURNEYS } from "./journeys-rooms.ts";
import { WATCH_JOURNEYS } from "./journeys-watch.ts";
import { type PrefixProxy, startPrefixProxy } from "./prefix-proxy.ts";

const { after, before, describe, test } = await testsThatNeed("chromium", "ffmpeg");

/** A busy machine answers late. */
const SLOW = { timeout: 100_000 };
/** If set, the folder for screenshots. */
const SHOTS = process.env.PAGE_SCREENSHOTS;
/** More presses than any page needs from its start to its last control. */
const MAX_PRESSES = 150;

const DEVICES = {
  keys: { viewport: { width: 1280, height: 800 }, colorScheme: "dark" },
  touch: { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true },
  tv: { viewport: { width: 1920, height: 1080 }, colorScheme: "dark", reducedMotion: "reduce" },
} as const;

/** The widths that every page must fit. */
const WIDTHS = [320, 390, 1280, 1920, 3840];

describe("journeys through the app below the path of a reverse proxy", { timeout: 900_000 }, () => {
  let scratch: TempFolder;
  let seeder: PlainSeeder;
  let engine: EngineProcess;
  let proxy: PrefixProxy;
  let browser: Browser;
  let torrent: TorrentFile;
  let magnet: string;
  let guide: Server;
  let loads = 0;
  const pages = new Map<Device, Page>();
  const faults: string[] = [];

  before(async () => {
    scratch = await tempFolder("journeys");
    const films = scratch.file("films");
    await mkdir(films);
    await run("ffmpeg", [
      ...["-v", "error", "-f", "lavfi", "-i", "testsrc=size=320x180:rate=25:duration=60"],
      ..."-c:v libx264 -preset veryfast -g 50 -pix_fmt yuv420p".split(" "),
      `${films}/film.mp4`,
    ]);
    await writeFile(`${films}/notes.txt`, "Notes\n".repeat(10_000));
    torrent = await torrentOf(films, 64 * 1024, scratch.file("films.torrent"));
    seeder = await startSeeder(torrent, scratch.path);
    magnet = `magnet:?xt=urn:btih:${torrent.infohash}&dn=films&x.pe=127.0.0.1:${seeder.port}`;
    engine = await startEngine({
      env: { SLUICE_TRUSTED_PROXIES: "127.0.0.1", SLUICE_ALLOWED_HOSTS: lanAddress() },
    });
    proxy = await startPrefixProxy(engine.url, lanAddress());
    const list = [`#EXTINF:-1 group-title="Films",Our film\n${magnet}\n`];
    for (let i = 2; i <= 9; i++)
      list.push(
        `#EXTINF:-1 tvg-id="c${i}.tv",Channel ${i}\nacestream://${i.toString(16).padStart(40, "0")}\n`,
      );
    await writeFile(scratch.file("list.m3u"), `#EXTM3U\n${list.join("")}`);
    const form = new FormData();
    form.set("file", new File([await readFile(scratch.file("list.m3u"))], "list.m3u"));
    await call("playlist_import", {}, form);
    guide = createServer((_, response) =>
      response.writeHead(200, { "content-type": "text/xml" }).end(guideXml()),
    );
    await new Promise<void>((resolve) => guide.listen(0, "127.0.0.1", resolve));
    const guideUrl = `http://127.0.0.1:${(guide.address() as AddressInfo).port}/guide.xml`;
    await call("epg_source_add", { url: guideUrl });
    browser = await chromium.launch(LAUNCH);
    for (const device of ["keys", "touch", "tv"] as const) pages.set(device, await openDevice(device));
  }, SLOW);
  after(async () => {
    await browser?.close();
    proxy?.close();
    guide?.close();
    await engine?.stop();
    await seeder?.stop();
    await scratch?.remove();
  });

  /** Opens a page that reports script errors, violations of the policy, and requests that leave the path of the proxy. */
  async function openDevice(device: Device): Promise<Page> {
    const page = await openPage(browser, { ...DEVICES[device], timeoutMs: 30_000, faults });
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(`${proxy.url}/`) && !/^(?:blob|data):/.test(url)) faults.push(`${device}: ${url}`);
    });
    await page.goto(`${proxy.url}/`);
    await page.locator(PAGES.watch!).first().waitFor();
    return page;
  }

  /** Calls a control method; resolves to its result as JSON. */
  async function call(method: string, parameters: Readonly<Record<string, string>>, body?: FormData) {
    const ask = async (query: Record<string, string>, init: RequestInit = {}) => {
      const asked = new URLSearchParams({ api_version: "3", ...query });
      const answer = await (await fetch(`${engine.url}/server/api?${asked}`, init)).json();
      const { result, error } = answer as { result: { token: string }; error: unknown };
      assert.equal(error, null);
      return result;
    };
    const { token } = await ask({ method: "get_api_access_token" });
    const result = await ask({ method, token, ...parameters }, body ? { method: "POST", body } : {});
    return JSON.stringify(result);
  }

  const filled = (text: string) => text.replace(MAGNET, magnet).replace(INFOHASH, torrent.infohash);

  async function take(page: Page, device: Device, step: Step): Promise<void> {
    if ("press" in step) await page.keyboard.press(step.press);
    else if ("reach" in step) await reach(page, step.reach, step.by);
    else if ("type" in step) {
      await page.keyboard.press("ControlOrMeta+a");
      await page.keyboard.insertText(filled(step.type));
    } else if ("click" in step) {
      const target = page.locator(step.click).locator("visible=true").first();
      await (device === "touch" ? target.tap() : target.click());
    } else if ("see" in step) await page.locator(step.see).locator("visible=true").first().waitFor();
    else if ("gone" in step)
      await page.waitForFunction((count) => count === 0, await untilNone(page, step.gone));
    else if ("focused" in step)
      assert.ok(
        await page
          .locator(step.focused)
          .locator("visible=true")
          .first()
          .evaluate((each) => each === document.activeElement),
        `${step.focused} has no focus`,
      );
    else if ("choose" in step)
      await page.locator(step.choose).locator("visible=true").first().selectOption(step.option);
    else if ("value" in step)
      await page.waitForFunction(
        ([selector, text]) => document.querySelector<HTMLInputElement>(selector!)?.value.includes(text!),
        [step.value, step.has],
      );
    else if ("reload" in step) await page.reload();
    else if ("file" in step) await page.setInputFiles(step.file, scratch.file(step.path));
    else {
      const given = Object.entries(step.with ?? {}).map(([name, value]) => [name, filled(value)] as const);
      let result = await call(step.call, Object.fromEntries(given));
      // The page sends what the user did a moment later than it shows it.
      for (let tries = 0; tries < 100 && !result.includes(step.has ?? ""); tries++) {
        await page.waitForTimeout(100);
        result = await call(step.call, Object.fromEntries(given));
      }
      assert.ok(result.includes(step.has ?? ""), `${step.call}: ${result.slice(0, 300)}`);
    }
  }

  async function open(page: Page, route: string): Promise<void> {
    // With another query, the page is loaded again, and does not begin with the dialogs and fields of the last journey.
    await page.goto(`${proxy.url}/?${++loads}#/${route}`);
    const ready = PAGES[route] ?? PAGES[route.split("/").slice(0, 2).join("/")]!;
    await page.locator(ready).locator("visible=true").first().waitFor();
  }

  async function make({ device, at, steps, name }: Journey): Promise<void> {
    const page = pages.get(device)!;
    await open(page, at);
    for (const [number, step] of steps.entries())
      await take(page, device, step).catch(async (error: unknown) => {
        if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/failed-journey.png` });
        const where = await page.evaluate(() => document.activeElement?.outerHTML.slice(0, 150));
        throw new Error(`${name}, step ${number + 1} ${JSON.stringify(step)}; focus: ${where}`, {
          cause: error,
        });
      });
  }

  for (const journey of [...JOURNEYS, ...WATCH_JOURNEYS, ...PLAYER_JOURNEYS, ...ROOM_JOURNEYS])
    test(`${journey.device}: ${journey.name}`, SLOW, () => make(journey));

  for (const route of Object.keys(PAGES)) {
    test(
      `${route}: axe finds nothing in both themes, and it fits 320 to 3840 px in both directions of text`,
      SLOW,
      async () => {
        const page = pages.get("keys")!;
        await open(page, route);
        const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
        await page.evaluate(await readFile(axe, "utf8"));
        assert.deepEqual(await page.evaluate(violations, undefined), []);
        // Of what axe checks, only the contrast depends on the theme.
        await page.emulateMedia({ colorScheme: "light" });
        assert.deepEqual(await page.evaluate(violations, "color-contrast"), [], "light");
        await page.emulateMedia({ colorScheme: "dark" });
        for (const direction of ["ltr", "rtl"] as const)
          for (const width of WIDTHS) {
            await page.setViewportSize({ width, height: width >= 1280 ? (width * 9) / 16 : 800 });
            await page.evaluate((dir) => {
              document.documentElement.dir = dir;
            }, direction);
            const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
            assert.ok(over <= 0, `${route}: ${over} px too wide at ${width} px, ${direction}`);
            if (SHOTS !== undefined)
              await page.screenshot({
                path: `${SHOTS}/${route.replace("/", "-")}-${width}${direction === "rtl" ? "-rtl" : ""}.png`,
              });
          }
        await page.evaluate(() => {
          document.documentElement.dir = "";
        });
        await page.setViewportSize(DEVICES.keys.viewport);
      },
    );
    test(`touch, tv: ${route} opens, and its first controls can be reached`, SLOW, async () => {
      for (const device of ["touch", "tv"] as const) {
        const page = pages.get(device)!;
        await open(page, route);
        const small = await page.evaluate(smallTargets);
        if (device === "touch") assert.deepEqual(small, []);
        if (device === "tv") {
          await page.keyboard.press("Tab");
          for (const key of ["ArrowDown", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
          const focused = await page.evaluate(() =>
            document.activeElement?.matches("a, button, input, select, summary, [tabindex]"),
          );
          assert.equal(focused, true);
        }
      }
    });
  }

  test("no script failed, nothing violated the policy, and no request left the path of the proxy", () => {
    assert.deepEqual([...new Set(faults)], []);
  });
});

/** A guide of channels 2 to 9: Evening news is on, Late film is next. */
function guideXml(): string {
  const now = Date.now();
  const time = (minutes: number) =>
    `${new Date(now + 60_000 * minutes).toISOString().replaceAll(/\D/g, "").slice(0, 14)} +0000`;
  const ids = Array.from({ length: 8 }, (_, i) => `c${i + 2}.tv`);
  const programme = (id: string, from: number, to: number, title: string) =>
    `<programme start="${time(from)}" stop="${time(to)}" channel="${id}"><title>${title}</title></programme>`;
  const channels = ids.map((id) => `<channel id="${id}"><display-name>${id}</display-name></channel>`);
  const shown = ids.map(
    (id) => programme(id, -60, 120, "Evening news") + programme(id, 120, 240, "Late film"),
  );
  return `<?xml version="1.0"?><tv>${channels.join("")}${shown.join("")}</tv>`;
}

/** Presses a key until the first visible element that matches has the focus. */
async function reach(page: Page, selector: string, key: string): Promise<void> {
  for (let presses = 0; presses < MAX_PRESSES; presses++) {
    await page.keyboard.press(key);
    const target = page.locator(selector).locator("visible=true").first();
    if (await target.evaluate((each) => each === document.activeElement)) return;
  }
  assert.fail(`${MAX_PRESSES} times ${key} did not reach ${selector}`);
}

/** Waits until no visible element matches; resolves to their number. */
async function untilNone(page: Page, selector: string): Promise<number> {
  const found = page.locator(selector).locator("visible=true");
  for (let tries = 0; tries < 400 && (await found.count()) > 0; tries++) await page.waitForTimeout(50);
  return found.count();
}

/** Runs in the page: what axe reports; with a rule, only of this one. */
async function violations(rule: string | undefined): Promise<string[]> {
  interface Axe {
    readonly violations: readonly {
      readonly id: string;
      readonly nodes: readonly { readonly html: string }[];
    }[];
  }
  const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<Axe> } };
  const found = await axe.run({
    resultTypes: ["violations"],
    ...(rule !== undefined && { runOnly: { type: "rule", values: [rule] } }),
  });
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 200)}`);
}

/** Runs in the page: buttons that are smaller than 24 px in both directions (WCAG 2.5.8). */
function smallTargets(): string[] {
  return [
    ...document.querySelectorAll<HTMLElement>("button, select, input:not([type=checkbox]):not([type=range])"),
  ]
    .filter((each) => each.offsetParent !== null && !each.matches(".link"))
    .filter((each) => each.offsetHeight < 24 && each.offsetWidth < 24)
    .map((each) => each.outerHTML.slice(0, 120));
}

/** An address of this machine that is not loopback, so that the page is not a secure context; loopback if there is none. */
function lanAddress(): string {
  const all = Object.values(networkInterfaces()).flat();
  return all.find((each) => each?.family === "IPv4" && !each.internal)?.address ?? "127.0.0.1";
}
