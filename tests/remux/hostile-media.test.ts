import assert from "node:assert/strict";
import { test } from "node:test";
import type { RandomAccess } from "../../src/base/byte-source.ts";
import { fromHex, latin1Bytes } from "../../src/base/bytes.ts";
import { SluiceError } from "../../src/base/errors.ts";
import { randomBelow } from "../../src/base/random.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { fixture } from "../parts/media-fixtures.ts";
import { seededRandom } from "../seeded-random.ts";
import { memoryAccess } from "./media-checks.ts";
import { fmp4Segment, rangeOfTs, tsSegment } from "./segments.ts";

const FILES = {
  "an MP4": "end.mp4",
  "a fragmented MP4": "fragments.mp4",
  "a Matroska": "ac3.mkv",
} as const;

/** Opens a file and reads all of it; errors must be `SluiceError`. Returns true if everything could be read. */
async function readAll(source: RandomAccess): Promise<boolean> {
  try {
    const media = await openMedia(source, { targetSeconds: 1 });
    let isWhole = true;
    for (let i = 0; i < Math.min(media.segments.length, 20); i++) {
      for (const work of [tsSegment(media, i), fmp4Segment(media, i)]) {
        await work.catch((error: unknown) => {
          assert.ok(error instanceof SluiceError, `a SluiceError, not ${(error as Error).stack}`);
          isWhole = false;
        });
      }
    }
    const seekable = await media.seekableTs?.();
    if (seekable) {
      const range = { start: seekable.size >> 1, end: seekable.size };
      const work = rangeOfTs(media, range).then(({ length }) =>
        assert.equal(length, range.end - range.start),
      );
      await work.catch((error: unknown) => {
        if (!(error instanceof SluiceError)) throw error;
        isWhole = false;
      });
    }
    media.close();
    return isWhole;
  } catch (error) {
    assert.ok(error instanceof SluiceError, `a SluiceError, not ${(error as Error).stack}`);
    return false;
  }
}

for (const what of Object.keys(FILES) as (keyof typeof FILES)[]) {
  test(`openMedia ${what} truncated anywhere: gives a SluiceError or its segments, and never hangs`, async () => {
    const bytes = await fixture(FILES[what]);
    for (let i = 0; i <= 40; i++)
      await readAll(memoryAccess(bytes.subarray(0, Math.floor((bytes.length * i) / 40))));
    for (let length = 0; length < 4096; length += 97) await readAll(memoryAccess(bytes.subarray(0, length)));
    assert.equal(await readAll(memoryAccess(bytes)), true);
  });

  test(`openMedia ${what} with damaged bytes: gives a SluiceError or its segments, and never hangs`, async () => {
    const bytes = await fixture(FILES[what]);
    const random = seededRandom(20);
    for (let i = 0; i < 150; i++) {
      const broken = bytes.slice();
      // Most of the damage is in the structure: the head, and the index at the end.
      for (let k = 0; k < 1 + (i % 8); k++) {
        const near = randomBelow(random, Math.min(4096, bytes.length));
        const at = [near, bytes.length - 1 - near, randomBelow(random, bytes.length)][i % 3]!;
        broken[at] = randomBelow(random, 256);
      }
      await readAll(memoryAccess(broken));
    }
  });
}

/** The number of PES packets of a transport stream: one for each packet of a track. */
function pesCount(ts: Uint8Array): number {
  let count = 0;
  for (let at = 0; at < ts.length; at += 188) {
    const hasAdaptation = (ts[at + 3]! & 0x20) !== 0;
    const payload = at + 4 + (hasAdaptation ? 1 + ts[at + 4]! : 0);
    const isStart = (ts[at + 1]! & 0x40) !== 0 && payload + 2 < at + 188;
    if (isStart && ts[payload] === 0 && ts[payload + 1] === 0 && ts[payload + 2] === 1) count++;
  }
  return count;
}

for (const name of ["front.mp4", "fragments.mp4", "sidx.mp4"]) {
  test(`openMedia ${name}, truncated: plays the packets that are completely in the file`, async () => {
    const bytes = await fixture(name);
    const count = async (source: RandomAccess) => {
      const media = await openMedia(source, { targetSeconds: 1 });
      const segments = await Promise.all(media.segments.map((_, i) => tsSegment(media, i)));
      media.close();
      return segments.reduce((sum, segment) => sum + pesCount(segment), 0);
    };
    const [whole, cut] = [
      await count(memoryAccess(bytes)),
      await count(memoryAccess(bytes.subarray(0, Math.floor(bytes.length * 0.8)))),
    ];
    // The head takes a share, and scenes differ in size.
    assert.ok(cut > 0.65 * whole && cut < whole, `${cut} of ${whole}`);
  });
}

const text = (value: string) => latin1Bytes(value.padEnd(64, "\0"));

for (const [what, bytes, message] of [
  ["nothing", new Uint8Array(0), /media format is not supported/],
  ["text", text("hello, I am no film"), /media format is not supported/],
] as const) {
  test(`openMedia ${what}: unsupported_container with advice what to do instead`, async () => {
    await assert.rejects(openMedia(memoryAccess(bytes)), (error: SluiceError) => {
      assert.equal(error.code, "unsupported_container");
      assert.match(error.message, message);
      return true;
    });
  });
}

for (const [name, bytes, mime] of [
  ["MP3", text("ID3\u0003"), "audio/mpeg"],
  ["AAC", Uint8Array.of(0xff, 0xf1, 0x50, 0x80, 2, 0x1f, 0xfc, 0), "audio/aac"],
  ["FLAC", text("fLaC"), "audio/flac"],
  ["Ogg", text("OggS........OpusHead"), "audio/ogg"],
  ["WAV", text("RIFF....WAVE"), "audio/wav"],
  ["AVI", text("RIFF....AVI "), "video/x-msvideo"],
  ["FLV", text("FLV\x01"), "video/x-flv"],
  ["WMA", fromHex("3026b2758e66cf11a6d900aa0062ce6c")!, "audio/x-ms-wma"],
  ["WMV", fromHex("3026b2758e66cf11c0ef19bc4d5bcf11a8fd00805f5c442b")!, "video/x-ms-wmv"],
  ["MPEG-PS", text("\0\0\x01\xba"), "video/mpeg"],
] as const) {
  test(`openMedia ${name}: played as the file itself, with advice for HLS`, async () => {
    const media = await openMedia(memoryAccess(bytes));
    assert.deepEqual([media.container, media.rawMime], ["raw", mime]);
    assert.match(media.fmp4Problem!.message, new RegExp(`^${name} files are not remuxed; .*/files/`));
    await assert.rejects(tsSegment(media, 0), { code: "unsupported_container" });
  });
}

test("openMedia signal: cancels an opening that waits for bytes", async () => {
  const stop = new AbortController();
  const silent: RandomAccess = {
    size: 1 << 20,
    read: (_, options) =>
      new Promise((_resolve, reject) => {
        options?.signal?.addEventListener("abort", () => reject(options.signal!.reason), { once: true });
      }),
  };
  const opening = openMedia(silent, { signal: stop.signal });
  stop.abort();
  await assert.rejects(opening, { code: "cancelled" });
});

for (const what of Object.keys(FILES) as (keyof typeof FILES)[]) {
  test(`Media.tsSegment signal and close, ${what}: cancel waiting calls only`, async () => {
    const bytes = await fixture(FILES[what]);
    let isSilent = false;
    const source: RandomAccess = {
      size: bytes.length,
      read: async ({ start, end }, options) => {
        if (!isSilent) return bytes.slice(start, end) as Uint8Array<ArrayBuffer>;
        return new Promise((_, reject) => {
          options?.signal?.addEventListener("abort", () => reject(options.signal!.reason), { once: true });
        });
      },
    };
    const media = await openMedia(source, { targetSeconds: 1 });
    const expected = await tsSegment(media, 1);
    isSilent = true;
    const stop = new AbortController();
    const waiting = tsSegment(media, 3, stop.signal);
    stop.abort();
    await assert.rejects(waiting, { code: "cancelled" });
    isSilent = false;
    assert.deepEqual(await tsSegment(media, 1), expected);
    isSilent = true;
    const other = tsSegment(media, 4);
    media.close();
    await assert.rejects(other, { code: "cancelled" });
    await assert.rejects(tsSegment(media, 1), { code: "cancelled" });
  });
}
