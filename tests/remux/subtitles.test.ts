import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { latin1Text } from "../../src/base/bytes.ts";
import { writeWebvtt } from "../../src/media/webvtt.ts";
import type { MatroskaIndex } from "../../src/remux/matroska-index.ts";
import { MatroskaSubtitles } from "../../src/remux/matroska-subtitles.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { fixturePath } from "../parts/media-fixtures.ts";
import { fileAccess } from "./media-checks.ts";

async function cuesOf(name: string): Promise<[string[], string]> {
  const source = await fileAccess(fixturePath(name));
  try {
    const media = await openMedia(source);
    const track = media.tracks.findIndex(({ kind }) => kind === "subtitle");
    const texts: string[] = [];
    for (let i = 0; i < media.segments.length; i++)
      texts.push(writeWebvtt(await media.cues(track, i), media.zeroTicks));
    await assert.rejects(media.cues(0, 0), { code: "no_such_segment" });
    await assert.rejects(media.cues(track, 99), { code: "no_such_segment" });
    media.close();
    return [texts, `${media.tracks[track]!.codec} ${media.tracks[track]!.language}`];
  } finally {
    await source.close();
  }
}

const HEAD = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000";

for (const [what, name, first, kind] of [
  ["MKV SubRip", "srt.mkv", "Hello <i>there</i> &amp; welcome", "subrip ger"],
  ["MKV ASS", "ass.mkv", "Hello <i>there</i> &amp; welcome", "ass ger"],
  ["MKV WebVTT", "vtt.mkv", undefined, "webvtt ger"],
  ["MP4 tx3g", "tx3g.mp4", "Hello there &amp; welcome", "tx3g ger"],
] as const) {
  test(`Media.cues ${what}: each segment has the cues that begin in it, at the times of the source`, async () => {
    const [texts, track] = await cuesOf(name);
    assert.equal(track, kind);
    if (first) assert.equal(texts[0], `${HEAD}\n\n00:00:01.000 --> 00:00:02.500\n${first}\n`);
    else assert.match(texts[0]!, /\n\n00:00:01\.000 --> 00:00:02\.500\nHello <i>there<\/i> /);
    assert.equal(texts[2], `${HEAD}\n\n00:00:07.250 --> 00:00:09.000\nZweite Zeile\nist zweizeilig\n`);
    assert.equal(texts[3], `${HEAD}\n\n00:00:13.000 --> 00:00:14.000\nEnde\n`);
  });
}

test("Media.tracks: timed text of MP4 is forced if all its samples are", async () => {
  const file = new Uint8Array(await readFile(fixturePath("tx3g.mp4")));
  const isForced = async () => {
    const read = async ({ start, end }: { start: number; end: number }) => file.slice(start, end);
    const media = await openMedia({ size: file.length, read });
    const track = media.tracks.find(({ kind }) => kind === "subtitle");
    media.close();
    return track?.isForced;
  };
  assert.equal(await isForced(), false);
  // The flags of the sample entry (3GPP TS 26.245 5.16) follow its type and eight bytes.
  const flags = latin1Text(file).indexOf("tx3g") + 12;
  file[flags] = 0x40;
  assert.equal(await isForced(), false);
  file[flags] = 0xc0;
  assert.equal(await isForced(), true);
});

test("Media.tracks: subtitles of Matroska that are pictures follow the text, and are marked", () => {
  const entry = { kind: "subtitle", language: "ger", name: undefined, isDefault: false, isForced: false };
  const entries = ["S_HDMV/PGS", "S_TEXT/UTF8", "S_UNKNOWN", "S_VOBSUB"].map((codecId) => ({
    ...entry,
    codecId,
  }));
  const { tracks } = new MatroskaSubtitles(
    undefined as never,
    { tracks: entries } as unknown as MatroskaIndex,
    undefined as never,
  );
  assert.deepEqual(
    tracks.map(({ codec, language, isOpaque = false }) => `${codec} ${language} ${isOpaque}`),
    ["subrip ger false", "pgs ger true", "vobsub ger true"],
  );
});
