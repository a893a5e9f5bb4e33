import { mkdir } from "node:fs/promises";
import { chromium, type Page } from "playwright-core";
import { pgsClear, pgsPicture, supOf } from "../media/encode-pgs.ts";
import { startEngine } from "../parts/engine.ts";
import { startBroadcast } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startSeeder } from "../parts/plain-seeder.ts";
import { run } from "../parts/process.ts";
import { inRealTime } from "../parts/real-time.ts";
import { tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { scratchFile } from "../remux/make-media.ts";
import { LAUNCH, openPage } from "./chromium-launch.ts";

const { describe, test } = await testsThatNeed("chromium", "ffmpeg");

const SECONDS = 90;
/** If set, the folder for screenshots. */
const SHOTS = process.env.PAGE_SCREENSHOTS;

/** A transport stream with a white bar as DVB subtitle, shown for two of every three seconds. */
async function makeFilm(path: string): Promise<void> {
  const pixels = Array<number>(400 * 60).fill(1);
  const shown = pgsPicture({
    ...{ width: 400, height: 60, x: 760, y: 900, pixels },
    palette: [[1, 235, 128, 128, 255]],
  });
  const sets = Array.from({ length: SECONDS / 3 }, (_, i) => [
    [3 * i + 0.2, shown] as const,
    [3 * i + 2.2, pgsClear()] as const,
  ]);
  const sup = await scratchFile(supOf(sets.flat()), "sup");
  const picture = ["-f", "lavfi", "-i", `testsrc2=size=640x360:rate=25:duration=${SECONDS}`];
  const sound = ["-f", "lavfi", "-i", `sine=frequency=440:duration=${SECONDS}`];
  const inputs = [
    ...picture,
    ...sound,
    "-fix_sub_duration",
    "-i",
    sup,
    "-map",
    "0",
    "-map",
    "1",
    "-map",
    "2",
  ];
  const video = "-c:v libx264 -preset ultrafast -g 50 -b:v 800k -pix_fmt yuv420p".split(" ");
  const codecs = [...video, "-c:a", "aac", "-c:s", "dvbsub", "-metadata:s:s:0", "language=ger"];
  await run("ffmpeg", ["-v", "error", "-y", "-copyts", ...inputs, ...codecs, path]);
}

/** Chooses the DVB subtitles and waits until they are drawn, and until they are hidden. */
async function seesPictures(page: Page, shot: string): Promise<void> {
  const option = page.locator("#subtitles option", { hasText: /German/ });
  await option.waitFor({ state: "attached" });
  await page.selectOption("#subtitles", (await option.getAttribute("value"))!);
  const isLit = (wanted: boolean) =>
    page.waitForFunction((lit) => {
      const canvas = document.querySelector<HTMLCanvasElement>("#pictures")!;
      if (canvas.width === 0) return false;
      const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
      return data.filter((value, i) => i % 4 === 3 && value > 200).length > 500 === lit;
    }, wanted);
  await isLit(true);
  if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${shot}.png` });
  await isLit(false);
  await isLit(true);
}

describe("DVB subtitles of transport streams in Chromium", { timeout: 300_000 }, () => {
  test(
    "the page draws those of a file and of a live stream",
    { timeout: 240_000 },
    inRealTime(async () => {
      const scratch = await tempFolder("dvb-page");
      const films = scratch.file("films");
      await mkdir(films, { recursive: true });
      await makeFilm(`${films}/dvb.ts`);
      const torrent = await torrentOf(films, 64 * 1024, scratch.file("films.torrent"));
      const seeder = await startSeeder(torrent, scratch.path);
      const engine = await startEngine();
      const source = await startBroadcast({ place: `${films}/dvb.ts` });
      const browser = await chromium.launch(LAUNCH);
      try {
        const links = {
          live: `sluice:?magnet=${encodeURIComponent(source.magnet)}`,
          file: `magnet:?xt=urn:btih:${torrent.infohash}&dn=films&x.pe=127.0.0.1:${seeder.port}`,
        };
        for (const [name, link] of Object.entries(links)) {
          const page = await openPage(browser, { viewport: { width: 1100, height: 1000 } });
          await page.goto(`${engine.url}/`);
          await page.fill("#link", link);
          await page.click("#play");
          await seesPictures(page, `dvb-${name}`);
          await page.close();
        }
      } finally {
        await browser.close();
        await source.stop();
        await engine.stop();
        await seeder.stop();
        await scratch.remove();
      }
    }),
  );
});
