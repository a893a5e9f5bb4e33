import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { type Browser, chromium, type Page } from "playwright-core";
import { pgsPicture, supOf } from "../media/encode-pgs.ts";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type PlainSeeder, startSeeder } from "../parts/plain-seeder.ts";
import { run } from "../parts/process.ts";
import { type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { makeCaptionedFilm } from "./captioned-film.ts";
import { LAUNCH, openPage } from "./chromium-launch.ts";

const { after, before, describe, test } = await testsThatNeed("chromium", "ffmpeg");

/** A busy machine plays late. */
const SLOW = { timeout: 100_000 };

/** If set, the folder for screenshots. */
const SHOTS = process.env.PAGE_SCREENSHOTS;

const H264 = "-c:v libx264 -preset veryfast -g 50 -pix_fmt yuv420p -c:a aac".split(" ");
/** MPEG-TS can carry neither of these. */
const VP9 = "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -b:v 300k -g 50 -c:a libopus".split(" ");

/** Audio that neither Chromium nor the engine decodes. */
const TRUEHD = [...H264.slice(0, -1), "truehd", "-strict", "-2"];

/** Creates 20 s of video and audio, at most a few MB. */
async function makeFilm(path: string, pattern: string, codecs: readonly string[] = H264): Promise<void> {
  await run("ffmpeg", [
    ...["-v", "error", "-f", "lavfi", "-i", `${pattern}=size=640x360:rate=25:duration=20`],
    ...["-f", "lavfi", "-i", "sine=frequency=440:duration=20"],
    ...[...codecs, path],
  ]);
}

describe("the start page in Chromium", { timeout: 600_000 }, () => {
  let scratch: TempFolder;
  let seeder: PlainSeeder;
  let engine: EngineProcess;
  let browser: Browser;
  let page: Page;
  let magnet: string;
  const scriptErrors: string[] = [];

  before(async () => {
    scratch = await tempFolder("page");
    const films = scratch.file("films");
    await mkdir(films);
    await makeFilm(`${films}/blue & <b>.mp4`, "testsrc2");
    await makeFilm(`${films}/green.mkv`, "smptehdbars");
    await makeFilm(`${films}/vp9.webm`, "testsrc", VP9);
    await makeFilm(`${films}/two languages.mkv`, "testsrc", [
      ...[...H264, "-map", "0", "-map", "1", "-map", "1"],
      ...["-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=ger"],
    ]);
    const words = "1\n00:00:00,000 --> 00:00:20,000\nBonjour\n";
    await writeFile(`${films}/two languages.de.signs.forced.srt`, words);
    await writeFile(`${films}/two languages.fr.forced.srt`, words);
    const picture = { width: 400, height: 100, x: 760, y: 900, pixels: Array<number>(40_000).fill(1) };
    const shown = pgsPicture({ ...picture, palette: [[1, 235, 128, 128, 255]] });
    await writeFile(`${films}/captions.de.sup`, supOf([[0.1, shown]]));
    await makeCaptionedFilm(`${films}/captions.mp4`, scratch.file("captions.h264"));
    // Its name is last, so that it is not the first film.
    await makeFilm(`${films}/x truehd.mkv`, "testsrc", TRUEHD);
    const torrent = await torrentOf(films, 64 * 1024, scratch.file("films.torrent"));
    seeder = await startSeeder(torrent, scratch.path);
    magnet = `magnet:?xt=urn:btih:${torrent.infohash}&dn=films&x.pe=127.0.0.1:${seeder.port}`;
    engine = await startEngine();
    browser = await chromium.launch(LAUNCH);
    page = await openPage(browser, {
      viewport: { width: 1100, height: 1000 },
      colorScheme: "dark",
      faults: scriptErrors,
    });
  }, SLOW);
  after(async () => {
    await browser?.close();
    await engine?.stop();
    await seeder?.stop();
    await scratch?.remove();
  });

  test("a click before the page is ready is not lost", SLOW, async () => {
    const script = "**/watch/watch.js*";
    const loaded = Promise.withResolvers<void>();
    await page.route(script, async (route) => {
      await loaded.promise;
      await route.continue();
    });
    await page.goto(`${engine.url}/`);
    const clicked = page.click("#guide");
    await Promise.race([clicked, page.waitForTimeout(300)]);
    loaded.resolve();
    await clicked;
    await page.getByPlaceholder("https://…/guide.xml.gz").waitFor();
    await page.unroute(script);
  });

  test("a text that is not a link shows an error", SLOW, async () => {
    await page.goto(`${engine.url}/`);
    await page.fill("#link", "no link at all");
    await page.click("#play");
    assert.match((await page.textContent("#problem")) ?? "", /neither a magnet link/);
  });

  test("a pasted magnet link plays, and shows figures and files", SLOW, async () => {
    await page.fill("#link", magnet);
    await page.click("#play");
    await plays(page, 1.5);
    assert.equal(await page.isHidden("#problem"), true);
    await page.waitForFunction(() => document.getElementById("status")?.textContent === "Playing");
    assert.match((await page.textContent("#downloaded")) ?? "", /^\d.* [kM]B$/);
    const names = await page.locator("#files option").allTextContents();
    assert.equal(names.length, 6);
    assert.ok(
      names.some((name) => /^blue & .b.\.mp4 \([\d.]+ [kM]B\)$/.test(name)),
      names.join(),
    );
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/playing.png` });
  });

  test("the control room shows the diagnosis and the peers of the current stream", SLOW, async () => {
    await page.click("#places a[data-place=control]");
    await page.click("#control a[href='#/control/health']");
    await page.locator(".health-rows li").first().waitFor();
    // biome-ignore lint/performance/useDomNodeTextContent: words of neighbouring elements must not join
    const text = (await page.locator("#control").innerText()).replaceAll("\n", " ");
    assert.match(text, /Peers 1 peer is connected/);
    assert.match(text, /Disk Writing and syncing .* took/);
    assert.match(text, /films .*\/s XX 0\.0\.0\.1/);
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/health.png` });
    await page.click("#places a[data-place=watch]");
    await page.locator("#watch").waitFor();
  });

  test("another file of the same content plays when it is chosen", SLOW, async () => {
    await chooseFile(page, "green.mkv");
    await plays(page, 1.5);
  });

  test("seeking moves to the requested position", SLOW, async () => {
    await seek(page, 15);
    await plays(page, 16);
  });

  test("stop ends the session, and the link plays again from the list of recent links", SLOW, async () => {
    await page.click("#stop");
    assert.equal(await page.isHidden("#stage"), true);
    await page.reload();
    const entry = page.locator("#recent-list button");
    await entry.first().waitFor();
    assert.deepEqual(await entry.allTextContents(), ["films"]);
    await entry.first().click();
    await plays(page, 1);
  });

  test("playback continues on another screen at the same position", SLOW, async () => {
    const tv = await openPage(browser, { viewport: { width: 1100, height: 900 } });
    try {
      await tv.goto(`${engine.url}/`);
      await tv.click("#receive");
      await tv.locator("#receiver:not([hidden])").waitFor();
      if (SHOTS !== undefined) await tv.screenshot({ path: `${SHOTS}/receive.png` });
      const code = (await tv.textContent("#receiver-code")) ?? "";
      await seek(page, 8);
      await plays(page, 8.5);
      await page.click("#send");
      await page.fill("#send-code", code === "0000 0000" ? "0000 0001" : "0000 0000");
      await page.press("#send-code", "Enter");
      await page.waitForFunction(() => /No screen/.test(document.getElementById("toast")?.textContent ?? ""));
      await page.fill("#send-code", code);
      await page.press("#send-code", "Enter");
      await plays(tv, 8.6);
      assert.equal(await page.evaluate(() => document.querySelector("video")?.paused), true);
      assert.equal(await tv.isHidden("#receiver"), true);
    } finally {
      await tv.close();
    }
  });

  test("another audio language continues at the same position", SLOW, async () => {
    await chooseFile(page, "two languages.mkv");
    await plays(page, 0.5);
    assert.equal(await page.isHidden("#copied"), true);
    assert.deepEqual(await page.locator("#audio option").allTextContents(), ["English", "German"]);
    assert.equal(await page.locator("#subtitles option:checked").textContent(), "Off");
    await seek(page, 10);
    const asked = page.waitForRequest((request) => /\.a2\.ts/.test(request.url()));
    await page.selectOption("#audio", { label: "German" });
    await asked;
    await plays(page, 11);
    assert.equal(await page.locator("#audio option:checked").textContent(), "German");
    await page
      .locator("#subtitles option:checked", { hasText: "German – signs forced" })
      .waitFor({ state: "attached" });
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/language.png` });
    // The next film starts in the chosen language.
    const next = page.waitForRequest((request) => request.url().includes("preferred_audio_language=de"));
    await chooseFile(page, "green.mkv");
    await next;
    await plays(page, 0.5);
    await chooseFile(page, "two languages.mkv");
    await plays(page, 0.5);
    assert.equal(await page.locator("#audio option:checked").textContent(), "German");
  });

  test("subtitles of a file beside the film are shown, and again the next time", SLOW, async () => {
    const shown = () =>
      page.waitForFunction(() =>
        [...document.querySelectorAll("track")].some(
          ({ track }) => track.mode === "showing" && (track.activeCues?.length ?? 0) > 0,
        ),
      );
    const names = () => page.locator("#subtitles option").allTextContents();
    const listed = ["Off", "German – signs forced", "French – forced", "Open a file…"];
    assert.deepEqual(await names(), listed);
    // They were chosen automatically with German audio.
    assert.equal(await page.locator("#subtitles option:checked").textContent(), "German – signs forced");
    await page.selectOption("#subtitles", { label: "French – forced" });
    await shown();
    await playSlowly(page);
    // The cue covers the first 20 s. A delay moves it.
    const start = (seconds: number) =>
      page.waitForFunction(
        (at) =>
          [...document.querySelectorAll("track")].some(
            ({ track }) =>
              track.mode === "showing" && Math.abs((track.cues?.[0]?.startTime ?? 99) - at) < 0.2,
          ),
        seconds,
      );
    // Its time follows that of the picture, which may begin a few frames after 0.
    await start(0);
    await page.click("#subtitles-later");
    await page.click("#subtitles-later");
    assert.equal(await page.textContent("#subtitle-delay"), "+1.0 s");
    await start(1);
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/subtitles.png` });
    // A cue that is loaded later is moved, too.
    await page.evaluate(() => {
      const shown = [...document.querySelectorAll("track")].find(({ track }) => track.mode === "showing");
      shown?.track.addCue(new VTTCue(18, 19, "later"));
    });
    await page.waitForFunction(() =>
      [...document.querySelectorAll("track")].some(({ track }) => track.cues?.[1]?.startTime === 19),
    );
    for (let i = 0; i < 3; i++) await page.click("#subtitles-earlier");
    assert.equal(await page.textContent("#subtitle-delay"), "−0.5 s");
    await start(-0.5);
    await chooseFile(page, "green.mkv");
    await page.locator("#subtitles option", { hasText: "French" }).waitFor({ state: "detached" });
    await chooseFile(page, "two languages.mkv");
    await shown();
    assert.equal(await page.textContent("#subtitle-delay"), "0.0 s");
    await start(0);
    assert.equal(await page.locator("#subtitles option:checked").textContent(), "French – forced");
    await page.selectOption("#subtitles", { label: "Off" });
    await page.locator("track").first().waitFor({ state: "attached" });
    await page.waitForFunction(() =>
      [...document.querySelectorAll("track")].every(({ track }) => track.mode !== "showing"),
    );
    await page.locator("#subtitle-delay-group").waitFor({ state: "hidden" });
  });

  test("a subtitle file of the user is shown beside the film, and removed with it", SLOW, async () => {
    await playSlowly(page);
    const own = scratch.file("own & <b>.ass");
    await writeFile(own, "[Events]\nDialogue: 0,0:00:00.00,0:00:20.00,Default,,0,0,0,,{\\b1}Own\\Nwords");
    const chooser = page.waitForEvent("filechooser");
    await page.selectOption("#subtitles", { label: "Open a file…" });
    await (await chooser).setFiles(own);
    await page.waitForFunction(() =>
      [...(document.querySelector("video")?.textTracks ?? [])].some(
        ({ mode, activeCues }) =>
          mode === "showing" && (activeCues?.[0] as VTTCue | undefined)?.text === "<b>Own\nwords</b>",
      ),
    );
    assert.equal(await page.locator("#subtitles option:checked").textContent(), "own & <b>.ass");
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/own-subtitles.png` });
    const drop = (name: string, text: string) =>
      page.evaluate(
        ([fileName, content]) => {
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File([content], fileName));
          window.dispatchEvent(new DragEvent("drop", { dataTransfer }));
        },
        [name, text] as const,
      );
    await drop("dropped.srt", "1\n00:00:00,000 --> 00:00:20,000\nDropped\n");
    await page
      .locator("#subtitles option:checked", { hasText: "dropped.srt" })
      .waitFor({ state: "attached" });
    assert.deepEqual(await page.locator("#subtitles option").allTextContents(), [
      "Off",
      "German – signs forced",
      "French – forced",
      "dropped.srt",
      "Open a file…",
    ]);
    await drop("bad.vtt", "nothing");
    await page.locator("#problem", { hasText: "no subtitles" }).waitFor();
    await page.selectOption("#subtitles", { label: "Off" });
    await chooseFile(page, "green.mkv");
    await page.locator("#subtitles option", { hasText: "dropped" }).waitFor({ state: "detached" });
  });

  test("captions in the picture can be shown", SLOW, async () => {
    await chooseFile(page, "captions.mp4");
    await page.locator("#subtitles option", { hasText: "English" }).waitFor({ state: "attached" });
    await page.selectOption("#subtitles", { label: "English" });
    await page.waitForFunction(() =>
      [...(document.querySelector("video")?.textTracks ?? [])].some(
        ({ mode, activeCues }) =>
          mode === "showing" && /^CAPTION \d+$/.test((activeCues?.[0] as VTTCue | undefined)?.text ?? ""),
      ),
    );
    await page.selectOption("#subtitles", { label: "Off" });
  });

  test("subtitles that are pictures are drawn over the video", SLOW, async () => {
    await page.selectOption("#subtitles", { label: "German" });
    const opacityAt = (x: number, y: number) =>
      page.waitForFunction(
        ([across, down]) => {
          const canvas = document.querySelector<HTMLCanvasElement>("#pictures")!;
          const place = [canvas.width * across!, canvas.height * down!] as const;
          if (canvas.hidden || canvas.width === 0) return undefined;
          return `opacity ${canvas.getContext("2d")!.getImageData(...place, 1, 1).data[3]}`;
        },
        [x / 1920, y / 1080],
      );
    await page.waitForFunction(() => {
      const canvas = document.querySelector<HTMLCanvasElement>("#pictures")!;
      const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width || 1, canvas.height || 1);
      return data.some((value) => value > 0);
    });
    assert.equal(await (await opacityAt(960, 950)).jsonValue(), "opacity 255");
    assert.equal(await (await opacityAt(960, 300)).jsonValue(), "opacity 0");
    assert.equal(await page.isVisible("#subtitle-delay-group"), true);
    await page.selectOption("#subtitles", { label: "Off" });
    assert.equal(await page.isHidden("#pictures"), true);
  });

  test("a film whose sound cannot be decoded plays, and the page says so", SLOW, async () => {
    await chooseFile(page, "x truehd.mkv");
    await plays(page, 0.5);
    assert.match((await page.textContent("#silent")) ?? "", /TrueHD/);
    assert.equal(await page.isVisible("#silent"), true);
  });

  test("without a clipboard, the link is shown and selected for copying by hand", SLOW, async () => {
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
    await page.click("#copy-ts");
    const link = await page.inputValue("#copied-link");
    assert.ok(link.startsWith(`${engine.url}/ace/getstream?`), link);
    assert.match(link, /container=raw/);
    assert.equal(await page.evaluate(() => getSelection()?.toString()), link);
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/copied.png` });
  });

  test("codecs that MPEG-TS cannot carry play as fragmented MP4", SLOW, async () => {
    await chooseFile(page, "vp9.webm");
    await plays(page, 1);
  });

  test("a chosen transport file plays", SLOW, async () => {
    await page.setInputFiles("#torrent-file", scratch.file("films.torrent"));
    await page.waitForFunction(() => (document.querySelector("video")?.currentTime ?? 9) < 0.5);
    await plays(page, 1);
  });

  test("an error of the engine is shown: an invalid transport file", SLOW, async () => {
    await writeFile(scratch.file("broken.torrent"), "d8:announce");
    await page.setInputFiles("#torrent-file", scratch.file("broken.torrent"));
    await page.locator("#failure:not([hidden])").waitFor();
    assert.notEqual(await page.textContent("#failure-text"), "");
    assert.deepEqual(await page.locator("#failure-steps > *").allTextContents(), [
      "Try again",
      "Check the engine",
      "Close",
    ]);
    await page.emulateMedia({ colorScheme: "light" });
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/error.png` });
  });

  test("the page fits the width of a phone", SLOW, async () => {
    await page.locator("#failure-steps button", { hasText: "Close" }).click();
    assert.equal(await page.isHidden("#stage"), true);
    await page.setViewportSize({ width: 360, height: 740 });
    await page.click("#recent-list button");
    await plays(page, 1);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 360));
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/phone.png`, fullPage: true });
  });

  test("no script failed, and nothing violated the content security policy", () => {
    assert.deepEqual(scriptErrors, []);
  });
});

/** Chooses a file by its name, and waits until it is loaded. */
async function chooseFile(page: Page, name: string): Promise<void> {
  const option = page.locator("#files option").filter({ hasText: name });
  await page.selectOption("#files", (await option.getAttribute("value")) ?? "");
  await page.waitForFunction(() => (document.querySelector("video")?.currentTime ?? 9) < 0.5);
}

/** Plays slowly, so that a slow machine does not reach the end, after which the next film plays. */
async function playSlowly(page: Page): Promise<void> {
  await page.evaluate(() => {
    const video = document.querySelector("video");
    if (video) video.playbackRate = 0.1;
  });
}

async function seek(page: Page, seconds: number): Promise<void> {
  await page.evaluate((to) => {
    const video = document.querySelector("video");
    if (video) video.currentTime = to;
  }, seconds);
}

/** Waits until the video plays past the position `seconds`. */
async function plays(page: Page, seconds: number): Promise<void> {
  try {
    await page.waitForFunction(
      (min) => {
        const video = document.querySelector("video");
        return video !== null && video.currentTime > min && video.videoWidth > 0 && video.error === null;
      },
      seconds,
      { timeout: 75_000 },
    );
  } catch (error) {
    const shown = await page.locator("main:visible").textContent();
    throw new Error(`the video did not play past ${seconds} s; the page shows:\n${shown}`, { cause: error });
  }
}
