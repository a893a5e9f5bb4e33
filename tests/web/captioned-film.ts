import { readFile, writeFile } from "node:fs/promises";
import { concatBytes } from "../../src/base/bytes.ts";
import { annexBNals } from "../../src/media/nal.ts";
import { run } from "../parts/process.ts";

/** H.264 NAL unit types (ITU-T H.264 table 7-1). */
const SLICE = 1;
const KEY_SLICE = 5;
/** Frames from one caption to the next: 2 s. */
const CAPTION_FRAMES = 50;

/** Makes 20 s of video with captions (CEA-608): `CAPTION 1`, `CAPTION 2`, … `draft` is a file that may be overwritten. */
export async function makeCaptionedFilm(path: string, draft: string): Promise<void> {
  const picture = ["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25:duration=20"];
  // Without B-frames and with one slice per frame, so that frames are in the order of their captions.
  const codec = "-c:v libx264 -preset ultrafast -x264-params slices=1 -bf 0 -g 50 -pix_fmt yuv420p".split(
    " ",
  );
  await run("ffmpeg", ["-v", "error", "-y", ...picture, ...codec, "-f", "h264", draft]);
  const bytes = new Uint8Array(await readFile(draft));
  const parts: Uint8Array[] = [];
  let frame = 0;
  for (const { start, end } of annexBNals(bytes)) {
    const type = bytes[start]! & 0x1f;
    if (type === SLICE || type === KEY_SLICE) parts.push(START_CODE, captionSei(pairOf(frame++)));
    parts.push(START_CODE, bytes.subarray(start, end));
  }
  await writeFile(draft, concatBytes(parts));
  const sound = ["-f", "lavfi", "-i", "sine=frequency=440:duration=20"];
  await run("ffmpeg", [
    "-v",
    "error",
    "-framerate",
    "25",
    "-i",
    draft,
    ...sound,
    "-c:v",
    "copy",
    "-c:a",
    "aac",
    path,
  ]);
}

const START_CODE = Uint8Array.of(0, 0, 0, 1);

/** The two bytes of a frame: a caption is loaded (RCL), placed in row 15, and shown (EOC). */
function pairOf(frame: number): readonly [number, number] {
  const text = `CAPTION ${Math.floor(frame / CAPTION_FRAMES) + 1}`.padEnd(12, " ");
  const words = Array.from(
    { length: 6 },
    (_, i) => [text.charCodeAt(2 * i), text.charCodeAt(2 * i + 1)] as const,
  );
  const commands = [[0x14, 0x20], [0x14, 0x70], ...words, [0x14, 0x2f]] as const;
  return (commands[frame % CAPTION_FRAMES] as readonly [number, number] | undefined) ?? [0, 0];
}

/** A supplemental enhancement information unit with one pair of caption bytes (ATSC A/53 part 4, 6.2.3). */
function captionSei(pair: readonly [number, number]): Uint8Array {
  const [first, second] = pair.map(withParity) as [number, number];
  const data = [0xb5, 0, 0x31, ...new TextEncoder().encode("GA94"), 3, 0x41, 0xff, 0xfc, first, second, 0xff];
  return Uint8Array.of(6, 4, data.length, ...data, 0x80);
}

/** Adds odd parity in the highest bit. */
function withParity(value: number): number {
  let ones = 0;
  for (let bits = value; bits > 0; bits >>= 1) ones += bits & 1;
  return ones % 2 === 0 ? value | 0x80 : value;
}
