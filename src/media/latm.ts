import { DecodeError, SluiceError } from "../base/errors.ts";
import { lowComplexityConfig, readAacHead } from "./aac.ts";
import { BitReader } from "./bit-reader.ts";

/** The AAC of a LATM stream. */
export interface LatmAudio {
  /** The AudioSpecificConfig of the core coder: SBR and PS are signalled implicitly. */
  readonly config: Uint8Array<ArrayBuffer>;
  /** Sampling rate of the core coder, in Hz. */
  readonly sampleRate: number;
}

/** A raw AAC frame, and the configuration that it belongs to. */
export interface LatmFrame extends LatmAudio {
  readonly data: Uint8Array<ArrayBuffer>;
}

/** What the StreamMuxConfig states of the frames after it. */
interface Mux extends LatmAudio {
  /** Number of bits after the audio of a frame that belong to other data. */
  readonly otherBits: number;
}

/** Samples of a frame per channel. */
export const LATM_FRAME_SAMPLES = 1024;

const HEADER_BYTES = 3;
const AAC_LC = 2;
const FORMAT = "LATM";

/** Returns the size of the AudioSyncStream frame (LOAS, ISO 14496-3 1.7.2) at offset `at`, in bytes with its header; undefined without one. */
export function loasFrameBytes(bytes: Uint8Array, at: number): number | undefined {
  if (at + HEADER_BYTES > bytes.length || bytes[at] !== 0x56 || (bytes[at + 1]! & 0xe0) !== 0xe0)
    return undefined;
  return HEADER_BYTES + (((bytes[at + 1]! & 0x1f) << 8) | bytes[at + 2]!);
}

/**
 * Reads AAC-LC from LATM with one program, one layer and one subframe of 1024 samples; also the core of HE-AAC. Frames refer to the
 * configuration of an earlier frame, so a reader takes them in order.
 */
export class LatmReader {
  #mux: Mux | undefined;

  /** The configuration of the last frame; undefined before the first configuration, and after an unsupported one. */
  get audio(): LatmAudio | undefined {
    return this.#mux;
  }

  /**
   * Reads one AudioSyncStream frame (AudioMuxElement, ISO 14496-3 1.7.3). Throws {@link DecodeError} if the frame is damaged or no
   * configuration was read before, and `SluiceError("unsupported_codec")` if its configuration is not supported.
   */
  read(frame: Uint8Array): LatmFrame {
    const bits = new BitReader(frame, FORMAT);
    bits.skip(8 * HEADER_BYTES);
    if (!bits.flag()) {
      this.#mux = undefined;
      this.#mux = readMux(bits);
    }
    if (!this.#mux) throw new DecodeError(FORMAT, HEADER_BYTES, "no configuration that is supported");
    const { config, sampleRate, otherBits } = this.#mux;
    const length = readPayloadLength(bits);
    if (length === 0) throw new DecodeError(FORMAT, bits.position >> 3, "empty frame");
    if (8 * length + otherBits > bits.left)
      throw new DecodeError(FORMAT, frame.length, `truncated: ${length} bytes of audio expected`);
    return { config, sampleRate, data: copyBytes(frame, bits.position, length) };
  }
}

/** Reads a StreamMuxConfig (ISO 14496-3 table 1.42). */
function readMux(bits: BitReader): Mux {
  const version = bits.bits(1);
  if (version === 1 && bits.flag()) throw unsupported("audioMuxVersionA 1");
  if (version === 1) readValue(bits); // taraBufferFullness
  if (!bits.flag()) throw unsupported("streams with different frame times");
  if (bits.bits(6) !== 0) throw unsupported("several subframes");
  if (bits.bits(4) !== 0) throw unsupported("several programs");
  if (bits.bits(3) !== 0) throw unsupported("several layers");
  const configBits = version === 1 ? readValue(bits) : undefined;
  const start = bits.position;
  const audio = readConfig(bits);
  if (configBits !== undefined) {
    const rest = configBits - (bits.position - start);
    if (rest < 0) throw new DecodeError(FORMAT, start >> 3, "the AudioSpecificConfig exceeds its length");
    bits.skip(rest);
  }
  const frameLengthType = bits.bits(3);
  if (frameLengthType !== 0) throw unsupported(`frame length type ${frameLengthType}`);
  bits.skip(8); // latmBufferFullness
  const otherBits = bits.flag() ? readOtherBits(bits, version) : 0;
  if (bits.flag()) bits.skip(8); // crcCheckSum
  return { ...audio, otherBits };
}

/** Reads an AudioSpecificConfig with its GASpecificConfig (ISO 14496-3 1.6.2.1 and 4.4.1). */
function readConfig(bits: BitReader): LatmAudio {
  const { objectType, sampleRate, channelConfig } = readAacHead(bits);
  if (objectType !== AAC_LC) throw unsupported(`audio object type ${objectType}`);
  const config = lowComplexityConfig(sampleRate, channelConfig);
  if (!config || channelConfig === 0 || channelConfig > 7)
    throw unsupported(`${sampleRate} Hz with channel configuration ${channelConfig}`);
  if (bits.flag()) throw unsupported("frames of 960 samples");
  if (bits.flag()) throw unsupported("a core coder");
  if (bits.flag()) throw unsupported("an extended configuration");
  return { config, sampleRate };
}

/** Reads a LatmGetValue: one to four bytes, whose number comes first. */
function readValue(bits: BitReader): number {
  return bits.bits(8 * (bits.bits(2) + 1));
}

function readOtherBits(bits: BitReader, version: number): number {
  if (version === 1) return readValue(bits);
  let count = 0;
  let continues: boolean;
  do {
    continues = bits.flag();
    count = count * 256 + bits.bits(8);
  } while (continues);
  return count;
}

/** Reads a PayloadLengthInfo: bytes of 255 continue the sum. */
function readPayloadLength(bits: BitReader): number {
  let length = 0;
  for (;;) {
    const part = bits.bits(8);
    length += part;
    if (part < 255) return length;
  }
}

/** Copies `length` bytes from bit `position` on, which can be inside of a byte. */
function copyBytes(bytes: Uint8Array, position: number, length: number): Uint8Array<ArrayBuffer> {
  const at = position >> 3;
  const shift = position & 7;
  const copy = bytes.slice(at, at + length);
  if (shift === 0) return copy;
  for (let i = 0; i < length; i++) copy[i] = (bytes[at + i]! << shift) | (bytes[at + i + 1]! >> (8 - shift));
  return copy;
}

function unsupported(what: string): SluiceError {
  return new SluiceError("unsupported_codec", `AAC in LATM with ${what} is not supported`);
}
