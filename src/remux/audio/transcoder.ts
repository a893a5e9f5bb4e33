import { Slots } from "../../async/slots.ts";
import type { AbortSignalLike } from "../../base/byte-source.ts";
import { SluiceError } from "../../base/errors.ts";
import { readAc3Programme } from "../../media/ac3.ts";
import type { AudioCodecs, AudioSource } from "../codecs/codecs.ts";
import { BLOCK_SAMPLES } from "../codecs/limiter.ts";
import { RateConverter } from "../codecs/resampler.ts";
import type { Samples } from "../codecs/samples.ts";
import { Timeline } from "../codecs/timeline.ts";
import type { AudioConversion } from "../contract.ts";
import type { TsMuxPacket } from "../ts-mux-input.ts";

/** Packets before a segment that a transcode needs: decoders, the limiter and the encoder agree after this time. */
export const PREROLL_SECONDS = 0.5;

/**
 * How many blocks an AAC frame needs after its own: two for the encoder, one for the limiter. So the sound of a segment ends that much
 * before the segment, and the next segment continues there; no segment needs bytes of the next one.
 */
const LOOKAHEAD_BLOCKS = 3;

/**
 * Blocks that are encoded before the first frame that is kept. The encoder takes its windows from the two frames before, and its
 * quantization settles within some more; encoding is most of the work, so it gets no more of the preroll than that.
 */
const ENCODER_PREROLL_BLOCKS = 8;

/** Dialogue is lowered to this level below full scale, in decibels; quieter dialogue is unchanged, so that nothing clips. */
const DIALOGUE_LEVEL = 27;

/**
 * Returns true if a request converts tracks with this codec. In HLS, all audio includes MP3: browsers refuse it in fragmented MP4, and
 * hls.js in MPEG-TS beside a track with another codec.
 */
export function converts({ all, mp3, ac3, isHls }: AudioConversion, codec: string): boolean {
  if (codec === "aac" || (isHls && (codec === "opus" || codec === "flac"))) return false;
  if (codec === "mp3") return mp3 || (all && isHls);
  return all || (codec === "mp2" && mp3) || ((codec === "ac3" || codec === "eac3") && ac3);
}

/** How a track is transcoded; the same for all its segments. */
export interface TranscodePlan {
  readonly source: AudioSource;
  readonly sampleRate: number;
  readonly channels: 2 | 6;
  /** The AudioSpecificConfig. */
  readonly config: Uint8Array<ArrayBuffer>;
  /** The position of the first sample of the track. Frames follow it at whole multiples of their length. */
  readonly anchor: number;
}

/** The packets of one segment. */
export interface TranscodeRun {
  /** The packets of the {@link PREROLL_SECONDS} before the segment; empty at the start of the track. */
  readonly before: readonly TsMuxPacket[];
  readonly own: readonly TsMuxPacket[];
  /** True if no packets follow. */
  readonly isLast: boolean;
}

/**
 * Transcodes audio to AAC-LC. Frames are numbered on a grid of 1024 samples from time zero, and the frames of a segment depend on its
 * packets and the preroll only. So segments can be made in any order and give the same bytes, and consecutive ones continue without a
 * gap or a click: the encoder has processed the same samples before the border on both sides of it.
 */
export class AudioTranscoder {
  readonly #codecs: AudioCodecs;
  /** One thread does all the work: more runs at once would only use more memory. */
  readonly #slots = new Slots({
    limit: 2,
    queueLimit: 256,
    queueFull: () =>
      new SluiceError("too_many", "more than 256 audio segments are waiting; close some players"),
  });

  constructor(codecs: AudioCodecs) {
    this.#codecs = codecs;
  }

  /** Returns true if audio with this codec can be decoded. */
  decodes(codec: string): boolean {
    return this.#codecs.decodes(codec);
  }

  /** See {@link AudioCodecs.prepare}. */
  prepare(codec?: string): void {
    this.#codecs.prepare(codec);
  }

  /** Plans the transcode of a track from its first packet; undefined if the codec or the sampling rate is not supported. */
  async plan(
    source: AudioSource,
    first: TsMuxPacket | undefined,
    channels: 2 | 6,
  ): Promise<TranscodePlan | undefined> {
    if (!this.decodes(source.codec)) return undefined;
    const samples = first && (await this.#firstSamples(source, first.data));
    const sampleRate = samples?.sampleRate ?? source.sampleRate ?? 48000;
    if (sampleRate < 8000 || sampleRate > 96000) return undefined;
    const outChannels = channels === 6 && (samples?.channels.length ?? source.channels ?? 2) > 2 ? 6 : 2;
    const encoder = await this.#codecs.encoder(sampleRate, outChannels);
    const { config } = encoder;
    encoder.close();
    const anchor = Math.round((first?.ptsSeconds ?? 0) * sampleRate);
    return { source, sampleRate, channels: outChannels, config, anchor };
  }

  /** Returns the AAC frames of a segment, with `track` 0. Rejects with the reason of `signal`, or with `too_many`. */
  run(plan: TranscodePlan, run: TranscodeRun, signal: AbortSignalLike): Promise<TsMuxPacket[]> {
    return this.#slots.run(() => this.#transcode(plan, run, signal), signal);
  }

  async #firstSamples(source: AudioSource, frame: Uint8Array): Promise<Samples | undefined> {
    for await (const samples of this.#codecs.decode(source, [frame], new AbortController().signal))
      return samples;
    return undefined;
  }

  async #transcode(
    plan: TranscodePlan,
    { before, own, isLast }: TranscodeRun,
    signal: AbortSignalLike,
  ): Promise<TsMuxPacket[]> {
    if (own.length === 0) return [];
    const { sampleRate, channels } = plan;
    const packets = [...before, ...own];
    const encoder = await this.#codecs.encoder(sampleRate, channels);
    try {
      let preroll: Float32Array[] | undefined = before.length > 0 ? [] : undefined;
      const encode = (block: Float32Array) => {
        encoder.add(block);
        timeline.recycle(block);
      };
      const timeline = new Timeline(plan, (block) => {
        if (!preroll) return encode(block);
        preroll.push(block);
        if (preroll.length > ENCODER_PREROLL_BLOCKS + LOOKAHEAD_BLOCKS) timeline.recycle(preroll.shift()!);
      });
      let fromBlock = Number.NEGATIVE_INFINITY;
      let firstBlock: number | undefined;
      let index = 0;
      const frames = packets.map(({ data }) => data);
      const rates = new RateConverter(sampleRate);
      for await (const samples of this.#codecs.decode(plan.source, frames, signal)) {
        const packet = packets[index]!;
        if (index === before.length && preroll) {
          fromBlock = timeline.endBlock - LOOKAHEAD_BLOCKS;
          // The limiter holds the last complete block.
          if (preroll.length > 0) firstBlock = timeline.endBlock - 1 - preroll.length;
          const blocks = preroll;
          preroll = undefined;
          for (const block of blocks) encode(block);
        }
        index++;
        const isOnGrid = samples?.sampleRate === sampleRate;
        timeline.add(packet, rates.convert(samples), dialogueGain(plan.source.codec, packet.data), isOnGrid);
      }
      const toBlock = isLast ? timeline.finish(LOOKAHEAD_BLOCKS) : timeline.endBlock - LOOKAHEAD_BLOCKS;
      return (await encoder.finish(signal))
        .map(({ block, data }) => ({ block: block + (firstBlock ?? timeline.firstBlock), data }))
        .filter(({ block }) => block >= fromBlock && block < toBlock)
        .map(({ block, data }) => packetOf(block, data, sampleRate));
    } finally {
      encoder.close();
    }
  }
}

/** The factor that lowers dialogue to {@link DIALOGUE_LEVEL} (ETSI TS 102 366 4.4.2.8). */
function dialogueGain(codec: string, frame: Uint8Array): number {
  if (codec !== "ac3" && codec !== "eac3") return 1;
  const level = readAc3Programme(frame, 0)?.dialogueLevel ?? DIALOGUE_LEVEL;
  return Math.min(1, 10 ** ((level - DIALOGUE_LEVEL) / 20));
}

function packetOf(block: number, data: Uint8Array, sampleRate: number): TsMuxPacket {
  return {
    track: 0,
    ptsSeconds: (block * BLOCK_SAMPLES) / sampleRate,
    durationSeconds: BLOCK_SAMPLES / sampleRate,
    isKey: true,
    data,
  };
}
