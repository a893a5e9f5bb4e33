import assert from "node:assert/strict";
import { test } from "node:test";
import { openTsFile } from "../../src/remux/ts-file.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { CountedFile } from "./file-access.ts";
import { scratchFile } from "./make-media.ts";
import { type DecodedSubtitle, decodedSubtitles } from "./probe.ts";
import { BASE_TICKS, CUES, teletextFilm } from "./teletext-film.ts";

const { test: ffmpegTest } = await testsThatNeed("ffmpeg");

async function cuesOf(bytes: Uint8Array, track: number) {
  const media = await openTsFile(new CountedFile(bytes));
  const cues = [];
  for (let index = 0; index < media.segments.length; index++) cues.push(...(await media.cues(track, index)));
  return { media, cues };
}

test("openTsFile lists the teletext pages of the programme and converts them to cues", async () => {
  const bytes = teletextFilm();
  const { media, cues } = await cuesOf(bytes, 2);
  assert.deepEqual(
    media.tracks.slice(2).map(({ codec, language, title, isOpaque }) => [codec, language, title, isOpaque]),
    [
      ["dvb_teletext", "eng", undefined, undefined],
      ["dvb_teletext", "ger", "Hearing impaired", undefined],
    ],
  );
  assert.ok(media.segments.length >= 4, "the cues lie in several segments");
  const offset = (BASE_TICKS - media.zeroTicks) / 90_000;
  assert.deepEqual(
    cues.map(({ startSeconds, endSeconds, text }) => [
      Math.round(1000 * (startSeconds - offset)) / 1000,
      Math.round(1000 * (endSeconds - offset)) / 1000,
      text,
    ]),
    CUES.map((cue) => [...cue]),
  );
  const german = (await cuesOf(bytes, 3)).cues;
  assert.deepEqual(
    german.map(({ text }) => text),
    ["FÜr"],
  );
});

test("openTsFile refuses cues of other tracks", async () => {
  const media = await openTsFile(new CountedFile(teletextFilm()));
  await assert.rejects(media.cues(0, 0), /not a text subtitle track/);
  await assert.rejects(media.cues(2, 99), /segment 99 does not exist/);
});

ffmpegTest(
  "openTsFile returns the teletext that ffmpeg decodes, within 0.1 s",
  { timeout: 60_000 },
  async () => {
    const bytes = teletextFilm();
    const path = await scratchFile(bytes, "ts");
    // Without the first option, ffmpeg replaces the times of teletext by those of the clock.
    const args = "-fix_teletext_pts 0 -copyts -fix_sub_duration -txt_format text -txt_page 888".split(" ");
    const decoded: DecodedSubtitle[] = [];
    for (const next of await decodedSubtitles(path, "s:0", args)) {
      // ffmpeg repeats what the stream repeats.
      const last = decoded.at(-1);
      if (last?.text === next.text && last.end === next.start)
        decoded.push({ ...decoded.pop()!, end: next.end });
      else decoded.push(next);
    }
    const { media, cues } = await cuesOf(bytes, 2);
    assert.equal(cues.length, CUES.length);
    for (const [index, { startSeconds, endSeconds, text }] of cues.entries()) {
      const { start, end, text: expected } = decoded[index]!;
      assert.equal(text, expected);
      const offset = media.zeroTicks / 90_000;
      assert.ok(
        Math.abs(startSeconds + offset - start) < 0.1,
        `${startSeconds + offset} s, ffmpeg ${start} s`,
      );
      assert.ok(Math.abs(endSeconds + offset - end) < 0.1, `${endSeconds + offset} s, ffmpeg ${end} s`);
    }
  },
);
