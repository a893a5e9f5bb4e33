import { type Ac3Programme, readAc3Programme } from "../../media/ac3.ts";
import { readDtsHeader } from "../../media/audio-headers.ts";
import { decodeFlacFrame, readFlacConfig } from "../../media/flac.ts";
import type { CodecModules, FfmpegDecoders } from "./codec-module.ts";
import type { AudioSource } from "./codecs.ts";
import { isPcm, openPcm } from "./pcm.ts";
import { type FrameDecoder, layoutOf, type Samples, type Speaker } from "./samples.ts";

/** Larger frames are damaged; the largest that occur, of DTS-HD, have 32 KiB. */
const MAX_FRAME_BYTES = 256 * 1024;

const FFMPEG = { ac3: ["ac3", 0], eac3: ["ac3", 1], dts: ["dts", 0] } as const;

/** The scripts of decoders that are not FFmpeg's. */
const LIBRARIES = { mp2: "mpeg", mp3: "mpeg", opus: "opus" } as const;

/** Returns true if `openDecoder` has a decoder for this codec. */
export function isDecodable(codec: string): boolean {
  return Object.hasOwn(FFMPEG, codec) || Object.hasOwn(LIBRARIES, codec) || codec === "flac" || isPcm(codec);
}

/** Loads the module of a decoder; undefined if it needs none. */
export function loadDecoder(modules: CodecModules, codec: string): Promise<unknown> | undefined {
  if (Object.hasOwn(FFMPEG, codec)) return modules.ffmpeg(FFMPEG[codec as keyof typeof FFMPEG][0]);
  return Object.hasOwn(LIBRARIES, codec)
    ? modules.exports(LIBRARIES[codec as keyof typeof LIBRARIES])
    : undefined;
}

/** Opens a decoder; undefined if the format is not supported. Rejects with `unsupported_codec` if the codec cannot be loaded. */
export async function openDecoder(
  modules: CodecModules,
  source: AudioSource,
): Promise<FrameDecoder | undefined> {
  const decoder = await openAny(modules, source);
  return (
    decoder && {
      decode: (frame) =>
        frame.length > 0 && frame.length <= MAX_FRAME_BYTES ? decoder.decode(frame) : undefined,
      close: () => decoder.close(),
    }
  );
}

async function openAny(modules: CodecModules, source: AudioSource): Promise<FrameDecoder | undefined> {
  const { codec, config } = source;
  if (Object.hasOwn(FFMPEG, codec)) {
    const [script, id] = FFMPEG[codec as keyof typeof FFMPEG];
    const module = await modules.ffmpeg<FfmpegDecoders>(script);
    const decoder = new FfmpegDecoder(module, id, () => modules.discard(script));
    return codec === "dts" ? dtsCore(decoder) : decoder;
  }
  if (codec === "mp2" || codec === "mp3") {
    const { MPEGDecoder } = (await modules.exports("mpeg")) as unknown as { MPEGDecoder: LibraryClass };
    return openLibrary(new MPEGDecoder({ enableGapless: false }), undefined);
  }
  if (codec === "opus") {
    const { OpusDecoder } = (await modules.exports("opus")) as unknown as { OpusDecoder: LibraryClass };
    const { options, layout } = opusOptions(config);
    return openLibrary(new OpusDecoder(options), layout);
  }
  if (codec === "flac") return flacDecoder(config);
  return isPcm(codec) ? openPcm(source) : undefined;
}

/** Decodes the core of DTS-HD, whose extensions can have other rates and channels than AAC. */
function dtsCore(decoder: FrameDecoder): FrameDecoder {
  return {
    decode: (frame) => decoder.decode(frame.subarray(0, readDtsHeader(frame, 0)?.frameBytes ?? frame.length)),
    close: () => decoder.close(),
  };
}

function flacDecoder(config: Uint8Array | undefined): FrameDecoder {
  const defaults = readFlacConfig(config);
  return {
    decode(frame) {
      const samples = decodeFlacFrame(frame, defaults);
      const layout = samples && layoutOf(samples.channels.length);
      return layout && { ...samples, layout };
    },
    close() {},
  };
}

/** Sample formats of FFmpeg (`AVSampleFormat`), all planar. */
const S16 = 6;
const S32 = 7;
const FLOAT = 8;

class FfmpegDecoder implements FrameDecoder {
  readonly #module: FfmpegDecoders;
  readonly #failed: () => void;
  /** The samples of the last frame, used again: those of a film would be most of the garbage. */
  readonly #planes: Float32Array[] = [];
  #context: number;

  constructor(module: FfmpegDecoders, codec: number, failed: () => void) {
    this.#module = module;
    this.#failed = failed;
    this.#context = module._init_decoder(codec);
  }

  decode(frame: Uint8Array): Samples | undefined {
    const module = this.#module;
    const context = this.#context;
    if (context === 0) return undefined;
    try {
      const input = module._configure_decode_packet(context, frame.length);
      if (input === 0) return undefined;
      module.HEAPU8.set(frame, input);
      if (module._decode_packet(context, 0n) < 0) return undefined;
      const count = module._get_decoded_sample_count(context);
      const channels = Array.from({ length: module._get_decoded_channels(context) }, (_, channel) =>
        this.#plane(channel, module._get_decoded_plane_ptr(context, channel), count),
      );
      const layout = ac3Layout(readAc3Programme(frame, 0), channels.length) ?? layoutOf(channels.length);
      if (!layout || channels.includes(undefined)) return undefined;
      return {
        sampleRate: module._get_decoded_sample_rate(context),
        channels: channels as Float32Array[],
        layout,
      };
    } catch {
      // The code trapped: nothing in its memory can be trusted, including this context.
      this.#context = 0;
      this.#failed();
      return undefined;
    }
  }

  close(): void {
    if (this.#context !== 0) this.#module._close_decoder(this.#context);
    this.#context = 0;
  }

  #plane(channel: number, at: number, count: number): Float32Array | undefined {
    const { buffer } = this.#module.HEAPU8;
    const format = this.#module._get_decoded_format(this.#context);
    const known = this.#planes[channel];
    const plane = known?.length === count ? known : new Float32Array(count);
    this.#planes[channel] = plane;
    if (format === FLOAT) plane.set(new Float32Array(buffer, at, count));
    else if (format === S16) plane.set(new Int16Array(buffer, at, count));
    else if (format === S32) plane.set(new Int32Array(buffer, at, count));
    else return undefined;
    const fullScale = format === S16 ? 2 ** 15 : format === S32 ? 2 ** 31 : 1;
    if (fullScale > 1) for (let i = 0; i < count; i++) plane[i] = plane[i]! / fullScale;
    return plane;
  }
}

/** The channels of each audio coding mode, in the order of FFmpeg. */
const AC3_MODES: readonly (readonly Speaker[])[] = [
  ["L", "R"],
  ["C"],
  ["L", "R"],
  ["L", "R", "C"],
  ["L", "R", "MB"],
  ["L", "R", "C", "MB"],
  ["L", "R", "SL", "SR"],
  ["L", "R", "C", "SL", "SR"],
];

/** Undefined if the header does not describe all channels, as in E-AC-3 with more than 5.1. */
function ac3Layout(programme: Ac3Programme | undefined, count: number): readonly Speaker[] | undefined {
  if (!programme) return undefined;
  const main = AC3_MODES[programme.mode]!;
  const front = main.filter((speaker) => speaker === "L" || speaker === "R" || speaker === "C");
  const layout = programme.hasLowFrequencies ? [...front, "LFE" as const, ...main.slice(front.length)] : main;
  return layout.length === count ? layout : undefined;
}

/** A decoder of `mpg123-decoder` or `opus-decoder`. */
interface LibraryDecoder {
  readonly ready: Promise<void>;
  decodeFrame(frame: Uint8Array): {
    readonly channelData: readonly Float32Array[];
    readonly samplesDecoded: number;
    readonly sampleRate: number;
  };
  free(): void;
}

type LibraryClass = new (options: Readonly<Record<string, unknown>>) => LibraryDecoder;

async function openLibrary(
  decoder: LibraryDecoder,
  layout: readonly Speaker[] | undefined,
): Promise<FrameDecoder> {
  await decoder.ready;
  return {
    decode(frame) {
      try {
        const { channelData, samplesDecoded, sampleRate } = decoder.decodeFrame(frame);
        const speakers = layout ?? layoutOf(channelData.length);
        if (samplesDecoded === 0 || !speakers || speakers.length !== channelData.length) return undefined;
        return { sampleRate, channels: channelData, layout: speakers };
      } catch {
        return undefined;
      }
    },
    close: () => decoder.free(),
  };
}

/** The channel order of Vorbis, which Opus uses (RFC 7845 5.1.1.2). */
const VORBIS_LAYOUTS: readonly (readonly Speaker[])[] = [
  [],
  ["C"],
  ["L", "R"],
  ["L", "C", "R"],
  ["L", "R", "SL", "SR"],
  ["L", "C", "R", "SL", "SR"],
  ["L", "C", "R", "SL", "SR", "LFE"],
  ["L", "C", "R", "SL", "SR", "MB", "LFE"],
  ["L", "C", "R", "SL", "SR", "BL", "BR", "LFE"],
];

/** Reads the channel mapping of `OpusHead` (RFC 7845 5.1). */
function opusOptions(config: Uint8Array | undefined) {
  const channels = config?.[9] ?? 2;
  const layout = VORBIS_LAYOUTS[channels] ?? VORBIS_LAYOUTS[2]!;
  const isMapped = config && config[18] === 1 && config.length >= 21 + channels && channels <= 8;
  if (!isMapped)
    return {
      options: { channels: Math.min(2, channels) || 2 },
      layout: channels === 1 ? VORBIS_LAYOUTS[1] : VORBIS_LAYOUTS[2],
    };
  const channelMappingTable = [...config.subarray(21, 21 + channels)];
  const options = { channels, streamCount: config[19], coupledStreamCount: config[20], channelMappingTable };
  return { options, layout };
}
