import type { AbortSignalLike } from "../../base/byte-source.ts";
import { concatBytes } from "../../base/bytes.ts";
import { SluiceError } from "../../base/errors.ts";
import { lowComplexityConfig, readAdtsHeader } from "../../media/aac.ts";
import { FRAME_DISTANCE_MS, writeMatroskaAudio } from "../../media/matroska-audio.ts";
import { AAC_BITRATES } from "./aac-encoder.ts";
import type { AacFrame, AudioCodecs, AudioSource, BlockEncoder } from "./codecs.ts";
import { isPcm, openPcm } from "./pcm.ts";
import { layoutOf, type Samples, type Speaker } from "./samples.ts";

/**
 * Runs ffmpeg with these arguments, without a shell: writes `input` to its standard input, and resolves to what it wrote. Kills it when
 * `signal` fires, and then rejects with the reason. Rejects with `unsupported_codec` if ffmpeg fails.
 */
export type RunFfmpeg = (
  args: readonly string[],
  input: Uint8Array,
  signal: AbortSignalLike,
) => Promise<{ readonly output: Uint8Array<ArrayBuffer>; readonly messages: string }>;

/** Codec ids of Matroska, by our names and by those of other containers. */
const CODEC_IDS: Readonly<Record<string, string>> = {
  ac3: "A_AC3", eac3: "A_EAC3", dts: "A_DTS", mp2: "A_MPEG/L2", mp3: "A_MPEG/L3", opus: "A_OPUS", flac: "A_FLAC",
  vorbis: "A_VORBIS", A_TRUEHD: "A_TRUEHD", mlpa: "A_TRUEHD",
}; // biome-ignore format: a table

/** Reads standard input only, and asks nothing. */
const INPUT = ["-nostdin", "-threads", "1", "-protocol_whitelist", "pipe"];
const EXACT = ["-fflags", "+bitexact", "-flags:a", "+bitexact"];

/**
 * ffmpeg as a program of the machine. It runs once to decode and once to encode a segment, because a segment must not depend on what was
 * made before it. A process lives as long as its segment is made.
 */
export class FfmpegCodecs implements AudioCodecs {
  readonly #run: RunFfmpeg;

  constructor(run: RunFfmpeg) {
    this.#run = run;
  }

  decodes(codec: string): boolean {
    return Object.hasOwn(CODEC_IDS, codec) || isPcm(codec);
  }

  prepare(): void {}

  async *decode(
    source: AudioSource,
    frames: readonly Uint8Array[],
    signal: AbortSignalLike,
  ): AsyncGenerator<Samples | undefined> {
    if (isPcm(source.codec)) {
      const decoder = openPcm(source);
      for (const frame of frames) yield decoder?.decode(frame);
      return;
    }
    const file = writeMatroskaAudio(trackOf(source), frames);
    // The samples, and on standard error the time and the size of each frame.
    const samples = ["-map", "0:a:0", "-c:a", "pcm_f32le", ...EXACT, "-f", "wav", "pipe:1"];
    const times = ["-map", "0:a:0", "-c:a", "pcm_f32le", ...EXACT, "-f", "framecrc", "pipe:2"];
    const input = ["-v", "quiet", ...INPUT, "-max_error_rate", "1", "-f", "matroska", "-i", "pipe:0"];
    const { output, messages } = await this.#run([...input, ...samples, ...times], file, signal);
    const decoded = readDecoded(output, messages);
    for (const index of frames.keys()) yield decoded.get(index);
  }

  async encoder(sampleRate: number, channels: 2 | 6): Promise<BlockEncoder> {
    return new FfmpegEncoder(this.#run, sampleRate, channels);
  }
}

class FfmpegEncoder implements BlockEncoder {
  readonly config: Uint8Array<ArrayBuffer>;
  readonly #run: RunFfmpeg;
  readonly #sampleRate: number;
  readonly #channels: 2 | 6;
  readonly #blocks: Uint8Array[] = [];

  /** Throws `unsupported_codec` if ADTS cannot carry the format. */
  constructor(run: RunFfmpeg, sampleRate: number, channels: 2 | 6) {
    const config = lowComplexityConfig(sampleRate, channels);
    if (!config) throw new SluiceError("unsupported_codec", `cannot encode AAC at ${sampleRate} Hz`);
    this.#run = run;
    this.#sampleRate = sampleRate;
    this.#channels = channels;
    this.config = config;
  }

  add(block: Float32Array): void {
    this.#blocks.push(new Uint8Array(block.slice().buffer));
  }

  async finish(signal: AbortSignalLike): Promise<readonly AacFrame[]> {
    const raw = [
      "-f",
      "f32le",
      "-ar",
      String(this.#sampleRate),
      "-ac",
      String(this.#channels),
      "-i",
      "pipe:0",
    ];
    const aac = [
      "-c:a",
      "aac",
      "-b:a",
      String(AAC_BITRATES[this.#channels]),
      ...EXACT,
      "-f",
      "adts",
      "pipe:1",
    ];
    const { output } = await this.#run(
      ["-v", "error", ...INPUT, ...raw, ...aac],
      concatBytes(this.#blocks),
      signal,
    );
    const frames: AacFrame[] = [];
    for (let at = 0, block = -1; ; block++) {
      const header = readAdtsHeader(output, at);
      const end = at + (header?.frameBytes ?? 0);
      if (!header || header.frameBytes <= ADTS_BYTES || end > output.length) return frames;
      frames.push({ block, data: output.slice(at + ADTS_BYTES, end) });
      at = end;
    }
  }

  close(): void {
    this.#blocks.length = 0;
  }
}

/** The header of ADTS without a checksum, as ffmpeg writes it. */
const ADTS_BYTES = 7;

function trackOf({ codec, config, sampleRate = 48000, channels = 2 }: AudioSource) {
  let own = config;
  if (codec === "opus") {
    // Without a pre-skip, so that each frame gives all its samples.
    own = config ? config.slice() : opusHead(channels);
    if (own.length >= 12) own.fill(0, 10, 12);
  }
  return { codecId: CODEC_IDS[codec]!, config: own, sampleRate, channels };
}

/** The identification header of Opus in mono or stereo (RFC 7845 5.1). */
function opusHead(channels: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.of(
    0x4f,
    0x70,
    0x75,
    0x73,
    0x48,
    0x65,
    0x61,
    0x64,
    1,
    Math.min(2, channels),
    0,
    0,
    0x80,
    0xbb,
    0,
    0,
    0,
    0,
    0,
  );
}

/** Speakers by their bit in the channel mask of WAVE. */
const MASK: readonly (Speaker | undefined)[] = [
  "L",
  "R",
  "C",
  "LFE",
  "BL",
  "BR",
  undefined,
  undefined,
  "MB",
  "SL",
  "SR",
];

/** The format that the head of a WAVE file states, and where its samples begin. */
interface WaveHead {
  readonly sampleRate: number;
  readonly layout: readonly Speaker[];
  readonly dataAt: number;
}

function readWaveHead(bytes: Uint8Array): WaveHead | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let format: Omit<WaveHead, "dataAt"> | undefined;
  for (let at = 12; at + 8 <= bytes.length; ) {
    const [id, size, body] = [view.getUint32(at), view.getUint32(at + 4, true), at + 8];
    if (id === 0x64617461) return format && { ...format, dataAt: body };
    if (id === 0x666d7420 && size >= 16 && body + size <= bytes.length) {
      const count = view.getUint16(body + 2, true);
      const mask = size >= 40 ? view.getUint32(body + 20, true) : 0;
      const layout = layoutOfMask(mask, count) ?? layoutOf(count);
      if (!layout) return undefined;
      format = { sampleRate: view.getUint32(body + 4, true), layout };
    }
    at = body + size;
  }
  return undefined;
}

function layoutOfMask(mask: number, count: number): readonly Speaker[] | undefined {
  const speakers = Array.from({ length: 32 }, (_, bit) => bit)
    .filter((bit) => (mask >>> bit) & 1)
    .map((bit) => MASK[bit]);
  if (speakers.length !== count || speakers.includes(undefined)) return undefined;
  // Without side speakers, those in the back are the surround channels of 5.1.
  const isBack = !speakers.includes("SL");
  return speakers.map((speaker) =>
    isBack && speaker === "BL" ? "SL" : isBack && speaker === "BR" ? "SR" : speaker!,
  );
}

/** Returns the samples by the number of their frame. `messages` has a line for each decoded frame: stream, DTS, PTS, duration, bytes. */
function readDecoded(output: Uint8Array, messages: string): Map<number, Samples> {
  const decoded = new Map<number, Samples>();
  const head = output.length >= 12 ? readWaveHead(output) : undefined;
  if (!head) return decoded;
  const { sampleRate, layout } = head;
  const parts = new Map<number, Uint8Array[]>();
  let at = head.dataAt;
  for (const [, pts, size] of messages.matchAll(/^0, *-?\d+, *(-?\d+), *\d+, *(\d+),/gm)) {
    const index = Math.round((1000 * Number(pts)) / sampleRate / FRAME_DISTANCE_MS);
    const end = at + Number(size);
    if (end > output.length) break;
    parts.set(index, [...(parts.get(index) ?? []), output.subarray(at, end)]);
    at = end;
  }
  for (const [index, bytes] of parts) {
    const whole = concatBytes(bytes);
    const values = new Float32Array(whole.buffer, 0, whole.length >> 2);
    const count = Math.floor(values.length / layout.length);
    if (count === 0) continue;
    const channels = layout.map((_, channel) =>
      Float32Array.from({ length: count }, (_, i) => values[i * layout.length + channel]!),
    );
    decoded.set(index, { sampleRate, channels, layout });
  }
  return decoded;
}
