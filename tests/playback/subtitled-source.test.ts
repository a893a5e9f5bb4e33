import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes } from "../../src/base/bytes.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { decodeUtf8 } from "../../src/base/utf8.ts";
import { readSubtitles } from "../../src/media/subtitle-file.ts";
import { SubtitledSource } from "../../src/playback/subtitled-source.ts";
import { openTsFile } from "../../src/remux/ts-file.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";
import {
  type ManifestPlace,
  type SegmentSource,
  sessionManifestUrls,
} from "../../src/transfer/segment-source.ts";
import { bits, dvbData, END, object, page, region } from "../media/encode-dvb.ts";
import { unitPackets, withTeletext } from "../media/encode-teletext.ts";
import { allOf } from "../parts/all-of.ts";
import { CAPTIONS, captionedTs } from "../remux/captioned-ts.ts";
import { CountedFile } from "../remux/file-access.ts";
import { tsSegment } from "../remux/segments.ts";
import { SYNTHETIC_TRACKS, syntheticPackets, syntheticTs } from "../remux/synthetic-ts.ts";
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

test("SubtitledSource lists the subtitles of a live stream in a master manifest, and their segments", async () => {
  const inner = await liveSource(teletextFilm());
  const source = new SubtitledSource(inner, inner);
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

test("SubtitledSource writes what the page shows during each segment", async () => {
  const inner = await liveSource(teletextFilm());
  const shown: { start: number; end: number; text: string }[] = [];
  for (let index = 0; index < 7; index++) {
    // A new source each time: a segment does not depend on earlier requests.
    const bytes = await new SubtitledSource(inner, inner).make("vtt", index, 0, never);
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

test("SubtitledSource is the source itself if the stream has no teletext", async () => {
  const inner = await liveSource(syntheticTs(10));
  const source = new SubtitledSource(inner, inner);
  assert.equal(await source.manifest(PLACE, "main", never), MANIFEST);
});

test("SubtitledSource adds its subtitles to the master manifest of converted audio", async () => {
  const inner = await liveSource(teletextFilm());
  const master = '#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\nhttp://h:1/x.m3u8\n';
  const converted = { ...inner, manifest: async () => master };
  const joined = await new SubtitledSource(converted, inner).manifest(PLACE, "main", never);
  assert.match(joined, /^#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-MEDIA:TYPE=SUBTITLES.*\n#EXT-X-MEDIA:/);
  assert.match(
    joined,
    /#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a",SUBTITLES="subtitles"\nhttp:\/\/h:1\/x\.m3u8\n$/,
  );
});

const LINE = [0x11, ...bits("0001 0001 0000 0 000"), 0xf0];
const SHOWN = [page([[4, 10, 20]], { timeout: 30 }), region(4, [2, 2], 4, 0), object(LINE), END];

/** A stream whose DVB subtitles show a picture from 2 to 6 s, across the border of two segments. */
function dvbFilm(): Uint8Array {
  const at = (seconds: number, data: Uint8Array) => {
    const pts = BASE_TICKS + seconds * 90_000;
    return { pts, packets: unitPackets([...data], pts, 0x301) };
  };
  const language = (tag: string, composition: number) => [...latin1Bytes(tag), 0x10, 0, composition, 0, 9];
  const described = [...language("ger", 1), ...language("fre", 3)];
  return withTeletext(new TsMuxer(SYNTHETIC_TRACKS).segment(syntheticPackets(12)), {
    ...{ pmtPid: 0x1000, pid: 0x301, pages: [] },
    descriptor: [0x59, described.length, ...described],
    sent: [at(2, dvbData(...SHOWN)), at(6, dvbData(page([], { state: 0 }), END))],
  });
}

test("SubtitledSource: DVB subtitles are session data for pages, and pictures of each segment", async () => {
  const inner = await liveSource(dvbFilm());
  const source = new SubtitledSource(inner, inner);
  const master = await source.manifest(PLACE, "main", never);
  assert.match(
    master,
    /#EXT-X-SESSION-DATA:DATA-ID="sluice\.pictures\.500",VALUE="dvb_subtitle",LANGUAGE="de"\n/,
  );
  assert.match(master, /DATA-ID="sluice\.pictures\.501",VALUE="dvb_subtitle",LANGUAGE="fr"\n/);
  assert.doesNotMatch(master, /SUBTITLES/);
  assert.match(master, /rendition=media/);
  const shown: (readonly [number, number, number])[] = [];
  for (const index of [0, 1, 2]) {
    // A new source each time: a segment does not depend on earlier requests.
    const bytes = await new SubtitledSource(inner, inner).make("vtt", index, 500, never);
    for (const cue of allOf(readSubtitles(bytes, "webvtt"))) {
      const { parts, width } = JSON.parse(cue.text);
      assert.equal(width, 720);
      if (parts.length > 0) shown.push([index, cue.startSeconds, cue.endSeconds]);
      for (const { x, y, palette, runs } of parts) {
        assert.deepEqual([x, y, atob(runs).length, atob(palette).length], [10, 20, 2, 1024]);
      }
    }
  }
  const times = shown.map((one) => one.map((value) => Math.round(10 * value) / 10));
  assert.deepEqual(times, [
    [0, 2, 2.4],
    [1, 0, 3.6],
  ]);
  const other = await source.make("vtt", 0, 501, never);
  assert.doesNotMatch(decodeUtf8(other), /-->/);
  await assert.rejects(source.make("vtt", 0, 502, never), /no subtitles 502/);
});

test("SubtitledSource: captions in CEA-708 only are subtitles of a live stream", async () => {
  const inner = await liveSource(captionedTs());
  const source = new SubtitledSource(inner, inner);
  const master = await source.manifest(PLACE, "main", never);
  assert.match(master, /TYPE=SUBTITLES,GROUP-ID="subtitles",NAME="Captions",[^\n]*subtitles=0"/);
  assert.match(await source.manifest(PLACE, { subtitles: 0 }, never), /\/7\.s0\.vtt\n/);
  const shown = new Map<string, number>();
  for (let index = 0; index < 4; index++) {
    const bytes = await new SubtitledSource(inner, inner).make("vtt", index, 0, never);
    for (const { text, startSeconds, endSeconds } of allOf(readSubtitles(bytes, "webvtt")))
      shown.set(text, (shown.get(text) ?? 0) + endSeconds - startSeconds);
  }
  for (const [start, end, text] of CAPTIONS)
    assert.ok(Math.abs((shown.get(text) ?? 0) - (end - start)) < 0.1, `${text}: ${shown.get(text)} s`);
  await assert.rejects(source.make("vtt", 0, 1, never), /no subtitles 1/);
});
