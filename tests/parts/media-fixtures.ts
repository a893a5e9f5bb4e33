import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { concatBytes } from "../../src/base/bytes.ts";
import { PATTERN_SOUND_CONFIG } from "../../src/media/test-pattern/sound.ts";
import { TestPattern } from "../../src/media/test-pattern/test-pattern.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";

/** The path of a media file of `tests/fixtures/media`; `make.sh` in that folder makes each of them. */
export function fixturePath(name: string): string {
  return fileURLToPath(new URL(`../fixtures/media/${name}`, import.meta.url));
}

/** The bytes of a media file of `tests/fixtures/media`. */
export async function fixture(name: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await readFile(fixturePath(name)));
}

/** The test pattern from a Unix time on as MPEG-TS: about 1 Mbit/s, 25 frames/s, a keyframe each second. */
export function patternTs(seconds: number, fromUnixSeconds = 1_709_251_197): Uint8Array<ArrayBuffer> {
  const muxer = new TsMuxer([
    { codec: "h264", language: "und" },
    { codec: "aac", language: "und", config: PATTERN_SOUND_CONFIG },
  ]);
  const pattern = new TestPattern();
  return concatBytes(
    Array.from({ length: seconds }, (_, i) =>
      muxer.segment(
        pattern
          .second(fromUnixSeconds + i)
          .map((frame) => ({ ...frame, track: frame.track === "video" ? 0 : 1 })),
      ),
    ),
  );
}
