import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { type Browser, chromium } from "playwright-core";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { inRealTime } from "../parts/real-time.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { makeMedia } from "../remux/make-media.ts";
import { LAUNCH, openPage } from "../web/chromium-launch.ts";
import { decodesSilently, frameHashes } from "./judges.ts";
import { type MediaServer, slidingManifest, startMediaServer } from "./media-server.ts";
import { chirp, JUDGED_RATE, match, soundOf } from "./sound-judge.ts";

const { after, before, describe, test } = await testsThatNeed("ffmpeg");
const { test: chromiumTest } = await testsThatNeed("ffmpeg", "chromium");

const SECONDS = 24;
const PICTURE =
  "-c:v libx264 -preset ultrafast -bf 2 -g 50 -keyint_min 50 -sc_threshold 0 -pix_fmt yuv420p".split(" ");
const FRAGMENTED = "-f hls -hls_time 4 -hls_playlist_type vod -hls_segment_type fmp4".split(" ");
const CODECS = { ac3: "ac3 -b:a 192k", eac3: "eac3 -b:a 192k", dts: "dca -strict -2" } as const;

describe("HLS of other servers in fragmented MP4 with sound that browsers do not play", {
  timeout: 600_000,
}, () => {
  let scratch: TempFolder;
  let server: MediaServer;
  let engine: EngineProcess;
  let source: string;
  const file = (name: string) => scratch.file(name);
  const played = (name: string, query: Record<string, string> = {}) =>
    `${engine.url}/ace/manifest.m3u8?${new URLSearchParams({ url: `${server.url}/${name}`, transcode_audio: "1", ...query })}`;

  before(async () => {
    scratch = await tempFolder("url-fragment-sound");
    await mkdir(scratch.path, { recursive: true });
    source = await makeMedia("fragment-sound.mkv", [
      ...["-f", "lavfi", "-i", `testsrc2=size=320x180:rate=25:duration=${SECONDS}`],
      ...[...chirp(SECONDS), "-ac", "2", ...PICTURE, "-c:a", "pcm_s16le"],
    ]);
    for (const [name, codec] of Object.entries(CODECS)) {
      const audio = ["-c:a", ...codec.split(" ")];
      const init = (part: string) => ["-hls_fmp4_init_filename", `${name}-${part}.mp4`];
      const make = (args: string[], part: string) =>
        run("ffmpeg", [
          "-v",
          "error",
          "-i",
          source,
          ...args,
          ...FRAGMENTED,
          ...init(part),
          file(`${name}-${part}.m3u8`),
        ]);
      await make(["-c:v", "copy", ...audio], "both");
      await make(["-c:v", "copy", "-an"], "picture");
      await make(["-vn", ...audio], "sound");
      const codecs = { ac3: "ac-3", eac3: "ec-3", dts: "dtsc" }[name];
      await writeFile(
        file(`${name}-split.m3u8`),
        [
          "#EXTM3U",
          `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",LANGUAGE="en",DEFAULT=YES,URI="${name}-sound.m3u8"`,
          `#EXT-X-STREAM-INF:BANDWIDTH=900000,CODECS="avc1.42c00d,${codecs}",AUDIO="a"`,
          `${name}-picture.m3u8`,
          "",
        ].join("\n"),
      );
    }
    const window = slidingManifest(await readFile(file("ac3-both.m3u8"), "utf8"), 4);
    const whole = await readFile(file("ac3-both.m3u8"), "utf8");
    server = await startMediaServer(scratch.path, {
      "/live.m3u8": (_, to) => void to.end(window()),
      "/timed.m3u8": (_, to) => void to.end(timed()),
    });
    let began: number | undefined;
    /** A live manifest that grows with the clock. */
    const timed = () => {
      began ??= performance.now();
      const parts = whole.split("#EXTINF").slice(0, 1 + 3 + Math.floor((performance.now() - began) / 4000));
      return parts.join("#EXTINF").replace(/#EXT-X-(PLAYLIST-TYPE|ENDLIST).*\n/g, "");
    };
    engine = await startEngine();
  });
  after(async () => {
    await engine?.stop();
    await server?.close();
    await scratch?.remove();
  });

  for (const name of ["ac3-both", "eac3-both", "dts-both", "ac3-split", "eac3-split", "dts-split"]) {
    test(`${name}: the picture is unchanged, and AAC continues without gaps and fits it within 20 ms`, async () => {
      const url = played(`${name}.m3u8`);
      const master = await (await fetch(url)).text();
      const variants = master.split("\n").filter((line) => line.startsWith("#EXT-X-STREAM-INF"));
      assert.match(variants[0]!, /CODECS="avc1\.[^,]*,mp4a\.40\.2"[^\n]*AUDIO="requested"/);
      assert.match(variants[1]!, /CODECS="avc1\.[^,]*,(ac-3|ec-3|dts[a-z])"[^\n]*AUDIO="original"/);
      assert.deepEqual(await frameHashes(url), await frameHashes(source));
      await decodesSilently(url);
      const sounds = [...master.matchAll(/URI="([^"]*audio=\d+)"/g)].map(([, uri]) => uri!);
      const wanted = await soundOf(source);
      const offsets: number[] = [];
      for (const uri of sounds) {
        const { samples, seconds } = await soundOf(uri);
        const part = samples.subarray(JUDGED_RATE, (SECONDS - 2) * JUDGED_RATE);
        // The stream starts later than its source.
        const at = seconds + 1 - ((await startSeconds(url)) - (await startSeconds(source)));
        const { correlation, offsetSeconds } = match(wanted.samples, part, Math.round(at * JUDGED_RATE));
        assert.ok(correlation > 0.98, `${uri}: ${correlation}`);
        offsets.push(offsetSeconds);
      }
      const [converted, original] = offsets;
      assert.ok(Math.abs(converted! - original!) <= 0.002, `${converted} s, ${original} s`);
      // ffmpeg does not align streams that it writes apart.
      if (name.endsWith("both")) assert.ok(Math.abs(converted!) <= 0.02, `${converted} s`);
    });
  }

  test("segments are the same bytes in any order, for every client", async () => {
    const url = played("ac3-split.m3u8");
    const list = await audioSegments(url);
    const backwards: Record<string, string> = {};
    for (const uri of list.toReversed()) backwards[uri] = await hashOf(uri);
    const other = await startEngine();
    try {
      const again = await audioSegments(url.replace(engine.url, other.url));
      for (const [i, uri] of again.entries()) assert.equal(await hashOf(uri), backwards[list[i]!], uri);
    } finally {
      await other.stop();
    }
  });

  test("live: the converted sound of a sliding window has no gap", async () => {
    const url = played("live.m3u8", { pid: "live" });
    const master = await (await fetch(url)).text();
    const [, sound] = /URI="([^"]*audio=1)"/.exec(master)!;
    const { samples, seconds } = await soundOf(sound!);
    const { samples: wanted } = await soundOf(source);
    const at = Math.round((seconds + 1) * JUDGED_RATE);
    const part = samples.subarray(JUDGED_RATE, 7 * JUDGED_RATE);
    const { correlation } = match(wanted, part, at);
    assert.ok(correlation > 0.98, `${correlation}`);
  });

  chromiumTest(
    "live: the page plays the sound of a stream, and names nothing as silent",
    { timeout: 200_000 },
    inRealTime(async () => {
      const browser: Browser = await chromium.launch(LAUNCH);
      try {
        const page = await openPage(browser);
        await page.goto(`${engine.url}/`);
        await page.fill("#link", `${server.url}/timed.m3u8`);
        await page.click("#play");
        await page.waitForFunction(() => {
          const video = document.querySelector("video") as
            | (HTMLVideoElement & { webkitAudioDecodedByteCount: number })
            | null;
          return video && video.played.length > 0 && video.webkitAudioDecodedByteCount > 60_000;
        });
        assert.equal(await page.isVisible("#silent"), false);
      } finally {
        await browser.close();
      }
    }),
  );

  chromiumTest(
    "the page plays them with sound, and after a seek",
    { timeout: 200_000 },
    inRealTime(async () => {
      const browser: Browser = await chromium.launch(LAUNCH);
      try {
        for (const name of ["ac3-both", "eac3-split", "dts-both"]) {
          const page = await openPage(browser);
          await page.goto(`${engine.url}/`);
          await page.fill("#link", `${server.url}/${name}.m3u8`);
          await page.click("#play");
          const hears = (from: number) =>
            page.waitForFunction((since) => {
              const video = document.querySelector("video") as
                | (HTMLVideoElement & { webkitAudioDecodedByteCount: number })
                | null;
              return video && video.currentTime > since && video.webkitAudioDecodedByteCount > 20_000;
            }, from);
          await hears(2);
          await page.evaluate(() => {
            document.querySelector("video")!.currentTime = 15;
          });
          await hears(17);
          const ends = await page.evaluate(() => {
            const { buffered } = document.querySelector("video")!;
            return Array.from({ length: buffered.length }, (_, i) => [buffered.start(i), buffered.end(i)]);
          });
          assert.ok(ends.length <= 2, JSON.stringify(ends));
          await page.close();
        }
      } finally {
        await browser.close();
      }
    }),
  );
});

async function audioSegments(url: string): Promise<string[]> {
  const master = await (await fetch(url)).text();
  const [, sound] = /URI="([^"]*audio=1)"/.exec(master)!;
  const manifest = await (await fetch(sound!)).text();
  return manifest.split("\n").filter((line) => /\.m4s$/.test(line));
}

async function hashOf(uri: string): Promise<string> {
  const bytes = await (await fetch(uri)).arrayBuffer();
  return Buffer.from(await crypto.subtle.digest("SHA-256", bytes)).toString("hex");
}

/** The presentation time of the first picture. */
async function startSeconds(url: string): Promise<number> {
  const probe = "-select_streams v:0 -read_intervals %+#1 -show_entries packet=pts_time -of csv=p=0".split(
    " ",
  );
  return Number.parseFloat(await run("ffprobe", ["-v", "error", ...probe, url]));
}
