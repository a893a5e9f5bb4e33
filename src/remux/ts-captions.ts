import { CAPTION_TYPE, type CaptionTriplets, captionData } from "../media/subtitles/caption-data.ts";
import { type CaptionState, Cea708Decoder } from "../media/subtitles/cea708.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import type { TsStream } from "../media/ts-programme.ts";
import { audioUnits } from "./audio/ts-audio.ts";

/** The caption data of a frame. */
export interface FrameCaptions {
  /** Presentation time in ticks. */
  readonly pts: number;
  readonly data: CaptionTriplets;
}

/** Returns the captions in the frames of a video stream, in the order in which frames are shown. */
export function captionsIn(
  packets: Uint8Array,
  { pid, codec }: Pick<TsStream, "pid" | "codec">,
): FrameCaptions[] {
  const frames = audioUnits(packets, pid).flatMap(({ pts, bytes }): FrameCaptions[] => {
    const data = pts === undefined ? new Uint8Array(0) : captionData(codec, bytes);
    return data.length > 0 ? [{ pts: pts!, data }] : [];
  });
  return frames.sort((a, b) => deltaTicks(a.pts, b.pts));
}

/**
 * Returns true if the captions are CEA-708 only. Players read CEA-608 from the picture themselves, so the same captions are not listed
 * twice.
 */
export function areOnly708(frames: readonly FrameCaptions[]): boolean {
  let has708 = false;
  for (const { data } of frames)
    for (let at = 0; at + 3 <= data.length; at += 3) {
      const isPadding = (data[at + 1]! & 127) === 0 && (data[at + 2]! & 127) === 0;
      if (data[at]! === CAPTION_TYPE.dtvccStart) has708 = true;
      else if (data[at]! <= CAPTION_TYPE.field2 && !isPadding) return false;
    }
  return has708;
}

/** Decodes service 1. Times are relative to `zeroTicks`. */
export function decodeCaptions(frames: readonly FrameCaptions[], zeroTicks: number): readonly CaptionState[] {
  const decoder = new Cea708Decoder();
  for (const { pts, data } of frames) decoder.push(data, deltaTicks(pts, zeroTicks) / TICKS_PER_SECOND);
  return decoder.states;
}
