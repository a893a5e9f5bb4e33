import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type PlainSeeder, startSeeder } from "../parts/plain-seeder.ts";
import { run } from "../parts/process.ts";
import { type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { H264, lavfi, makeMedia } from "../remux/make-media.ts";
import { frameHashes } from "./judges.ts";

const { after, before, describe, test } = await testsThatNeed("ffmpeg");

const FILMS = ["film.mp4", "film.ts"];
/** ffmpeg jumps to this picture. From a transport stream it shows the pictures before the next key frame wrongly, so it is one. */
const FRAME = 20 * 25;

describe("players seek in the MPEG-TS of a film by Range requests", { timeout: 300_000 }, () => {
  let scratch: TempFolder;
  let seeder: PlainSeeder;
  let engine: EngineProcess;
  let magnet: string;
  const urls = new Map<string, string>();

  before(async () => {
    scratch = await tempFolder("seekable");
    await mkdir(scratch.file("films"));
    for (const name of FILMS) {
      const made = await makeMedia(name, [...lavfi(40), ...H264, "-c:a", "aac", "-shortest"]);
      await writeFile(scratch.file(`films/${name}`), await readFile(made));
    }
    const torrent = await torrentOf(scratch.file("films"), 64 * 1024, scratch.file("films.torrent"));
    seeder = await startSeeder(torrent, scratch.path);
    magnet = `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seeder.port}`;
    engine = await startEngine();
    for (const [index, name] of torrent.files.entries())
      urls.set(name, `${engine.url}/ace/getstream?${new URLSearchParams({ magnet, _idx: String(index) })}`);
  });
  after(async () => {
    await engine?.stop();
    await seeder?.stop();
    await scratch?.remove();
  });

  for (const name of FILMS) {
    test(`ffmpeg jumps to a picture in the middle of ${name}, and the length is known`, async () => {
      const url = urls.get(name)!;
      const out = scratch.file(`${name}.mkv`);
      const jump = ["-ss", String(FRAME / 25), "-i", url, "-map", "0:v", "-frames:v", "50", "-c:v", "ffv1"];
      // Frames before that one, which it decodes and drops, refer to missing ones: that is no error of the stream.
      await run("ffmpeg", ["-v", "fatal", "-y", ...jump, out]);
      const pictures = await frameHashes(scratch.file(`films/${name}`));
      assert.deepEqual(await frameHashes(out), pictures.slice(FRAME, FRAME + 50));
      const shown = await run("ffprobe", [
        "-v",
        "error",
        "-show_entries",
        "format=size",
        "-of",
        "csv=p=0",
        url,
      ]);
      const head = await fetch(url, { method: "HEAD" });
      assert.equal(shown.trim(), head.headers.get("content-length"));
    });

    test(`ffprobe finds the packets of ${name} after a jump where they are in the whole stream`, async () => {
      const url = urls.get(name)!;
      const whole = await packetsOf(url);
      const middle = await packetsOf(url, ["-read_intervals", "20%+5"]);
      assert.ok(middle.length > 100 && middle.length < whole.length / 2, `${middle.length} packets`);
      const from = whole.indexOf(middle[0]!);
      assert.ok(from > 0);
      assert.deepEqual(middle, whole.slice(from, from + middle.length));
    });

    test(`ranges of ${name}, in any order and at once, are the bytes of the whole stream`, async () => {
      const url = (await fetch(urls.get(name)!, { method: "HEAD" })).url;
      const whole = Buffer.from(await (await fetch(url)).arrayBuffer());
      const starts = Array.from({ length: 24 }, (_, i) => Math.floor((((i * 7) % 24) / 24) * whole.length));
      await Promise.all(
        starts.map(async (start) => {
          const end = Math.min(whole.length, start + 100_000);
          const part = await fetch(url, { headers: { range: `bytes=${start}-${end - 1}` } });
          assert.deepEqual(
            [part.status, part.headers.get("content-range")],
            [206, `bytes ${start}-${end - 1}/${whole.length}`],
          );
          assert.ok(whole.subarray(start, end).equals(Buffer.from(await part.arrayBuffer())));
        }),
      );
    });
  }
});

/** The video packets in the order of the stream: time, place, size and flags. */
async function packetsOf(url: string, args: readonly string[] = []): Promise<string[]> {
  const entries = ["-show_entries", "packet=pts,dts,pos,size,flags", "-of", "compact=p=0"];
  const said = await run("ffprobe", ["-v", "error", "-select_streams", "v", ...args, ...entries, url]);
  return said.split("\n").filter((line) => line !== "");
}
