import type { AudioSource } from "./codecs.ts";
import { type FrameDecoder, layoutOf, type Samples } from "./samples.ts";

/** Reads one sample at a byte position, full scale ±1. */
type ReadSample = (view: DataView, at: number) => number;

/** Bytes per sample and reader, for the codec names of mediabunny. */
const FORMATS: Readonly<Record<string, readonly [number, ReadSample]>> = {
  "pcm-u8": [1, (view, at) => (view.getUint8(at) - 128) / 128],
  "pcm-s8": [1, (view, at) => view.getInt8(at) / 128],
  "pcm-s16": [2, (view, at) => view.getInt16(at, true) / 2 ** 15],
  "pcm-s16be": [2, (view, at) => view.getInt16(at) / 2 ** 15],
  "pcm-s24": [3, (view, at) => (view.getInt16(at + 1, true) * 256 + view.getUint8(at)) / 2 ** 23],
  "pcm-s24be": [3, (view, at) => (view.getInt16(at) * 256 + view.getUint8(at + 2)) / 2 ** 23],
  "pcm-s32": [4, (view, at) => view.getInt32(at, true) / 2 ** 31],
  "pcm-s32be": [4, (view, at) => view.getInt32(at) / 2 ** 31],
  "pcm-f32": [4, (view, at) => view.getFloat32(at, true)],
  "pcm-f32be": [4, (view, at) => view.getFloat32(at)],
  "pcm-f64": [8, (view, at) => view.getFloat64(at, true)],
  "pcm-f64be": [8, (view, at) => view.getFloat64(at)],
};

/** Opens the decoder for uncompressed samples; undefined if the format or the number of channels is not supported. */
export function openPcm({ codec, sampleRate = 48000, channels = 2 }: AudioSource): FrameDecoder | undefined {
  const format = FORMATS[codec];
  const layout = layoutOf(channels);
  if (!format || !layout) return undefined;
  const [bytes, read] = format;
  return {
    decode(frame): Samples | undefined {
      const count = Math.floor(frame.length / (bytes * channels));
      if (count === 0) return undefined;
      const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
      const planes = Array.from({ length: channels }, (_, channel) => {
        const plane = new Float32Array(count);
        for (let i = 0; i < count; i++) {
          const value = read(view, (i * channels + channel) * bytes);
          plane[i] = Number.isFinite(value) ? value : 0;
        }
        return plane;
      });
      return { sampleRate, channels: planes, layout };
    },
    close() {},
  };
}

/** Returns true if {@link openPcm} supports this codec. */
export function isPcm(codec: string): boolean {
  return Object.hasOwn(FORMATS, codec);
}
