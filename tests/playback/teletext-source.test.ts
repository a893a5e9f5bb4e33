import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../src/base/ids.ts";
import { decodeUtf8 } from "../../src/base/utf8.ts";
import { readSubtitles } from "../../src/media/subtitle-file.ts";
import { TeletextSource } from "../../src/playback/teletext-source.ts";
import { openTsFile } from "../../src/remux/ts-file.ts";
import {
  type ManifestPlace,
  type SegmentSource,
  sessionManifestUrls,
} from "../../src/transfer/segment-source.ts";
import { allOf } from "../parts/all-of.ts";
import { CountedFile } from "../remux/file-access.ts";
import { tsSegment } from "../remux/segments.ts";
import { syntheticTs } from "../remux/synthetic-ts.ts";
import { BASE_TICKS, CUES, teletextFilm } from "../remux/teletext-film.ts";

const never = new AbortController().signal;
const PLACE: ManifestPlace = {
  urls: sessionManifestUrls("http://h:1", { infohash: "c".repeat(40) as Infohash, key: "k", ordinal: 0 }),
};
const MANIFEST = `#EXTM3U
#EXT-X-TARGETDURATION:4
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES
#EXTINF:4.000000,
http://h:1/ace/c/${"c".repeat(40)}/7.ts
#EXT-X-PART:DURATION=0.5,URI="http://h:1/ace/c/${"c".repeat(40)}/8.p0.ts"
`;

/** A live source with the segments of a file. */
async function liveSource(film: Uint8Array): Promise<SegmentSource> {
  const media = await openTsFile(new CountedFile(film), { targetSeconds: 4 });
  const segments: Uint8Array<ArrayBuffer>[] = [];
  for (let index = 0; index < media.segments.length; index++)
    segments.push(Uint8Array.from(await tsSegment(media, index)));
  const cursor = () => ({ next: async () => segments[0], seek() {}, position: undefined });
  return {
    ...{ container: "ts", isLive: true, name: "live" },
    live: { cursor, part: () => Promise.reject(new Error("unexpected")) },
    manifest: async () => MANIFEST,
    first: async () => segments.length - 1,
    reach: async (index) => index,
    find: async (_kind, number) => number,
    make: async (_kind, index) => segments[index] ?? Promise.reject(new Error("gone")),
  };
}

test("TeletextSource lists the subtitles of a live stream in a master manifest, and their segments", async () => {
  const inner = await liveSource(teletextFilm());
  const source = new TeletextSource(inner, inner);
  const master = await source.manifest(PLACE, "main", never);
  assert.match(
    master,
    /#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="subtitles",NAME="English",LANGUAGE="en",.*\?subtitles=0"/,
  );
  assert.match(master, /NAME="Hearing impaired",LANGUAGE="de",.*\?subtitles=1"/);
  assert.match(master, /SUBTITLES="subtitles"\nhttp:\/\/h:1\/ace\/m\/c{40}\/k\.m3u8\?rendition=media\n/);
  assert.equal(await source.manifest(PLACE, "media", never), MANIFEST);
  const listed = await source.manifest(PLACE, { subtitles: 1 }, never);
  assert.match(listed, /\/7\.s1\.vtt\n/);
  assert.doesNotMatch(listed, /PART|SERVER-CONTROL|\.ts/);
  await assert.rejects(source.manifest(PLACE, { subtitles: 2 }, never), /no subtitles 2/);
});

test("TeletextSource writes what the page shows during each segment", async () => {
  const inner = await liveSource(teletextFilm());
  const shown: { start: number; end: number; text: string }[] = [];
  for (let index = 0; index < 7; index++) {
    // A new source each time: a segment does not depend on earlier requests.
    const bytes = await new TeletextSource(inner, inner).make("vtt", index, 0, never);
    const text = decodeUtf8(bytes);
    const [, ticks, local] = /MPEGTS:(\d+),LOCAL:00:00:(\d\d\.\d{3})/.exec(text)!;
    const zero = (Number(ticks) - BASE_TICKS) / 90_000 - Number(local);
    for (const cue of allOf(readSubtitles(bytes, "webvtt"))) {
      const [start, end] = [cue.startSeconds + zero, cue.endSeconds + zero];
      const last = shown.at(-1);
      if (last?.text === cue.text && Math.abs(last.end - start) < 0.01) shown.push({ ...shown.pop()!, end });
      else shown.push({ start, end, text: cue.text });
    }
  }
  assert.deepEqual(
    shown.map(({ start, end, text }) => [Number(start.toFixed(1)), Number(end.toFixed(1)), text]),
    CUES.map((cue) => [...cue]),
  );
});

test("TeletextSource is the source itself if the stream has no teletext", async () => {
  const inner = await liveSource(syntheticTs(10));
  const source = new TeletextSource(inner, inner);
  assert.equal(await source.manifest(PLACE, "main", never), MANIFEST);
});

test("TeletextSource adds its subtitles to the master manifest of converted audio", async () => {
  const inner = await liveSource(teletextFilm());
  const master = '#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\nhttp://h:1/x.m3u8\n';
  const converted = { ...inner, manifest: async () => master };
  const joined = await new TeletextSource(converted, inner).manifest(PLACE, "main", never);
  assert.match(joined, /^#EXTM3U\n#EXT-X-MEDIA:TYPE=SUBTITLES.*\n#EXT-X-MEDIA:.*\n#EXT-X-VERSION:6\n/);
  assert.match(
    joined,
    /#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a",SUBTITLES="subtitles"\nhttp:\/\/h:1\/x\.m3u8\n$/,
  );
});
