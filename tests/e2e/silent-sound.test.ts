import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { pidAt, TS_PACKET_BYTES } from "../../src/media/ts-packet.ts";
import { SilentSound } from "../../src/remux/streams/silent-sound.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("ffmpeg");

const AUDIO_PID = 0x101;
/** The codecs of sound that a transport stream of a channel may have, as FFmpeg makes them. */
const CODECS = { aac: "aac", mp2: "mp2", ac3: "ac3", eac3: "eac3", dts: "dca -strict -2" } as const;

const PCM = ["-f", "s16le", "-ac", "1", "-ar", "48000", "-y"];

test("SilentSound: FFmpeg decodes the silence of each codec without errors, as long as the picture", async (t) => {
  const scratch = await tempFolder("silence");
  t.after(() => scratch.remove());
  for (const [codec, encoder] of Object.entries(CODECS)) {
    const [whole, filled] = [scratch.file(`${codec}.ts`), scratch.file(`${codec}-filled.ts`)];
    const picture = ["-f", "lavfi", "-i", "testsrc=s=160x90:r=25", "-f", "lavfi", "-i", "sine=440:r=48000"];
    const codecs = ["-c:v", "libx264", "-preset", "ultrafast", "-c:a", ...encoder.split(" "), "-ac", "2"];
    await run("ffmpeg", ["-v", "error", ...picture, "-t", "4", ...codecs, whole]);
    const bytes = new Uint8Array(await readFile(whole));
    // The tables still name the sound.
    const packets = Array.from({ length: bytes.length / TS_PACKET_BYTES }, (_, i) => i * TS_PACKET_BYTES)
      .filter((at) => pidAt(bytes, at) !== AUDIO_PID)
      .map((at) => bytes.subarray(at, at + TS_PACKET_BYTES));
    await writeFile(filled, new SilentSound().fill(Buffer.concat(packets), { pid: AUDIO_PID, codec }));
    const decode = ["-nostdin", "-v", "error", "-i", filled, "-map", "0:a", ...PCM];
    assert.equal(await run("ffmpeg", [...decode, scratch.file("pcm")]), "", codec);
    const sound = await readFile(scratch.file("pcm"));
    const seconds = sound.length / 2 / 48_000;
    assert.ok(Math.abs(seconds - 4) < 0.2, `${codec}: ${seconds} s`);
    assert.ok(
      new Int16Array(sound.buffer, sound.byteOffset, sound.length / 2).every(
        (sample) => Math.abs(sample) < 4,
      ),
      codec,
    );
  }
});
