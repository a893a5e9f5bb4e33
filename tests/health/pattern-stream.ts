import { concatBytes } from "../../src/base/bytes.ts";
import { PATTERN_SOUND_CONFIG } from "../../src/media/test-pattern/sound.ts";
import { TestPattern } from "../../src/media/test-pattern/test-pattern.ts";
import { TS_PACKET_BYTES, writeTsHeader } from "../../src/media/ts-packet.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";

/** Seconds of the pattern that exist; a visit watches fewer. */
const SECONDS = 8;

/** Filler data (ISO 14496-10 7.3.2.7), so that a picture is as large as one that moves. */
const FILLER = new Uint8Array(1_500).fill(0xff);
FILLER.set([0, 0, 0, 1, 0x0c]);
FILLER[FILLER.length - 1] = 0x80;

/** The pattern as consecutive seconds of one transport stream. `isStill`: each picture is the same. */
export function patternSeconds(isStill = false, count = SECONDS): Uint8Array[] {
  const pattern = new TestPattern();
  const muxer = new TsMuxer([
    { codec: "h264", language: "und" },
    { codec: "aac", language: "fra", config: PATTERN_SOUND_CONFIG },
  ]);
  return Array.from({ length: count }, (_, i) => {
    const shown = pattern.second(1_000 + (isStill ? 0 : i));
    const frames = shown.map((frame) => ({
      ...frame,
      data:
        isStill || frame.isKey || frame.track === "audio" ? frame.data : concatBytes([frame.data, FILLER]),
      ptsSeconds: frame.ptsSeconds + (isStill ? i : 0),
      track: frame.track === "video" ? 0 : 1,
    }));
    return muxer.segment(frames);
  });
}

/** Adds packets of a PID that no table names, so that `media` has `bytes` bytes. */
export function filled(media: Uint8Array, bytes: number): Uint8Array {
  const whole = new Uint8Array(Math.ceil(Math.max(bytes, media.length) / TS_PACKET_BYTES) * TS_PACKET_BYTES);
  whole.set(media);
  for (let at = media.length; at < whole.length; at += TS_PACKET_BYTES)
    writeTsHeader(whole, at, 0x1abc, false, false, at / TS_PACKET_BYTES);
  return whole;
}
