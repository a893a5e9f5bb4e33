import { BitWriter } from "../bit-writer.ts";

/** AudioSpecificConfig (ISO 14496-3 1.6.2.1): AAC-LC, 48 kHz, one channel. */
export const PATTERN_SOUND_CONFIG: Uint8Array = new Uint8Array([0x11, 0x88]);
/** Samples per second, and per frame. */
export const PATTERN_SAMPLE_RATE = 48_000;
export const PATTERN_FRAME_SAMPLES = 1024;

/** Scale factor band of the beep's spectral line (at 48 kHz: lines 40 to 47), 1.02 kHz. */
const BAND = 10;
/** The scale factor that sets the volume (ISO 14496-3 4.6.2), about −20 dB of full scale. */
const GAIN = 177;

/**
 * Returns a raw AAC frame (ISO 14496-3 4.4.2.1) with silence or a tone. `tone` is the phase of the tone in quarters: its frequency is
 * between two lines of the transform, so the phase advances by a quarter per frame.
 */
export function soundFrame(tone: 0 | 1 | 2 | 3 | undefined): Uint8Array<ArrayBuffer> {
  const out = new BitWriter();
  out.bits(0, 3); // single_channel_element
  out.bits(0, 4); // element_instance_tag
  out.bits(tone === undefined ? 0 : GAIN, 8); // global_gain
  out.bits(0, 4); // ics_reserved, ONLY_LONG_SEQUENCE, sine window
  out.bits(tone === undefined ? 0 : BAND + 1, 6); // max_sfb
  out.bits(0, 1); // no prediction
  if (tone !== undefined) {
    out.bits(0, 4); // section of bands without lines
    out.bits(BAND, 5);
    out.bits(11, 4); // section of one band, codebook 11
    out.bits(1, 5);
    out.bits(0, 1); // scale factor equals global_gain
    out.bits(0, 3); // no pulses, no noise shaping, no gain control
    // Four pairs, the second one (0, ±4): codes 0 and 9c (table 4.A.12), then the sign.
    out.bits(0, 4);
    out.bits(0x9c, 8);
    out.bits(tone === 1 || tone === 2 ? 1 : 0, 1);
    out.bits(0, 8);
  } else {
    out.bits(0, 3);
  }
  out.bits(7, 3); // END
  out.align();
  return out.bytes();
}
