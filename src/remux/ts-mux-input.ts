/** What our transport stream writer can carry. */
export type TsCodec = "h264" | "hevc" | "aac" | "mp3" | "mp2" | "ac3" | "eac3";

/** One track as the writer must know it before the first packet. At most one is video. */
export interface TsMuxTrack {
  readonly codec: TsCodec;
  /** ISO 639-2, three letters; `und` where unknown. */
  readonly language: string;
  /**
   * The decoder configuration of the container: avcC, hvcC or AudioSpecificConfig. With it, packets of video are
   * length-prefixed NAL units and packets of AAC are raw; without it they are Annex B and ADTS already.
   */
  readonly config?: Uint8Array;
  /**
   * Video only: how much earlier than the sorted presentation times frames must be decoded (`reorderTicks` of
   * `media/timestamps.ts` over the first few hundred frames). The same for every segment of a file. Default 0.
   */
  readonly reorderSeconds?: number;
  /** Audio only, in Hz: below 32000 MPEG audio gets the stream type of MPEG-2. */
  readonly sampleRate?: number;
}

/** One encoded frame, in decode order within its track. */
export interface TsMuxPacket {
  /** Index into the tracks given to the writer. */
  readonly track: number;
  /** Presentation time; may be slightly negative (audio priming). */
  readonly ptsSeconds: number;
  readonly durationSeconds: number;
  readonly isKey: boolean;
  readonly data: Uint8Array;
}
