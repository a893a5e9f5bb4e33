import assert from "node:assert/strict";
import { readdir, readFile, stat } from "node:fs/promises";
import { test } from "node:test";
import HLS from "hls-parser";
import { runtime } from "#runtime";
import { deferred } from "../../src/async/deferred.ts";
import { concatBytes } from "../../src/base/bytes.ts";
import { SluiceError } from "../../src/base/errors.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import type { LiveWindow, LiveWindowOptions } from "../../src/live/window/live-window.ts";
import { partTargetMs } from "../../src/live/window/live-window-parts.ts";
import type { Files, OpenFile } from "../../src/runtime/contract.ts";
import { SHARED_MANIFEST_URLS } from "../../src/transfer/segment-source.ts";
import type { PieceHeader } from "../../src/wire/live/header.ts";
import { settled } from "../engine/fake-clock.ts";
import { seededRandom } from "../seeded-random.ts";
import {
  changed,
  drained,
  give,
  inFolder,
  laterRound,
  PIECE_MS,
  patternStream,
  SEGMENT_MS,
  type StreamPiece,
  someWindow,
  written,
} from "./window-stream.ts";

const MIB = 1024 * 1024;
const never = new AbortController().signal;

/** A disk in memory that calls `write` before each write. */
function memoryDisk(write: (path: string) => Promise<void> | void = () => {}) {
  const stored = new Map<string, Uint8Array<ArrayBuffer>>();
  const open = async (path: string): Promise<OpenFile> => ({
    read: async (at, into) => {
      const bytes = stored.get(path);
      if (!bytes || at + into.length > bytes.length) throw new Error(`no such bytes in ${path}`);
      into.set(bytes.subarray(at, at + into.length));
    },
    write: async (at, bytes) => {
      await write(path);
      const before = stored.get(path) ?? new Uint8Array(0);
      stored.set(path, concatBytes([before.subarray(0, at), bytes]));
    },
    truncate: async () => {},
    sync: async () => {},
    close: async () => {},
  });
  const remove = async (path: string) => {
    for (const one of stored.keys()) if (one.startsWith(path)) stored.delete(one);
  };
  const files: Pick<Files, "open" | "remove"> = { open, remove };
  const bytes = () => [...stored.values()].reduce((sum, { length }) => sum + length, 0);
  return { files, stored, bytes };
}

/** The same pieces with this many bytes each: a fast stream, one piece at a time. */
function* faster(pieces: readonly StreamPiece[], pieceBytes: number): Generator<StreamPiece> {
  for (const { header, bytes } of pieces) {
    const more = new Uint8Array(Math.max(bytes.length, pieceBytes - (pieceBytes % 188))).fill(0xff);
    for (let at = 0; at < more.length; at += 188) more.set([0x47, 0x1f, 0xff, 0x10], at);
    more.set(bytes);
    yield { bytes: more, header: { ...header, pieceBytes: more.length } };
  }
}

/** The listed duration of a window, in seconds. */
function keptSeconds({ segments, edgeMs }: LiveWindow): number {
  const oldest = segments.find(({ isGone }) => !isGone)!;
  return (edgeMs! - oldest.facts.startMs) / 1000;
}

test("LiveWindow: an hour of a stream stays within the memory and disk limits", async () => {
  const pieces = await patternStream();
  const disk = memoryDisk();
  const limitBytes = 4 * MIB;
  const { window } = someWindow({
    files: disk.files,
    folder: "/w",
    limitMs: 600_000,
    limitBytes: () => limitBytes,
  });
  let mostMemory = 0;
  for (let round = 0; round < 90; round++) {
    give(window, laterRound(pieces, round));
    await written(window);
    assert.ok(disk.bytes() <= limitBytes);
    assert.equal(window.kept.diskBytes, disk.bytes());
    assert.ok(window.segments.length <= 301);
    mostMemory = Math.max(mostMemory, window.kept.memoryBytes);
  }
  // Twelve seconds, and the bytes of one round.
  assert.ok(mostMemory < 2 * MIB, `${mostMemory} bytes`);
  const seconds = keptSeconds(window);
  assert.ok(seconds > 100 && seconds < 200, `${seconds} s in 4 MiB`);
  await window.close();
  assert.equal(disk.stored.size, 0);
});

test("LiveWindow: drops segments beyond its time limit", async () => {
  const pieces = await patternStream();
  const { window } = someWindow({ limitMs: 20_000 });
  for (let round = 0; round < 3; round++) give(window, laterRound(pieces, round));
  const seconds = keptSeconds(window);
  assert.ok(seconds >= 20 && seconds <= 22.2, `${seconds} s`);
});

test("LiveWindow: without a disk, keeps twelve seconds at any rate, or as much as fits into 16 MiB", async () => {
  const pieces = await patternStream();
  const slow = someWindow();
  for (let round = 0; round < 3; round++) give(slow.window, laterRound(pieces, round));
  assert.ok(keptSeconds(slow.window) > 110);
  const fast = someWindow();
  give(fast.window, faster(pieces, 400_000));
  const { memoryBytes } = fast.window.kept;
  assert.ok(memoryBytes > 30 * MIB && memoryBytes < 50 * MIB, `${memoryBytes / MIB} MiB`);
  assert.ok(keptSeconds(fast.window) > 12);
  const fastest = someWindow();
  give(fastest.window, faster(pieces, 2 * MIB));
  assert.ok(fastest.window.kept.memoryBytes <= (64 + 34) * MIB);
});

test("LiveWindow: writes one file per segment, with its bytes", async () => {
  const pieces = await patternStream();
  await inFolder(async (folder) => {
    const old = await runtime.files.open(`${folder}/1-1-1.ts`);
    await old.write(0, new Uint8Array(10));
    await old.close();
    const { window, source } = someWindow({ folder });
    give(window, pieces);
    await written(window);
    const names = await readdir(folder);
    assert.equal(names.length, window.segments.length - 1);
    for (const segment of window.segments.slice(0, -1)) {
      const { epoch, number, serial } = segment.facts;
      const bytes = await source.make("ts", number, 0, never);
      assert.deepEqual(new Uint8Array(await readFile(`${folder}/${epoch}-${number}-${serial}.ts`)), bytes);
    }
    await window.close();
    await assert.rejects(stat(folder));
  });
});

test("LiveWindow: a new window loses nothing while an earlier one of its folder closes", async () => {
  const pieces = await patternStream();
  await inFolder(async (folder) => {
    const first = someWindow({ folder });
    give(first.window, pieces);
    await written(first.window);
    const { promise: free, resolve: isFree } = Promise.withResolvers<void>();
    const touched: string[] = [];
    const { files } = runtime;
    const note = (path: string) => {
      touched.push(path);
      return path;
    };
    const noting = {
      open: (path: string) => files.open(note(path)),
      remove: (path: string) => files.remove(note(path)),
    };
    const second = someWindow({ folder, free, files: noting });
    give(second.window, pieces);
    await settled();
    assert.deepEqual(touched, []);
    await first.window.close();
    isFree();
    await written(second.window);
    const names = await readdir(folder);
    assert.equal(names.length, second.window.segments.length - 1);
    await second.window.close();
  });
});

test("LiveWindow: a full disk shortens the window, is logged once, and is used again later", async () => {
  const pieces = await patternStream();
  let isFull = true;
  const disk = memoryDisk(() => {
    if (isFull) throw new SluiceError("disk_full", "the disk is full");
  });
  const { window, log, source } = someWindow({ files: disk.files, folder: "/w" });
  give(window, faster(pieces, 300_000));
  await written(window);
  assert.equal(disk.stored.size, 0);
  assert.deepEqual(log.warnings, ["cannot write a live stream to disk; its window is shorter"]);
  assert.ok(window.kept.memoryBytes < 48 * MIB);
  assert.ok(keptSeconds(window) >= 12);
  isFull = false;
  for (const piece of faster(laterRound(pieces, 1), 300_000)) {
    give(window, [piece]);
    if (piece.header.isSegmentStart) await written(window);
  }
  assert.ok(keptSeconds(window) > 39, `${keptSeconds(window)} s`);
  assert.ok(window.kept.memoryBytes < 34 * MIB);
  const oldest = window.segments.find(({ storage }) => storage === "saved")!;
  assert.equal((await source.make("ts", oldest.facts.number, 0, never)).length, oldest.bytes);
});

test("LiveWindow: the oldest segments make room if other programs fill the disk", async () => {
  const pieces = await patternStream();
  let room = Number.POSITIVE_INFINITY;
  const disk = memoryDisk(() => {
    if (disk.bytes() >= room) throw new SluiceError("disk_full", "the disk is full");
  });
  const { window, log } = someWindow({ files: disk.files, folder: "/w" });
  give(window, pieces);
  await written(window);
  const [first] = window.segments;
  room = disk.bytes();
  for (const piece of laterRound(pieces, 1)) {
    give(window, [piece]);
    await written(window);
  }
  assert.deepEqual(log.warnings, []);
  assert.ok(first!.isGone);
  assert.ok(disk.bytes() <= room);
  assert.ok(window.segments.filter(({ storage }) => storage === "saved").length > 10);
});

test("LiveWindow: a small or shrinking disk limit keeps segments that are in memory", async () => {
  const pieces = await patternStream();
  const disk = memoryDisk();
  let limitBytes = 3 * MIB;
  const { window } = someWindow({ files: disk.files, folder: "/w", limitBytes: () => limitBytes });
  for (const piece of faster(pieces, 125_000)) {
    give(window, [piece]);
    if (piece.header.isSegmentStart) await written(window);
    assert.ok(disk.bytes() <= limitBytes);
  }
  assert.ok(keptSeconds(window) > 12, `${keptSeconds(window)} s`);
  limitBytes = 0;
  for (const piece of faster(laterRound(pieces, 1), 125_000)) give(window, [piece]);
  await settled();
  assert.equal(disk.bytes(), 0);
  assert.ok(keptSeconds(window) > 12, `${keptSeconds(window)} s`);
});

test("LiveWindow: a stalled disk does not exceed the memory limit, and delays nothing", async () => {
  const pieces = await patternStream();
  const stuck = deferred<void>();
  const disk = memoryDisk(() => stuck.promise);
  const { window, source } = someWindow({ files: disk.files, folder: "/w" });
  const cursor = source.live.cursor(0);
  for (const piece of faster(pieces, 600_000)) {
    give(window, [piece]);
    assert.ok(window.kept.memoryBytes <= (64 + 34 + 34) * MIB);
    if (piece.header.isSegmentStart) await settled();
    assert.ok(await cursor.next(never));
  }
  stuck.resolve();
  await written(window);
  assert.ok(window.kept.memoryBytes < 64 * MIB);
});

test("LiveWindow: players at one place behind the edge share what is joined from small pieces", async () => {
  const pieces = (await patternStream()).slice(0, 120);
  const { window, source } = someWindow();
  give(window, pieces.slice(0, 100));
  const [early, late] = [source.live.cursor(10_000), source.live.cursor(10_000)];
  const first = await early.next(never);
  // It is joined from several pieces, and the same memory for both.
  assert.ok(first!.length > Math.max(...pieces.map(({ bytes }) => bytes.length)));
  assert.equal(await late.next(never), first);
  give(window, pieces.slice(100));
  // The window keeps a few joined reads only; a later reader gets equal bytes.
  const rest = concatBytes(await drained(early));
  assert.deepEqual(concatBytes(await drained(late)), rest);
  const all = concatBytes(pieces.map(({ bytes }) => bytes));
  assert.deepEqual(concatBytes([first!, rest]), all.subarray(all.length - first!.length - rest.length));
});

test("LiveWindow: a read from a removed file completes, the next one is rejected", async () => {
  const pieces = await patternStream();
  const disk = memoryDisk();
  const reading = deferred<void>();
  let isSlow = false;
  const open = async (path: string) => {
    const file = await disk.files.open(path);
    const read: OpenFile["read"] = async (at, into) => {
      if (isSlow) await reading.promise;
      return file.read(at, into);
    };
    return { ...file, read };
  };
  const { window } = someWindow({ files: { ...disk.files, open }, folder: "/w", limitMs: 30_000 });
  give(window, pieces);
  await written(window);
  const oldest = window.segments.find(({ memoryBytes }) => memoryBytes === 0)!;
  isSlow = true;
  const bytes = window.read(oldest, 0, 188);
  await settled();
  give(window, laterRound(pieces, 1));
  assert.equal(oldest.isGone, true);
  await assert.rejects(window.read(oldest, 0, 188), { code: "no_such_segment" });
  reading.resolve();
  assert.equal((await bytes)[0], 0x47);
  await settled();
  assert.ok(![...disk.stored.keys()].some((path) => path.includes(`-${oldest.facts.number}-`)));
});

test("LiveWindow: splits an endless segment; cursors read the parts, manifests omit them", async () => {
  const pieces = await patternStream();
  const { window, source } = someWindow();
  const starts = pieces.flatMap(({ header }, i) => (header.isSegmentStart ? [i] : []));
  const { seq: end } = pieces[starts[1]!]!.header;
  const endless = changed(pieces.slice(0, 60), ({ seq }) =>
    seq < end ? {} : { isSegmentStart: false, segment: pieces[0]!.header.segment },
  );
  const cursor = source.live.cursor(0);
  let read = 0;
  let given = -endless[0]!.header.randomAccessOffset!;
  for (const piece of faster(endless, 2 * MIB)) {
    give(window, [piece]);
    given += piece.bytes.length;
    while (read < given) read += (await cursor.next(never))!.length;
  }
  assert.equal(read, given);
  assert.ok(window.segments.every(({ bytes }) => bytes <= 32 * MIB));
  assert.ok(window.segments.every(({ isListable }) => !isListable));
  assert.ok(window.kept.memoryBytes <= (64 + 34) * MIB);
});

test("LiveWindow: ignores old and repeated pieces, and those of earlier epochs", async () => {
  const pieces = await patternStream();
  const { window } = someWindow();
  give(window, pieces.slice(0, 50));
  const before = window.segments.map(({ bytes }) => bytes);
  give(window, pieces.slice(0, 50));
  give(
    window,
    changed(pieces.slice(50, 90), ({ epoch }) => ({ epoch: epoch - 1 })),
  );
  assert.deepEqual(
    window.segments.map(({ bytes }) => bytes),
    before,
  );
});

test("LiveWindow: drops everything when segment numbers restart", async () => {
  const pieces = await patternStream();
  const { window, source } = someWindow();
  give(window, pieces);
  const name = source.name;
  const anew = changed(pieces, ({ epoch, segment }) => ({ epoch: epoch + 1, segment: segment - 100 }));
  window.restarted();
  give(window, anew);
  assert.notEqual(source.name, name);
  assert.ok(
    window.segments.every(({ isGone, facts }) => isGone || facts.number <= anew.at(-1)!.header.segment),
  );
  assert.equal(window.segments.length, anew.filter(({ header }) => header.isSegmentStart).length);
});

test("LiveWindow: a silent source uses no memory and extends no segment, and a discontinuity follows", async () => {
  const pieces = await patternStream();
  const { window } = someWindow();
  give(window, pieces.slice(0, 100));
  const { header } = pieces[99]!;
  const silence = Array.from(
    { length: 3600 },
    (_, i): StreamPiece => ({
      bytes: new Uint8Array(0),
      header: {
        ...header,
        seq: header.seq + 1 + i,
        timestampMs: header.timestampMs + 1000 * (i + 1),
        spanMs: 1000,
        pieceBytes: 0,
        randomAccessOffset: undefined,
        clockReference: undefined,
        isSegmentStart: false,
      },
    }),
  );
  give(window, silence);
  const rest = changed(pieces.slice(100), ({ seq, timestampMs }) => ({
    seq: seq + 3600,
    timestampMs: timestampMs + 3_600_000,
  }));
  give(window, rest);
  const torn = window.segments.filter(({ isDiscontinuous }) => isDiscontinuous);
  assert.equal(torn.length, 1);
  assert.ok(torn[0]!.facts.startMs > header.timestampMs + 3_600_000);
  assert.ok(window.segments.every(({ durationMs }) => durationMs <= 2100));
  assert.ok(window.longestMs <= 2100);
});

test("LiveWindow: a gap that hides a clock jump is a discontinuity, and ends its segment", async () => {
  const pieces = await patternStream();
  const { window } = someWindow();
  const after = pieces.findIndex(
    ({ header }, i) => i > 60 && header.randomAccessOffset !== undefined && !header.isSegmentStart,
  );
  give(window, pieces.slice(0, 50));
  // The programme clock is an hour ahead from there.
  const moved = changed(pieces.slice(after - 1), ({ clockReference }) =>
    clockReference === undefined ? {} : { clockReference: clockReference + 3600 * 27e6 },
  );
  give(window, moved);
  const jumps = window.segments.filter(({ isDiscontinuous }) => isDiscontinuous);
  assert.equal(jumps.length, 1);
  assert.equal(jumps[0]!.facts.isFromStart, false);
});

test("LiveWindow: the segment before a long outage of the source is as long as its media", async () => {
  const pieces = await patternStream();
  const { window } = someWindow();
  const gone = pieces.findIndex(({ header }, i) => i > 60 && header.isSegmentStart) + 3;
  give(window, pieces.slice(0, gone));
  const first = pieces[gone]!.header.seq;
  give(
    window,
    changed(pieces.slice(gone), ({ seq, timestampMs }) => ({
      seq: seq + 1000,
      timestampMs: timestampMs + 30_000,
      isDiscontinuity: seq === first,
    })),
  );
  const torn = window.segments.find(({ endMs }, i) => window.segments[i + 1]!.facts.startMs > endMs + 20_000);
  assert.ok(torn!.durationMs <= 4 * PIECE_MS, `${torn!.durationMs} ms`);
  assert.ok(window.longestMs <= 2100);
});

test("LiveWindow: data after a jump inside a segment goes to cursors, and into no HLS segment", async () => {
  const pieces = await patternStream();
  const { window, source } = someWindow();
  const starts = pieces.flatMap(({ header }, i) => (header.isSegmentStart ? [i] : []));
  const torn = starts[2]! - 3;
  give(
    window,
    changed(pieces.slice(0, starts[4]), ({ seq }) =>
      seq === pieces[torn]!.header.seq ? { isDiscontinuity: true } : {},
    ),
  );
  const number = pieces[starts[1]!]!.header.segment;
  const whole = window.segments.find(({ facts }) => facts.number === number)!;
  const bytes = await source.make("ts", number, 0, never);
  assert.ok(bytes.length < whole.bytes);
  const next = window.segments.find(({ facts }) => facts.number === number + 1)!;
  assert.equal(next.isDiscontinuous, true);
  assert.deepEqual(whole.parts.at(-1)!.end, bytes.length);
});

/** RFC 8216bis 4.4.4.9. */
function assertPartsAsLongAs(parts: readonly HLS.types.PartialSegment[], target: number, text: string): void {
  const listed = parts.filter(({ hint }) => !hint);
  for (const [index, { duration, independent }] of listed.entries()) {
    assert.ok(duration! <= target, text);
    const isShort = duration! < 0.85 * target;
    assert.ok(!isShort || independent || index === listed.length - 1, text);
  }
}

for (const seed of [1, 2, 3, 4]) {
  test(`LiveWindow: whatever a source signs, its players get whole packets and manifests that can be read (seed ${seed})`, async () => {
    const random = seededRandom(seed);
    const below = (limit: number) => Math.floor(random() * limit);
    const some = <T>(share: number, value: T) => (random() < share ? value : undefined);
    const disk = memoryDisk(() => {
      if (random() < 0.1) throw new SluiceError("disk_full", "the disk is full");
    });
    const { window, source } = someWindow({
      files: disk.files,
      folder: "/w",
      limitMs: 60_000,
      limitBytes: () => below(3) * MIB,
    });
    let [epoch, seq, timestampMs, segment] = [1_700_000_000, 100, 1_700_000_000_000, 850_000_000];
    const cursor = source.live.cursor(below(30_000));
    for (let i = 0; i < 3000; i++) {
      epoch += some(0.01, below(3) - 1) ?? 0;
      seq += some(0.05, below(9) - 3) ?? 1;
      timestampMs += some(0.02, below(4e6) - 2e6) ?? 125;
      segment += some(0.1, below(4)) ?? some(0.01, below(2000) - 1000) ?? 0;
      const bytes = new Uint8Array(below(60_000) * (some(0.1, 0) ?? 1));
      if (random() < 0.5) for (let at = 0; at < bytes.length; at += 188) bytes[at] = 0x47;
      const at = 188 * below(Math.ceil(bytes.length / 188));
      const isEntry = bytes.length > 0 && random() < 0.2;
      const header: PieceHeader = {
        epoch,
        seq,
        timestampMs,
        spanMs: below(5001),
        clockReference: some(0.5, below(2 ** 31) * 1200),
        randomAccessOffset: isEntry ? at : undefined,
        isSegmentStart: isEntry && random() < 0.5,
        segment,
        isDiscontinuity: random() < 0.02,
        isEnd: random() < 0.005,
        pieceBytes: bytes.length,
        previousHash: new Uint8Array(20),
        chunkHashes: new Uint8Array(320),
      };
      if (random() < 0.01) window.restarted();
      if (random() < 0.02) window.skip(seq + below(3));
      give(window, [{ header, bytes }]);
      assert.ok(window.segments.length < 1000);
      assert.ok(window.kept.memoryBytes < 18 * MIB, `${window.kept.memoryBytes}`);
      if (random() < 0.1) cursor.seek((timestampMs / 1000 - below(60)) as UnixSeconds);
      const chunks = random() < 0.1 ? await drained(cursor) : [];
      assert.ok(chunks.every((chunk) => chunk.length % 188 === 0));
      if (random() < 0.1 && window.segments.some(({ isListable }) => isListable)) {
        const shiftMs = some(0.3, below(60_000)) ?? 0;
        const text = await source.manifest({ urls: SHARED_MANIFEST_URLS, shiftMs }, "main", never);
        const list = HLS.parse(text) as HLS.types.MediaPlaylist;
        const segments = list.segments.filter(({ uri }) => uri);
        assert.ok(segments.length > 0 && segments.every(({ duration }) => duration <= 60), text);
        for (const { parts } of list.segments) assertPartsAsLongAs(parts, list.partTargetDuration!, text);
        assert.ok(
          list.segments.slice(0, -3).every(({ parts }) => parts.length === 0),
          text,
        );
      }
    }
    await window.close();
    assert.equal(disk.stored.size, 0);
  });
}

test("partTargetMs: whole pieces of 250 to 500 ms, plus slack", () => {
  assert.deepEqual([50, 125, 200, 250, 500, 1000].map(partTargetMs), [275, 275, 440, 275, 550, 1100]);
  const { pieceMs, segmentMs }: Pick<LiveWindowOptions, "pieceMs" | "segmentMs"> = someWindow().window;
  assert.deepEqual([pieceMs, segmentMs], [PIECE_MS, SEGMENT_MS]);
});
