import assert from "node:assert/strict";
import { type Browser, chromium, type Page } from "playwright-core";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startSeeder } from "../parts/plain-seeder.ts";
import { run } from "../parts/process.ts";
import { inRealTime } from "../parts/real-time.ts";
import { type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { LAUNCH, openPage, VIEWER } from "./chromium-launch.ts";
import { factsOf, figuresOf, plays, until } from "./viewer-parts.ts";

const { after, before, describe, test } = await testsThatNeed("chromium", "ffmpeg");

/** A busy machine plays late. */
const SLOW = { timeout: 240_000 };
const SECONDS = 40;

describe("viewers of a film in Chromium", { timeout: 600_000 }, () => {
  let scratch: TempFolder;
  let engine: EngineProcess;
  let browser: Browser;
  let infohash: string;
  const opened: Page[] = [];

  before(async () => {
    scratch = await tempFolder("film-viewers");
    engine = await startEngine({
      env: { SLUICE_VIEWER_SHARING: "on", SLUICE_UPLOAD_LIMIT: "150000", SLUICE_LIMIT_LAN: "on" },
    });
    browser = await chromium.launch(LAUNCH);
    infohash = await addFilm("film.mkv", "aac", SECONDS);
  }, SLOW);
  after(async () => {
    await browser?.close();
    await engine?.stop();
    await scratch?.remove();
  });

  /** Makes a film that the engine has, and no other peer. Returns its infohash. */
  const addFilm = async (name: string, audio: string, seconds: number): Promise<string> => {
    const film = scratch.file(name);
    await run("ffmpeg", [
      ...["-v", "error", "-f", "lavfi", "-i", `testsrc2=size=640x360:rate=25:duration=${seconds}`],
      ...["-f", "lavfi", "-i", `sine=frequency=440:duration=${seconds}`],
      ...["-c:v", "libx264", "-preset", "veryfast", "-g", "50", "-pix_fmt", "yuv420p", "-c:a", audio, film],
    ]);
    const torrent = await torrentOf(film, 64 * 1024, `${film}.torrent`);
    const seeder = await startSeeder(torrent, scratch.path);
    const magnet = `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seeder.port}`;
    const whole = await fetch(`${engine.url}/ace/getstream?magnet=${encodeURIComponent(magnet)}`);
    await whole.arrayBuffer();
    await seeder.stop();
    return torrent.infohash;
  };
  const open = async (
    script: () => void = watchSegments,
    prepare: (page: Page) => Promise<unknown> = async () => {},
    content = infohash,
  ): Promise<Page> => {
    const page = await openPage(browser, VIEWER);
    opened.push(page);
    await page.addInitScript(script);
    await prepare(page);
    await page.goto(`${engine.url}/watch/${content}`);
    return page;
  };
  const closeAll = async () => {
    for (const page of opened.splice(0)) await page.close();
  };

  test(
    "two pages exchange pieces, and make the segments that the engine makes",
    SLOW,
    inRealTime(async () => {
      await closeAll();
      const first = await open();
      await plays(first, 5);
      // It gets nothing over HTTP, and the upload of the engine is limited: the first has to send, too.
      const second = await open(watchSegments, (page) =>
        page.route("**/vod/**/*.ts", (route) => route.abort()),
      );
      await plays(second, 5);
      await until(second, ({ figures }) => figures!.fromPages > 60_000);
      await second.unroute("**/vod/**/*.ts");
      for (const page of [first, second])
        assert.deepEqual(await page.evaluate(wrongSegments, `../vod/${infohash}/0/`), []);
    }),
  );

  test(
    "of a page that sends wrong bytes nothing is played",
    SLOW,
    inRealTime(async () => {
      await closeAll();
      const poisoner = await open(() => {
        const { send } = RTCDataChannel.prototype;
        RTCDataChannel.prototype.send = function (this: RTCDataChannel, data: never) {
          const bytes = new Uint8Array(data as ArrayBuffer);
          // Long messages contain blocks.
          if (bytes.length > 1_000) bytes[bytes.length - 10]! ^= 0xff;
          (send as (data: unknown) => void).call(this, bytes);
        } as never;
      });
      await plays(poisoner, 5);
      const victim = await open();
      await plays(victim, 6);
      assert.deepEqual(await victim.evaluate(wrongSegments, `../vod/${infohash}/0/`), []);
    }),
  );

  test(
    "a film whose sound the browser cannot decode is played with converted sound",
    SLOW,
    inRealTime(async () => {
      await closeAll();
      const page = await open(undefined, undefined, await addFilm("ac3.mkv", "ac3", 12));
      await page.waitForFunction(() => {
        const video = document.querySelector("video") as HTMLVideoElement & {
          webkitAudioDecodedByteCount: number;
        };
        return video.currentTime > 3 && video.webkitAudioDecodedByteCount > 10_000;
      });
    }),
  );

  test(
    "a viewer that exchanges nothing gets the film from the engine",
    SLOW,
    inRealTime(async () => {
      await closeAll();
      const page = await open();
      await page.uncheck("#sharing");
      await plays(page, 3);
      const { fromPages, toPages, pages } = await figuresOf(page);
      assert.deepEqual([fromPages, toPages, pages], [0, 0, 0]);
      assert.equal((await factsOf(page)).isFallback, false);
    }),
  );
});

/** Collects the segments that hls.js gets from the worker, by their name. */
function watchSegments(): void {
  const segments: Record<string, ArrayBuffer> = {};
  const paths: Record<number, string> = {};
  const Plain = Worker;
  Object.assign(globalThis, { loadedSegments: segments });
  globalThis.Worker = class extends Plain {
    constructor(url: string | URL) {
      super(url);
      this.addEventListener("message", ({ data }) => {
        if (data.kind === "loaded") segments[paths[data.id]!] = data.bytes.slice(0);
      });
    }

    override postMessage(...[message, transfer]: [message: never, transfer: never]): void {
      const { kind, id, path } = message as { kind: string; id: number; path: string };
      if (kind === "load") paths[id] = path;
      super.postMessage(message, transfer);
    }
  } as typeof Worker;
}

/** Returns the names of segments that differ from those of the engine at `base`. */
async function wrongSegments(base: string): Promise<string[]> {
  const loaded = (globalThis as unknown as { loadedSegments: Record<string, ArrayBuffer> }).loadedSegments;
  const wrong: string[] = [];
  const names = Object.keys(loaded).filter((name) => !name.startsWith("index"));
  for (const name of names) {
    const right = new Uint8Array(await (await fetch(base + name)).arrayBuffer());
    const own = new Uint8Array(loaded[name]!);
    if (own.length !== right.length || own.some((byte, at) => byte !== right[at])) wrong.push(name);
  }
  return names.length > 0 ? wrong : ["none was loaded"];
}
