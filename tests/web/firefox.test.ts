import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { type BroadcastProcess, startBroadcast } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type PlainSeeder, startSeeder } from "../parts/plain-seeder.ts";
import { run } from "../parts/process.ts";
import { inRealTime } from "../parts/real-time.ts";
import { type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { Firefox } from "./firefox.ts";

const { after, before, describe, test } = await testsThatNeed("firefox", "ffmpeg");

/** A busy machine is late. */
const SLOW = { timeout: 150_000 };
/** If set, the folder for screenshots. */
const SHOTS = process.env.PAGE_SCREENSHOTS;
/** The key Enter (WebDriver, "Keyboard actions"). */
const ENTER = "\uE007";

describe("the app in Firefox", { timeout: 600_000 }, () => {
  let scratch: TempFolder;
  let seeder: PlainSeeder;
  let source: BroadcastProcess;
  let engine: EngineProcess;
  let firefox: Firefox;
  let magnet: string;

  before(async () => {
    scratch = await tempFolder("firefox");
    const films = scratch.file("films");
    await mkdir(films);
    await run("ffmpeg", [
      ...["-v", "error", "-f", "lavfi", "-i", "testsrc=size=320x180:rate=25:duration=40"],
      ...["-f", "lavfi", "-i", "sine=frequency=440:duration=40"],
      ..."-c:v libx264 -preset veryfast -g 50 -pix_fmt yuv420p -c:a aac".split(" "),
      `${films}/film.mp4`,
    ]);
    const torrent = await torrentOf(films, 64 * 1024, scratch.file("films.torrent"));
    seeder = await startSeeder(torrent, scratch.path);
    magnet = `magnet:?xt=urn:btih:${torrent.infohash}&dn=films&x.pe=127.0.0.1:${seeder.port}`;
    source = await startBroadcast("test-pattern");
    engine = await startEngine();
    firefox = await Firefox.start(1280, 800);
  }, SLOW);
  after(async () => {
    await firefox?.close();
    await engine?.stop();
    await source?.stop();
    await seeder?.stop();
    await scratch?.remove();
  });

  async function shot(name: string): Promise<void> {
    if (SHOTS !== undefined) await writeFile(`${SHOTS}/firefox-${name}.png`, await firefox.screenshot());
  }

  /** Plays a link with the keyboard; resolves when pictures were decoded and the sound, if any, exists. */
  async function plays(link: string): Promise<void> {
    await firefox.open(`${engine.url}/`);
    await firefox.until(`!document.querySelector("#watch").inert`);
    await firefox.click("#link");
    await firefox.type(link + ENTER);
    await firefox.until(`document.querySelector("video").getVideoPlaybackQuality().totalVideoFrames > 25`);
    await firefox.until(`document.querySelector("video").mozHasAudio`);
    await firefox.until(`document.querySelector("video").currentTime > 1`);
    await firefox.until(`document.querySelector("#status").textContent === "Playing"`);
  }

  test(
    "a film plays with picture and sound, and stops",
    SLOW,
    inRealTime(async () => {
      await plays(magnet);
      await shot("film");
      await firefox.click("#stop");
      await firefox.until(`document.querySelector("#stage").hidden`);
    }),
  );

  test(
    "a live stream plays with picture and sound, and is marked as live",
    SLOW,
    inRealTime(async () => {
      await plays(`sluice:?magnet=${encodeURIComponent(source.magnet)}`);
      await firefox.until(`!document.querySelector("#live").hidden`);
      await shot("live");
      await firefox.click("#stop");
    }),
  );

  test("an imported list is shown, the TV guide opens over it and closes with Escape", SLOW, async () => {
    await call("playlist_add_item", { title: "News", magnet });
    await firefox.open(`${engine.url}/`);
    await firefox.until(`document.querySelector(".item-title")?.textContent === "News"`);
    await firefox.click("#guide-grid");
    await firefox.until(`document.querySelector("dialog.guide-grid .grid-name bdi")?.textContent === "News"`);
    await shot("guide");
    await firefox.type("\uE00C");
    await firefox.until(`document.querySelector("dialog.guide-grid") === null`);
  });

  test("a setting is changed, and is there after a reload", SLOW, async () => {
    await firefox.open(`${engine.url}/#/control/settings/download-limit`);
    await firefox.click("#setting-download-limit");
    await firefox.type("3MB");
    await firefox.click(".settings-space + button");
    await firefox.until(`/^Saved/.test(document.querySelector(".settings-state").textContent)`);
    await firefox.reload();
    await firefox.until(`document.querySelector("#setting-download-limit")?.value === "3MB"`);
    await shot("settings");
  });

  test("no script failed, and nothing violated the content security policy", () => {
    assert.deepEqual(firefox.faults, []);
  });

  async function call(method: string, parameters: Record<string, string>): Promise<void> {
    const ask = async (query: Record<string, string>) => {
      const asked = new URLSearchParams({ api_version: "3", ...query });
      const answer = await (await fetch(`${engine.url}/server/api?${asked}`)).json();
      const { result, error } = answer as { result: { token: string }; error: unknown };
      assert.equal(error, null);
      return result;
    };
    const { token } = await ask({ method: "get_api_access_token" });
    await ask({ method, token, ...parameters });
  }
});
