import {
  CodecModules,
  type FfmpegDecoders,
  type FfmpegModule,
} from "../../../src/remux/codecs/codec-module.ts";
import type { TsMuxPacket } from "../../../src/remux/ts-mux-input.ts";
import { readCodecProgram } from "../../../src/runtime/codec-scripts.ts";

interface Encoders extends FfmpegModule {
  _init_encoder(codec: number, channels: number, sampleRate: number, bitsPerSecond: number): number;
  _get_encoder_frame_size(context: number): number;
  _get_encode_input_ptr(context: number, bytes: number): number;
  _encode_frame(context: number, pts: bigint): number;
  _get_encoded_data(context: number): number;
}

/** Encodes a rising tone as AC-3 with the encoder of the package, so that tests need no ffmpeg. */
export async function ac3Tone(
  seconds: number,
  channels = 2,
  level = 0.4,
  sampleRate = 48000,
): Promise<TsMuxPacket[]> {
  const modules = new CodecModules(readCodecProgram);
  const module = (await modules.ffmpeg<FfmpegDecoders>("ac3")) as unknown as Encoders;
  const context = module._init_encoder(0, channels, sampleRate, channels > 2 ? 384_000 : 192_000);
  const samples = module._get_encoder_frame_size(context);
  const packets: TsMuxPacket[] = [];
  for (let frame = 0; frame < Math.ceil((seconds * sampleRate) / samples); frame++) {
    const input = module._get_encode_input_ptr(context, samples * channels * 4);
    const pcm = new Float32Array(module.HEAPU8.buffer, input, samples * channels);
    for (let i = 0; i < samples; i++) {
      const time = (frame * samples + i) / sampleRate;
      for (let channel = 0; channel < channels; channel++)
        pcm[i * channels + channel] =
          level * Math.sin(2 * Math.PI * (200 + 50 * time + 100 * channel) * time);
    }
    const size = module._encode_frame(context, BigInt(frame * samples));
    const at = module._get_encoded_data(context);
    const data = module.HEAPU8.slice(at, at + size);
    packets.push({
      track: 0,
      ptsSeconds: (frame * samples) / sampleRate,
      durationSeconds: samples / sampleRate,
      isKey: true,
      data,
    });
  }
  return packets;
}
