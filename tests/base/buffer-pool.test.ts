import assert from "node:assert/strict";
import { test } from "node:test";
import { BufferPool } from "../../src/base/buffer-pool.ts";
import type { RandomAccess } from "../../src/base/byte-source.ts";
import { concatBytes, equalBytes } from "../../src/base/bytes.ts";
import type { Remux } from "../../src/remux/contract.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { pieceStream, streamChunks } from "../../src/remux/piece-stream.ts";
import { connect } from "../../src/remux/remuxer.ts";
import { demuxSamples, type PlannedSample, sliceSamples } from "../../src/remux/sample-demuxer.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";
import { fixture } from "../parts/media-fixtures.ts";
import { memoryAccess } from "../remux/media-checks.ts";
import { seededRandom } from "../seeded-random.ts";

/** Overwrites all memory that is given back, so that a later use of it shows. */
class PoisonedPool extends BufferPool {
  override give(bytes: Uint8Array): void {
    new Uint8Array(bytes.buffer).fill(0xdb);
    super.give(bytes);
  }
}

/** Memory is never used again. */
class FreshPool extends BufferPool {
  override give(): void {}
}

/** Reads a stream to its end as a player does: copies each chunk and returns its memory. */
async function played({ pool, ...remux }: Remux): Promise<Uint8Array> {
  const reader = pieceStream({ ...remux, pool })
    .pipeThrough(remux.remuxer)
    .getReader();
  const parts: Uint8Array[] = [];
  for (let got = await reader.read(); !got.done; got = await reader.read()) {
    parts.push(got.value.slice());
    pool?.give(got.value);
  }
  return concatBytes(parts);
}

/** Runs `work` while all pools behave as `pool`. */
async function withGive<T>(pool: BufferPool, work: () => Promise<T>): Promise<T> {
  const { give } = BufferPool.prototype;
  BufferPool.prototype.give = Object.getPrototypeOf(pool).give;
  try {
    return await work();
  } finally {
    BufferPool.prototype.give = give;
  }
}

class OverwrittenPool extends BufferPool {
  override give({ buffer }: Uint8Array): void {
    new Uint8Array(buffer).fill(0xdb);
  }
}

for (const name of ["front.mp4", "fragments.mp4", "ac3.mkv", "streamed.mkv", "clip.mpegts"])
  test(`BufferPool: no memory of ${name} is used after it was given back`, async () => {
    const stream = async () =>
      played(await (await openMedia(memoryAccess(await fixture(name)), { targetSeconds: 2 })).remux("ts", 0));
    const expected = await withGive(new FreshPool(), stream);
    assert.ok(equalBytes(await withGive(new OverwrittenPool(), stream), expected));
  });

for (const name of ["ac3.mkv", "streamed.mkv"])
  test(`matroskaDemuxer: ${name} has the same packets however its bytes are cut`, async () => {
    const bytes = await fixture(name);
    const open = async () => (await openMedia(memoryAccess(bytes), { targetSeconds: 2 })).remux("ts", 0);
    const expected = await withGive(new FreshPool(), async () => played(await open()));
    const random = seededRandom(3);
    for (const most of [1, 13, 700, 40_000]) {
      const stream = async () => {
        const { ranges, remuxer } = await open();
        const cut = async function* () {
          for await (const { start, end } of ranges(new AbortController().signal))
            for (let at = start; at < end; ) {
              const to = Math.min(end, at + 1 + Math.floor(most * random()));
              yield bytes.slice(at, to);
              at = to;
            }
        };
        const cuts = cut();
        const pieces = new ReadableStream<Uint8Array<ArrayBuffer>>({
          async pull(controller) {
            const { done, value } = await cuts.next();
            if (value) controller.enqueue(value);
            if (done) controller.close();
          },
        });
        return concatBytes(await streamChunks(pieces.pipeThrough(remuxer)));
      };
      // The muxer divides its output by its inputs, so the packets are compared and not the chunks.
      assert.ok(equalBytes(await withGive(new OverwrittenPool(), stream), expected), `cuts of ${most}`);
    }
  });

/** A film of 8 MB: video frames of up to 60 kB, and audio frames that the file stores a little later. */
function someFilm() {
  const random = seededRandom(7);
  const content = Uint8Array.from({ length: 8 * 1024 * 1024 }, () => 256 * random());
  const [video, audio]: PlannedSample[][] = [[], []];
  let at = 0;
  const sample = (track: number, ptsSeconds: number, size: number, durationSeconds: number) => {
    const isKey = track === 1 || video!.length % 50 === 0;
    const planned = { track, ptsSeconds, durationSeconds, isKey, at, size, data: new Uint8Array(0) };
    at += size;
    return planned;
  };
  for (let frame = 0; at < content.length - 100_000; frame++) {
    video!.push(sample(0, frame / 25, 2_000 + Math.floor(58_000 * random()), 0.04));
    if (frame % 3 === 2)
      for (let i = 0; i < 5; i++) audio!.push(sample(1, (frame - 2) / 25 + i * 0.024, 400, 0.024));
  }
  const source: RandomAccess = {
    size: content.length,
    read: async ({ start, end }) => content.slice(start, end),
    sequence: () => ({
      read: (position, into) => void into.set(content.subarray(position, position + into.length)),
      close: () => {},
    }),
  };
  return { source, tracks: [video!, audio!] };
}

function remuxOf({ source, tracks }: ReturnType<typeof someFilm>, pool: BufferPool): Remux {
  const plan = tracks.map((track) => track.map((sample) => ({ ...sample })));
  const { ranges, demuxer } = demuxSamples(() => sliceSamples(plan, true, source.size), pool);
  const muxer = new TsMuxer([
    { codec: "h264", language: "und", reorderFrames: 2 },
    { codec: "mp3", language: "und", sampleRate: 48_000 },
  ]);
  const remuxer = connect(demuxer, muxer.remuxer(pool));
  return { source, ranges, closed: new AbortController().signal, remuxer, pool };
}

test("BufferPool: a stream in memory that is used again has the same bytes", async () => {
  const film = someFilm();
  const expected = await played(remuxOf(film, new FreshPool()));
  assert.ok(expected.length > 8_000_000);
  assert.ok(equalBytes(await played(remuxOf(film, new PoisonedPool())), expected));
});

test("BufferPool: two players of one file share a pool", async () => {
  const film = someFilm();
  const expected = await played(remuxOf(film, new FreshPool()));
  const pool = new PoisonedPool();
  const both = await Promise.all([played(remuxOf(film, pool)), played(remuxOf(film, pool))]);
  for (const bytes of both) assert.ok(equalBytes(bytes, expected));
});

test("demuxSamples: batches have at least 64 KiB, and outputs about 256 KiB", async () => {
  const film = someFilm();
  const { ranges, demuxer } = demuxSamples(
    () => sliceSamples(film.tracks, true, film.source.size),
    new BufferPool(),
  );
  const pieces = pieceStream({ source: film.source, ranges, closed: new AbortController().signal });
  const sizes = (await streamChunks(pieces.pipeThrough(demuxer))).map(({ packets }) =>
    packets.reduce((sum, { data }) => sum + data.length, 0),
  );
  assert.ok(Math.min(...sizes.slice(0, -1)) >= 64 * 1024);
  const remux = remuxOf(film, new BufferPool());
  const outputs = (await streamChunks(pieceStream(remux).pipeThrough(remux.remuxer))).map(
    ({ length }) => length,
  );
  assert.ok(outputs.reduce((sum, length) => sum + length, 0) / outputs.length > 64 * 1024);
  assert.ok(Math.max(...outputs) < 384 * 1024);
});
