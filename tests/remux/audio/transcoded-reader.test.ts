import assert from "node:assert/strict";
import { test } from "node:test";
import { onAbort } from "../../../src/async/abort.ts";
import type { AbortSignalLike } from "../../../src/base/byte-source.ts";
import { transcodeFile } from "../../../src/remux/audio/transcoded-reader.ts";
import { AudioTranscoder } from "../../../src/remux/audio/transcoder.ts";
import { BuiltinCodecs } from "../../../src/remux/codecs/builtin-codecs.ts";
import type { SourceTrack } from "../../../src/remux/media-tracks.ts";
import type { PacketReader } from "../../../src/remux/packet-reader.ts";
import type { PacketBatch } from "../../../src/remux/ts-mux-input.ts";
import { readCodecProgram } from "../../../src/runtime/codec-scripts.ts";
import { ac3Tone } from "./encoded-sound.ts";

const transcoder = new AudioTranscoder(new BuiltinCodecs(readCodecProgram));
const CONVERSION = { all: true, mp3: true, ac3: true, isHls: true, channels: 2 } as const;
const TRACK = { kind: "audio", described: { kind: "audio", codec: "ac3" } } as SourceTrack;

test("transcodeFile: a player that leaves ends the wait for the bytes before its segment", async () => {
  const tone = await ac3Tone(0.3);
  const waiting = Promise.withResolvers<void>();
  const reader = {
    first: async () => tone[0]!,
    demux: async () => ({
      demuxer: new TransformStream<Uint8Array, PacketBatch>({
        transform: (_, controller) => controller.enqueue({ packets: tone, endsSegment: true }),
      }),
    }),
    tail: (_track: unknown, _segment: unknown, _seconds: number, signal?: AbortSignalLike) =>
      new Promise((_, reject) => {
        onAbort(signal, () => reject(signal?.reason));
        waiting.resolve();
      }),
  } as unknown as PacketReader;
  const file = await transcodeFile({ reader, tracks: [TRACK], cuts: [0, 1] }, CONVERSION, transcoder);
  const player = new AbortController();
  const segment = { startSeconds: 1, endSeconds: Number.POSITIVE_INFINITY };
  const { demuxer } = await file.reader.demux(file.tracks, [segment], player.signal);
  const made = demuxer.readable.getReader().read();
  demuxer.writable
    .getWriter()
    .write(new Uint8Array(1))
    .catch(() => {});
  await waiting.promise;
  player.abort(new Error("the player has left"));
  await assert.rejects(made, /the player has left/);
});
