import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import HLS from "hls-parser";
import { concatBytes } from "../../src/base/bytes.ts";
import type { LiveSource } from "../../src/live/window/live-source.ts";
import { PieceCutter } from "../../src/media/live-cut.ts";
import type { LivePiece } from "../../src/media/live-piece.ts";
import type { ManifestPlace } from "../../src/transfer/segment-source.ts";
import { segmentNumber, sessionManifestUrls } from "../../src/transfer/segment-source.ts";
import { settled } from "../engine/fake-clock.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { H264, HEVC, lavfi, makeMedia, scratchFile } from "../remux/make-media.ts";
import { ffmpegErrors, probePackets } from "../remux/probe.ts";
import { checkTs } from "../remux/ts-checker.ts";
import {
  changed,
  give,
  headerOf,
  INFOHASH,
  inFolder,
  laterRound,
  PIECE_MS,
  patternStream,
  SEGMENT_MS,
  type StreamPiece,
  someWindow,
  written,
} from "./window-stream.ts";

const { test: ffmpegTest } = await testsThatNeed("ffmpeg");

const WITH = { timeout: 60_000 };
const never = new AbortController().signal;
const PLACE: ManifestPlace = {
  urls: sessionManifestUrls("http://h:1", { infohash: INFOHASH, key: "k", ordinal: 0 }),
};

async function textOf(source: LiveSource, place: Partial<ManifestPlace> = {}): Promise<string> {
  return source.manifest({ ...PLACE, ...place }, "main", never);
}

async function listOf(
  source: LiveSource,
  place: Partial<ManifestPlace> = {},
): Promise<HLS.types.MediaPlaylist> {
  return parsed(await textOf(source, place));
}

/** Parses a manifest with another parser; throws if it is invalid. */
function parsed(text: string, strictMode = true): HLS.types.MediaPlaylist {
  HLS.setOptions({ strictMode });
  return HLS.parse(text) as HLS.types.MediaPlaylist;
}

/** The complete segments of a manifest; the parser adds one for the parts of the open segment. */
function whole({ segments }: HLS.types.MediaPlaylist) {
  return segments.filter(({ uri }) => uri);
}

/** The same, by number. */
function numbered(list: HLS.types.MediaPlaylist) {
  return new Map(whole(list).map((segment, index) => [list.mediaSequenceBase! + index, segment] as const));
}

/** `<number>.ts`, `<number>.p<part>.ts` of a URL, as the routes read it. */
function named(uri: string): { number: number; part: number | undefined } {
  const [, number, part] = /\/(\d+)(?:\.p(\d+))?\.ts$/.exec(uri)!;
  return { number: Number(number), part: part === undefined ? undefined : Number(part) };
}

/** Fetches a URL of a manifest. */
async function fetched(source: LiveSource, uri: string): Promise<Uint8Array> {
  const { number, part } = named(uri);
  const index = await source.find("ts", number, never);
  return part === undefined ? source.make("ts", index, 0, never) : source.live.part(index, part, never);
}

/** The segments of a stream, derived from the headers. */
function segmentsOf(pieces: readonly StreamPiece[]): Map<number, Uint8Array> {
  const segments = new Map<number, Uint8Array[]>();
  let number = -1;
  for (const { header, bytes } of pieces) {
    const cut = header.isSegmentStart ? header.randomAccessOffset! : 0;
    if (header.isSegmentStart) {
      segments.get(number)?.push(bytes.subarray(0, cut));
      number = header.segment;
      segments.set(number, []);
    }
    segments.get(number)?.push(bytes.subarray(cut));
  }
  return new Map([...segments].map(([n, parts]) => [n, concatBytes(parts)]));
}

ffmpegTest(
  "LiveSource: lists the signed segments, with their numbers, bytes, times and durations",
  WITH,
  async () => {
    const pieces = await patternStream();
    const { window, source } = someWindow();
    give(window, pieces);
    const list = await listOf(source);
    const expected = segmentsOf(pieces);
    assert.equal(list.endlist, false);
    assert.equal(list.targetDuration, 2);
    assert.equal(list.discontinuitySequenceBase ?? 0, 0);
    assert.ok(whole(list).length >= 17);
    for (const [number, segment] of numbered(list)) {
      assert.equal(segment.uri, `http://h:1/ace/c/${INFOHASH}/${segmentNumber(0, number)}.ts`);
      const bytes = await fetched(source, segment.uri);
      assert.deepEqual(bytes, expected.get(number));
      const start = pieces.find(({ header }) => header.isSegmentStart && header.segment === number)!.header;
      const timeMs = segment.programDateTime!.getTime();
      assert.ok(timeMs <= start.timestampMs && timeMs >= start.timestampMs - start.spanMs);
      assert.equal(segment.duration, 2);
    }
    const [, third] = list.segments.slice(1);
    const bytes = await fetched(source, third!.uri);
    assert.equal(await ffmpegErrors(bytes), "");
    const video = (await probePackets(await scratchFile(bytes, "ts"))).filter(({ stream }) => stream === 0);
    assert.ok(video[0]!.isKey);
    assert.equal(video.length, 50);
  },
);

test("LiveSource: engines that joined at different times have the same numbers, bytes and parts", async () => {
  const pieces = await patternStream();
  const early = someWindow();
  const late = someWindow();
  give(early.window, pieces.slice(0, 250));
  const joined = pieces.findIndex(
    ({ header }, i) => i > 100 && header.randomAccessOffset !== undefined && !header.isSegmentStart,
  );
  give(late.window, pieces.slice(joined, 250));
  const lists = [await listOf(early.source), await listOf(late.source)] as const;
  const theirs = [...numbered(lists[1])];
  // The incomplete segment comes first.
  assert.equal(theirs.shift()![0], pieces[joined]!.header.segment);
  assert.ok(theirs.length >= 5);
  for (const [number, segment] of theirs) {
    const same = numbered(lists[0]).get(number)!;
    assert.equal(segment.uri, same.uri);
    assert.equal(segment.duration, same.duration);
    assert.deepEqual(segment.programDateTime, same.programDateTime);
    assert.deepEqual(segment.parts, same.parts);
    const bytes = await fetched(late.source, segment.uri);
    assert.deepEqual(bytes, await fetched(early.source, segment.uri));
    if (segment.parts.length === 0) continue;
    assert.deepEqual(
      concatBytes(await Promise.all(segment.parts.map(({ uri }) => fetched(late.source, uri)))),
      bytes,
    );
  }
  assert.equal(theirs.filter(([, { parts }]) => parts.length > 0).length, 2);
});

test("LiveSource.isWhole: true for a segment with all its bytes, not for a rest or one with a gap", async () => {
  const pieces = await patternStream();
  const starts = pieces.flatMap(({ header }, index) => (header.isSegmentStart ? [index] : []));
  const inside = (start: number) =>
    pieces.findIndex(
      ({ header }, i) => i > start && header.randomAccessOffset !== undefined && !header.isSegmentStart,
    );
  const { window, source } = someWindow();
  const joined = inside(starts[2]!);
  // One piece is lost in the middle of the fifth segment, the last one of the seventh.
  const lost = [inside(starts[5]!) - 1, starts[8]! - 1];
  give(
    window,
    pieces.slice(joined, starts[10]! + 1).filter((_, index) => !lost.includes(index + joined)),
  );
  const wholeOf = (start: number) => source.isWhole(segmentNumber(0, pieces[start]!.header.segment));
  assert.deepEqual(
    starts.slice(2, 11).map(wholeOf),
    [false, true, true, false, true, false, true, true, false],
    "the last one is open",
  );
});

test("LiveSource: the list covers about 60 s, and its first number never decreases", async () => {
  const pieces = await patternStream();
  const { window, source } = someWindow();
  let first = 0;
  for (let round = 0; round < 4; round++) {
    for (const piece of laterRound(pieces, round)) {
      give(window, [piece]);
      if (!piece.header.isSegmentStart || window.segments.length < 2) continue;
      const { mediaSequenceBase = 0 } = await listOf(source);
      assert.ok(mediaSequenceBase >= first);
      first = mediaSequenceBase;
    }
  }
  const seconds = whole(await listOf(source)).reduce((sum, { duration }) => sum + duration, 0);
  assert.ok(seconds >= 60 && seconds < 64, `${seconds} s`);
});

test("LiveSource: lists parts of the last segments and the open one, within the target, the first one independent", async () => {
  const pieces = await patternStream();
  const { window, source } = someWindow();
  give(window, pieces.slice(0, 100));
  const list = await listOf(source);
  assert.equal(list.lowLatencyCompatibility?.canBlockReload, true);
  assert.ok(list.lowLatencyCompatibility!.partHoldBack! >= 3 * list.partTargetDuration! - 1e-9);
  assert.ok(list.partTargetDuration! >= 0.25 && list.partTargetDuration! <= 0.5);
  const withParts = list.segments.filter(({ parts }) => parts.length > 0);
  assert.ok(withParts.filter(({ duration }) => duration > 0).length >= 1);
  assert.ok(withParts.length >= 3);
  for (const { parts, duration } of withParts) {
    assert.equal(parts[0]!.independent, true);
    for (const [index, part] of parts.entries()) {
      if (part.hint) continue;
      assert.ok(part.duration! <= list.partTargetDuration!);
      const isLast = index === parts.length - 1;
      if (!part.independent && !isLast)
        assert.ok(part.duration! >= 0.85 * list.partTargetDuration!, `${part.duration}`);
    }
    const seconds = parts.reduce((sum, part) => sum + (part.duration ?? 0), 0);
    // The open segment has no duration yet.
    assert.ok(!(duration > 0) || Math.abs(seconds - duration) < 0.3, `${seconds} of ${duration}`);
  }
  const text = await textOf(source);
  const open = window.segments.at(-1)!;
  assert.match(
    text,
    new RegExp(
      `#EXT-X-PRELOAD-HINT:TYPE=PART,URI="[^"]+${segmentNumber(0, open.facts.number)}.p${open.parts.length}.ts"`,
    ),
  );
});

test("LiveSource: answers a blocking request for a part or manifest as soon as it is available", async () => {
  const pieces = await patternStream();
  const { window, source } = someWindow();
  give(window, pieces.slice(0, 100));
  const open = window.segments.at(-1)!;
  const segment = open.facts.number;
  const part = open.parts.length;
  let got: Uint8Array | undefined;
  const hint = source.live.part(segment, part, never).then((bytes) => {
    got = bytes;
  });
  let manifest: string | undefined;
  const reload = textOf(source, { reload: { segment, part } }).then((text) => {
    manifest = text;
  });
  let next = 100;
  for (; open.parts.length === part; next++) {
    await settled();
    assert.equal(got, undefined);
    assert.equal(manifest, undefined);
    give(window, [pieces[next]!]);
  }
  await Promise.all([hint, reload]);
  assert.match(manifest!, new RegExp(`${segmentNumber(0, segment)}.p${part}.ts`));
  const text = textOf(source, { reload: { segment: segment + 1, part: undefined } });
  const first = source.live.part(segment + 1, 0, never);
  give(window, pieces.slice(next, next + 40));
  assert.ok(numbered(parsed(await text)).has(segment + 1));
  const bytes = segmentsOf(pieces).get(segment + 1)!;
  assert.deepEqual(await first, bytes.subarray(0, (await first).length));
});

test("LiveSource: rejects requests for segments and parts that will never exist", async () => {
  const pieces = await patternStream();
  const { window, source } = someWindow();
  give(window, pieces.slice(0, 100));
  const newest = await source.first(never);
  await assert.rejects(textOf(source, { reload: { segment: newest + 3, part: undefined } }), {
    code: "bad_parameter",
  });
  const gone = { code: "no_such_segment" };
  await assert.rejects(source.find("ts", segmentNumber(0, newest + 5), never), gone);
  await assert.rejects(source.find("m4s", segmentNumber(0, newest), never), gone);
  await assert.rejects(source.make("ts", newest + 7, 0, never), gone);
  await assert.rejects(source.live.part(newest, 99, never), gone);
  await assert.rejects(source.live.part(newest + 1, 99, never), gone);
  await assert.rejects(source.live.part(newest + 3, 0, never), gone);
  // A hinted part of a segment that ended before it.
  const open = window.segments.at(-1)!;
  const begun = pieces.findIndex(({ header }, i) => i >= 100 && header.isSegmentStart);
  give(window, pieces.slice(100, begun));
  const hint = source.live.part(open.facts.number, open.parts.length + 1, never);
  give(window, pieces.slice(begun, begun + 1));
  await assert.rejects(hint, gone);
});

test("LiveSource: the first player waits for the first segment", async () => {
  const pieces = await patternStream();
  const { window, source } = someWindow();
  assert.equal(source.livePosition(), undefined);
  const text = textOf(source);
  const first = source.first(never);
  const second = pieces.findIndex(({ header }, i) => i > 0 && header.isSegmentStart);
  give(window, pieces.slice(0, second));
  let isThere = false;
  void text.then(() => {
    isThere = true;
  });
  await settled();
  assert.equal(isThere, false);
  give(window, pieces.slice(second, second + 1));
  assert.equal(parsed(await text).segments[0]!.mediaSequenceNumber, await first);
  assert.equal(await first, pieces[0]!.header.segment);
});

test("LiveSource: a time-shifted list ends earlier, slides, has no parts, and is read from disk", async () => {
  const pieces = await patternStream();
  await inFolder(async (folder) => {
    const { window, source, clock } = someWindow({ folder });
    give(window, pieces.slice(0, 250));
    await written(window);
    const shiftMs = 12_000;
    const before = await listOf(source, { shiftMs });
    const edgeMs = pieces[249]!.header.timestampMs;
    const endMs = ({ segments }: HLS.types.MediaPlaylist) =>
      segments.at(-1)!.programDateTime!.getTime() + 1000 * segments.at(-1)!.duration;
    assert.ok(endMs(before) <= edgeMs - shiftMs && endMs(before) > edgeMs - shiftMs - 2500);
    assert.equal(before.lowLatencyCompatibility, undefined);
    assert.ok(before.segments.every(({ parts }) => parts.length === 0));
    const oldest = before.segments[0]!;
    assert.deepEqual(await fetched(source, oldest.uri), segmentsOf(pieces).get(oldest.mediaSequenceNumber));
    give(window, pieces.slice(250, 290));
    const after = await listOf(source, { shiftMs });
    assert.ok(endMs(after) - endMs(before) >= 3000);
    // The list moves with the clock while the source is silent.
    await clock.advance(10_000);
    assert.ok(endMs(await listOf(source, { shiftMs })) - endMs(after) >= 8000);
    // Further back than the window: the oldest segment.
    const all = await listOf(source, { shiftMs: 3_600_000 });
    assert.equal(all.segments[0]!.mediaSequenceNumber, pieces[0]!.header.segment);
    await window.close();
  });
});

test("LiveSource: missing segments are gaps; only clock jumps are discontinuities", async () => {
  const pieces = await patternStream();
  const { window, source } = someWindow();
  const starts = pieces.flatMap(({ header }, i) => (header.isSegmentStart ? [i] : []));
  // All of the fourth segment, and the middle of the seventh.
  const lost = (i: number) =>
    (i >= starts[3]! && i < starts[4]!) || (i >= starts[6]! + 1 && i < starts[6]! + 4);
  for (const [i, piece] of pieces.slice(0, starts[9]! + 2).entries()) {
    if (lost(i)) window.skip(piece.header.seq);
    else give(window, [piece]);
  }
  const text = await textOf(source);
  const list = parsed(text);
  const numbers = [...numbered(list).keys()];
  assert.deepEqual(
    numbers,
    numbers.map((_, i) => pieces[0]!.header.segment + i),
  );
  assert.equal(whole(list).length, 9);
  assert.equal(list.segments.filter(({ gap }) => gap).length, 1);
  assert.equal(list.segments[3]!.gap, true);
  assert.doesNotMatch(text, /DISCONTINUITY/);
  await assert.rejects(fetched(source, list.segments[3]!.uri), { code: "no_such_segment" });
  const expected = segmentsOf(pieces);
  for (const [i, segment] of whole(list).entries()) {
    if (i === 3) continue;
    const bytes = await fetched(source, segment.uri);
    const whole = expected.get(numbers[i]!)!;
    // A keyframe every second: the damaged segment resumes there.
    if (i === 6) assert.ok(bytes.length > whole.length / 2 && bytes.length < whole.length);
    else assert.deepEqual(bytes, whole);
  }
  assert.equal(await source.reach(numbers[3]!, never), numbers[4]);
});

test("LiveSource: discontinuities are listed in place, and counted after they have left the list", async () => {
  const pieces = await patternStream();
  const { window, source } = someWindow();
  const starts = pieces.flatMap(({ header }, i) => (header.isSegmentStart ? [i] : []));
  const torn = pieces[starts[2]!]!.header.seq;
  give(
    window,
    changed(pieces, ({ seq }) => (seq === torn ? { isDiscontinuity: true } : {})),
  );
  const list = await listOf(source);
  assert.deepEqual(
    list.segments.flatMap(({ discontinuity, mediaSequenceNumber }) =>
      discontinuity ? [mediaSequenceNumber] : [],
    ),
    [pieces[starts[2]!]!.header.segment],
  );
  // A restart of the source, and then time passes.
  window.restarted();
  const epoch = pieces[0]!.header.epoch + 60;
  const next = changed(laterRound(pieces, 1), () => ({ epoch }));
  give(window, next);
  const both = await listOf(source);
  assert.equal(
    both.segments.filter(({ discontinuity }) => discontinuity).length,
    2 - (both.discontinuitySequenceBase ?? 0),
  );
  assert.equal(
    both.segments.find(({ mediaSequenceNumber }) => mediaSequenceNumber === next[0]!.header.segment)
      ?.discontinuity,
    true,
  );
  give(
    window,
    changed(laterRound(pieces, 2), () => ({ epoch })),
  );
  give(
    window,
    changed(laterRound(pieces, 3), () => ({ epoch })),
  );
  const gone = await listOf(source);
  assert.equal(gone.discontinuitySequenceBase, 2);
  assert.ok(gone.segments.every(({ discontinuity }) => !discontinuity));
});

test("LiveSource: the end of the stream closes the list, and reach", async () => {
  const pieces = await patternStream();
  const { window, source } = someWindow();
  const ended = [
    ...pieces.slice(0, 100),
    { ...pieces[100]!, header: { ...pieces[100]!.header, isEnd: true } },
  ];
  give(window, ended);
  const list = await listOf(source);
  assert.equal(list.endlist, true);
  assert.equal(list.lowLatencyCompatibility, undefined);
  const last = list.segments.at(-1)!;
  assert.deepEqual(
    await fetched(source, last.uri),
    segmentsOf(pieces.slice(0, 101)).get(last.mediaSequenceNumber),
  );
  assert.equal(await source.reach(last.mediaSequenceNumber, never), last.mediaSequenceNumber);
  assert.equal(await source.reach(last.mediaSequenceNumber + 1, never), undefined);
});

test("LiveSource: after a jump of the numbers, no part is listed under a wrong number", async () => {
  const pieces = await patternStream();
  const { window, source } = someWindow();
  give(window, pieces.slice(0, 100));
  const restarted = pieces.findIndex(({ header }, i) => i > 100 && header.isSegmentStart);
  const leap = changed(pieces.slice(restarted), ({ segment, seq }) => ({
    segment: segment + 6000,
    seq: seq + 500,
  }));
  give(window, leap.slice(0, 10));
  const newest = await source.first(never);
  const text = await textOf(source);
  assert.doesNotMatch(text, /PRELOAD-HINT/);
  assert.equal(parsed(text).segments.length, whole(parsed(text)).length);
  let isThere = false;
  const reload = textOf(source, { reload: { segment: newest + 1, part: 3 } }).then((next) => {
    isThere = true;
    return parsed(next);
  });
  await settled();
  assert.equal(isThere, false);
  give(window, leap.slice(10, 25));
  const list = await reload;
  assert.equal(list.mediaSequenceBase, leap[0]!.header.segment);
  assert.equal(whole(list).length, 1);
});

const STREAMS: readonly (readonly [string, readonly string[]])[] = [
  ["pictures out of order", [...H264, "-bf", "2", "-c:a", "aac"]],
  ["HEVC", [...HEVC, "-c:a", "eac3"]],
  ["sound alone", ["-vn", "-c:a", "aac"]],
];

for (const [name, codecs] of STREAMS) {
  ffmpegTest(
    `LiveSource: segments of ${name} play by themselves and one after another, as long as previous`,
    WITH,
    async () => {
      const file = `live-window-${name.replaceAll(" ", "-")}.ts`;
      const bytes = new Uint8Array(await readFile(await makeMedia(file, [...lavfi(12), ...codecs])));
      const cutter = new PieceCutter({ pieceMs: PIECE_MS, maxPieceBytes: 1 << 18, segmentMs: SEGMENT_MS });
      const pieces: LivePiece[] = [];
      for (let at = 0; at < bytes.length; at += 7 * 188) {
        const nowMs = 1_700_000_000_000 + Math.floor((12_000 * at) / bytes.length);
        pieces.push(...cutter.push(bytes.subarray(at, at + 7 * 188), nowMs));
      }
      const { window, source } = someWindow();
      give(
        window,
        pieces.map((piece, index) => ({ header: headerOf(piece, index), bytes: piece.bytes })),
      );
      // Strict parsers reject the shorter parts that RFC 8216bis allows before a keyframe.
      const list = whole(parsed(await textOf(source), false));
      assert.ok(list.length >= 2);
      const segments: Uint8Array[] = [];
      const starts: { readonly dts: number; readonly duration: number }[] = [];
      for (const { uri, duration } of list) {
        const segment = await fetched(source, uri);
        segments.push(segment);
        assert.equal(await ffmpegErrors(segment), "");
        const [{ dts } = { dts: Number.NaN }] = (await probePackets(await scratchFile(segment, "ts"))).filter(
          ({ stream }) => stream === 0,
        );
        starts.push({ dts, duration });
      }
      for (const [i, { dts }] of starts.slice(1).entries()) {
        const before = starts[i]!;
        assert.ok(Math.abs(dts - before.dts - before.duration) < 1e-4, `${before.duration} s`);
      }
      const all = concatBytes(segments);
      assert.equal(await ffmpegErrors(all), "");
      assert.deepEqual(checkTs(all, { isPassThrough: true }).faults, []);
    },
  );
}
