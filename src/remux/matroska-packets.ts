import { concatBytes } from "../base/bytes.ts";
import type { OwnedMemory } from "../base/owned-memory.ts";
import { dtsFrameSamples } from "../media/audio-headers.ts";
import type { MatroskaBlock } from "../media/matroska-blocks.ts";
import type { MatroskaTrack } from "../media/matroska-head.ts";
import type { SourceTrack } from "./media-tracks.ts";
import type { TsMuxPacket } from "./ts-mux-input.ts";

/** Samples per frame, for tracks without `DefaultDuration`. The frames of DTS state theirs. */
const FRAME_SAMPLES: Readonly<Record<string, number>> = {
  aac: 1024,
  mp3: 1152,
  mp2: 1152,
  ac3: 1536,
  eac3: 1536,
};

/** A packet whose track and duration are set when it is taken. */
type Collected = { -readonly [Key in keyof TsMuxPacket]: TsMuxPacket[Key] };

/** Collects the packets of one track in one segment, and assigns their durations. */
export class TrackPackets {
  readonly track: MatroskaTrack;
  readonly #tickSeconds: number;
  readonly #isVideo: boolean;
  readonly #isDts: boolean;
  readonly #sampleRate: number | undefined;
  /** 0 if unknown. */
  #frameSeconds: number;
  #packets: Collected[] = [];
  /** The times of the frames so far, for the mean distance between them. */
  #first = Number.POSITIVE_INFINITY;
  #last = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(source: SourceTrack, track: MatroskaTrack, tickSeconds: number) {
    this.track = track;
    this.#tickSeconds = tickSeconds;
    this.#isVideo = source.kind === "video";
    const samples = FRAME_SAMPLES[source.described.codec];
    this.#isDts = source.described.codec === "dts";
    this.#sampleRate = source.sampleRate;
    this.#frameSeconds = track.frameSeconds ?? this.#secondsOf(samples);
  }

  /** Takes the frames of a block, which are in `memory`. */
  add(time: number, block: MatroskaBlock, memory?: OwnedMemory): void {
    if (this.#isDts && this.#frameSeconds === 0 && block.frames[0])
      this.#frameSeconds = this.#secondsOf(dtsFrameSamples(block.frames[0]));
    const stated =
      block.duration === undefined ? 0 : (block.duration * this.#tickSeconds) / block.frames.length;
    const durationSeconds = stated || this.#frameSeconds;
    const first = time * this.#tickSeconds - this.track.delaySeconds;
    const { strippedBytes } = this.track;
    const isKey = !this.#isVideo || block.isKey;
    for (let i = 0; i < block.frames.length; i++) {
      const frame = block.frames[i]!;
      const data = strippedBytes.length > 0 ? concatBytes([strippedBytes, frame]) : frame;
      const ptsSeconds = first + i * durationSeconds;
      const packet: Collected = { track: 0, ptsSeconds, durationSeconds, isKey, data };
      if (memory) packet.memory = memory;
      this.#packets.push(packet);
      this.#first = Math.min(this.#first, ptsSeconds);
      this.#last = Math.max(this.#last, ptsSeconds);
      this.#count++;
    }
  }

  /** Returns the packets added since the last call. Those without a stated duration get the mean distance between frames. */
  take(track: number): TsMuxPacket[] {
    const meanSeconds = this.#count > 1 ? (this.#last - this.#first) / (this.#count - 1) : 0;
    const packets = this.#packets;
    for (const packet of packets) {
      packet.track = track;
      packet.durationSeconds ||= meanSeconds;
    }
    this.#packets = [];
    return packets;
  }

  #secondsOf(samples: number | undefined): number {
    return samples && this.#sampleRate ? samples / this.#sampleRate : 0;
  }
}
