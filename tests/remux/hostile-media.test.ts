import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import type { RandomAccess } from "../../src/base/byte-source.ts";
import { SluiceError } from "../../src/base/errors.ts";
import { randomBelow, seededRandom } from "../../src/base/random.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { hasFfmpeg, lavfi, makeMedia } from "./make-media.ts";
import { memoryAccess } from "./media-judges.ts";

const skip = !(await hasFfmpeg());
const CODECS = "-c:v libx264 -preset ultrafast -g 25 -bf 2 -c:a aac".split(" ");

const FILES = {
  "an MP4": ["hostile.mp4", []],
  "a fragmented MP4": ["hostile-fragmented.mp4", ["-movflags", "+frag_keyframe+empty_moov"]],
  "a Matroska": ["hostile.mkv", []],
} as const;

async function bytesOf(what: keyof typeof FILES): Promise<Uint8Array> {
  const [name, extra] = FILES[what];
  return new Uint8Array(await readFile(await makeMedia(name, [...lavfi(6), ...CODECS, ...extra])));
}

/** Opens and reads everything; what goes wrong must be a SluiceError. True where all of it could be read. */
async function devour(source: RandomAccess): Promise<boolean> {
  try {
    const media = await openMedia(source, { targetSeconds: 1 });
    let isWhole = true;
    for (let i = 0; i < Math.min(media.segments.length, 20); i++) {
      for (const work of [media.tsSegment(i), media.fmp4Segment(i)]) {
        await work.catch((error: unknown) => {
          assert.ok(error instanceof SluiceError, `a SluiceError, not ${(error as Error).stack}`);
          isWhole = false;
        });
      }
    }
    media.close();
    return isWhole;
  } catch (error) {
    assert.ok(error instanceof SluiceError, `a SluiceError, not ${(error as Error).stack}`);
    return false;
  }
}

for (const what of Object.keys(FILES) as (keyof typeof FILES)[]) {
  test(`openMedia ${what} that is cut anywhere: a SluiceError or its segments, never a hang`, {
    skip,
  }, async () => {
    const bytes = await bytesOf(what);
    for (let i = 0; i <= 40; i++)
      await devour(memoryAccess(bytes.subarray(0, Math.floor((bytes.length * i) / 40))));
    for (let length = 0; length < 4096; length += 97) await devour(memoryAccess(bytes.subarray(0, length)));
    assert.equal(await devour(memoryAccess(bytes)), true);
  });

  test(`openMedia ${what} with broken bytes: a SluiceError or its segments, never a hang`, {
    skip,
  }, async () => {
    const bytes = await bytesOf(what);
    const random = seededRandom(20);
    for (let i = 0; i < 150; i++) {
      const broken = bytes.slice();
      // Most of the damage where the structure is: the head, and the index at the end.
      for (let k = 0; k < 1 + (i % 8); k++) {
        const near = randomBelow(random, Math.min(4096, bytes.length));
        const at = [near, bytes.length - 1 - near, randomBelow(random, bytes.length)][i % 3]!;
        broken[at] = randomBelow(random, 256);
      }
      await devour(memoryAccess(broken));
    }
  });
}

const text = (value: string) => new TextEncoder().encode(value.padEnd(64, "\0"));

for (const [what, bytes, message] of [
  ["nothing", new Uint8Array(0), /no media file/],
  ["text", text("hello, I am no film"), /no media file/],
  ["MP3", text("ID3\u0003"), /MP3 .*\/files\//],
  ["FLAC", text("fLaC"), /FLAC .*\/files\//],
  ["Ogg", text("OggS"), /Ogg .*\/files\//],
  ["WAV", text("RIFF....WAVE"), /WAV .*\/files\//],
] as const) {
  test(`openMedia ${what}: unsupported_container, and what to do instead`, async () => {
    await assert.rejects(openMedia(memoryAccess(bytes)), (error: SluiceError) => {
      assert.equal(error.code, "unsupported_container");
      assert.match(error.message, message);
      return true;
    });
  });
}

test("openMedia signal: ends an opening that waits for bytes", async () => {
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
  test(`Media.tsSegment signal and close, ${what}: end what waits, and only that`, { skip }, async () => {
    const bytes = await bytesOf(what);
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
    const expected = await media.tsSegment(1);
    isSilent = true;
    const stop = new AbortController();
    const waiting = media.tsSegment(3, stop.signal);
    stop.abort();
    await assert.rejects(waiting, { code: "cancelled" });
    isSilent = false;
    assert.deepEqual(await media.tsSegment(1), expected);
    isSilent = true;
    const other = media.tsSegment(4);
    media.close();
    await assert.rejects(other, { code: "cancelled" });
    await assert.rejects(media.tsSegment(1), { code: "cancelled" });
  });
}
