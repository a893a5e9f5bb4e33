import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { openMedia } from "../../src/remux/open-media.ts";
import { hasFfmpeg, lavfi, makeMedia, mediaPath } from "./make-media.ts";
import { fileAccess } from "./media-judges.ts";

const skip = !(await hasFfmpeg());

const SRT = `1
00:00:01,000 --> 00:00:02,500
Hello <i>there</i> & <font color="red">welcome</font>

2
00:00:07,250 --> 00:00:09,000
Zweite Zeile
ist zweizeilig

3
00:00:13,000 --> 00:00:14,000
Ende
`;

async function cuesOf(name: string, codec: string, extra: string[] = []): Promise<[string[], string]> {
  const subtitles = await mediaPath("subtitles.srt");
  await writeFile(subtitles, SRT);
  const args = `-i ${subtitles} -map 0 -map 1 -map 2 -c:v libx264 -preset ultrafast -g 50 -c:a flac -strict -2 -metadata:s:s:0 language=ger`;
  const path = await makeMedia(name, [...lavfi(15), ...args.split(" "), "-c:s", codec, ...extra]);
  const source = await fileAccess(path);
  try {
    const media = await openMedia(source);
    const track = media.tracks.findIndex(({ kind }) => kind === "subtitle");
    const texts: string[] = [];
    for (let i = 0; i < media.segments.length; i++) texts.push(await media.webvttSegment(track, i));
    await assert.rejects(media.webvttSegment(0, 0), { code: "no_such_segment" });
    await assert.rejects(media.webvttSegment(track, 99), { code: "no_such_segment" });
    media.close();
    return [texts, `${media.tracks[track]!.codec} ${media.tracks[track]!.language}`];
  } finally {
    await source.close();
  }
}

const HEAD = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000";

for (const [what, name, codec, first, kind] of [
  ["MKV SubRip", "srt.mkv", "srt", "Hello <i>there</i> &amp; welcome", "subrip ger"],
  ["MKV ASS", "ass.mkv", "ass", "Hello there &amp; welcome", "ass ger"],
  ["MKV WebVTT", "vtt.mkv", "webvtt", undefined, "webvtt ger"],
  ["MP4 tx3g", "tx3g.mp4", "mov_text", "Hello there &amp; welcome", "tx3g ger"],
] as const) {
  test(`Media.webvttSegment ${what}: each segment has its own cues, at the times of the source`, {
    skip,
  }, async () => {
    const [texts, track] = await cuesOf(name, codec);
    assert.equal(track, kind);
    if (first) assert.equal(texts[0], `${HEAD}\n\n00:00:01.000 --> 00:00:02.500\n${first}\n`);
    else assert.match(texts[0]!, /\n\n00:00:01\.000 --> 00:00:02\.500\nHello <i>there<\/i> /);
    assert.equal(texts[2], `${HEAD}\n\n00:00:07.250 --> 00:00:09.000\nZweite Zeile\nist zweizeilig\n`);
    assert.equal(texts[3], `${HEAD}\n\n00:00:13.000 --> 00:00:14.000\nEnde\n`);
  });
}
