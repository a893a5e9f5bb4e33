import type { OwnedMemory } from "../base/owned-memory.ts";

/** Added to all times, so that audio priming, decode times and the PCR are never negative. */
export const TS_BASE_SECONDS = 10;

/** Codecs that the transport stream writer supports. */
export type TsCodec = "h264" | "hevc" | "aac" | "mp3" | "mp2" | "ac3" | "eac3" | "dts";

/** A track of the transport stream writer. At most one track is video. */
export interface TsMuxTrack {
  readonly codec: TsCodec;
  /** ISO 639-2 (three letters); `und` if unknown. */
  readonly language: string;
  /**
   * The decoder configuration: avcC, hvcC or AudioSpecificConfig. If present, video packets are length-prefixed NAL units and AAC
   * packets are raw; otherwise they are Annex B and ADTS.
   */
  readonly config?: Uint8Array;
  /**
   * Video only: how far decode times precede presentation times (`reorderTicks` of `media/timestamps.ts` over the first few hundred
   * frames). The same for every segment of a file. Default 0.
   */
  readonly reorderSeconds?: number;
  /**
   * Video only: how many frames the encoder reorders at most (`reorderFrames` of `media/timestamps.ts`). A frame is written when so
   * many later ones are known. Default: at the end of the segment.
   */
  readonly reorderFrames?: number;
  /** Audio only, in Hz. MPEG audio below 32000 Hz gets the stream type of MPEG-2 audio (ISO 13818-3). */
  readonly sampleRate?: number;
}

/** One encoded frame, in decode order within its track. */
export interface TsMuxPacket {
  /** Index into the tracks given to the writer. */
  readonly track: number;
  /** Presentation time; can be slightly negative (audio priming). */
  readonly ptsSeconds: number;
  readonly durationSeconds: number;
  readonly isKey: boolean;
  readonly data: Uint8Array;
  /** The memory that `data` is in, if it can be freed early. A stage that has used the frame releases it once. */
  readonly memory?: OwnedMemory;
}

/** Frames of all tracks, as a demuxer delivers them: about 200 KiB, and at most the rest of a segment. */
export interface PacketBatch {
  /** In decode order within each track. */
  readonly packets: readonly TsMuxPacket[];
  /** True if the next batch belongs to the next segment. */
  readonly endsSegment: boolean;
}
