/** Decoded samples of a FLAC frame. */
export interface FlacSamples {
  readonly sampleRate: number;
  /** Full scale ±1, of equal length. */
  readonly channels: readonly Float32Array[];
}

/** What the stream states once; frames can refer to it. */
interface FlacDefaults {
  readonly sampleRate: number;
  readonly bitsPerSample: number;
}

/** Sample rates by their code in the frame header (RFC 9639 9.1.2), in Hz; 0: see {@link FlacDefaults}. */
const RATES = [0, 88200, 176400, 192000, 8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000] as const;
/** Bits per sample by their code (9.1.4); 0: see {@link FlacDefaults}; -1: reserved. 32 bits are not supported. */
const SAMPLE_BITS = [0, 8, 12, -1, 16, 20, 24, -1] as const;
/** Channel codes of stereo with a difference channel (9.1.3): left and side, side and right, middle and side. */
const LEFT_SIDE = 8;
const SIDE_RIGHT = 9;
const MID_SIDE = 10;

/** Reads the STREAMINFO of a decoder configuration: the block (RFC 9639 8.2), with or without `fLaC` before it. */
export function readFlacConfig(config: Uint8Array | undefined): FlacDefaults {
  const at = config && config[0] === 0x66 ? 8 : 4;
  if (!config || config.length < at + 18) return { sampleRate: 0, bitsPerSample: 0 };
  const [a, b, c, d] = config.subarray(at + 10, at + 14) as unknown as [number, number, number, number];
  return { sampleRate: (a << 12) | (b << 4) | (c >> 4), bitsPerSample: (((c & 1) << 4) | (d >> 4)) + 1 };
}

/** Decodes one frame (RFC 9639 9). Returns undefined if it is damaged, or has 32 bits per sample. */
export function decodeFlacFrame(frame: Uint8Array, defaults: FlacDefaults): FlacSamples | undefined {
  if (frame.length < 10 || frame[0] !== 0xff || (frame[1]! & 0xfe) !== 0xf8 || crc16(frame) !== 0)
    return undefined;
  const bits = new FlacBits(frame);
  bits.skip(16);
  const sizeCode = bits.read(4);
  const rateCode = bits.read(4);
  const channelCode = bits.read(4);
  const sampleBits = SAMPLE_BITS[bits.read(3)]! || defaults.bitsPerSample;
  bits.skip(1);
  // The number of the frame: as many leading ones as bytes, if there is more than one (9.1.5).
  const lead = bits.read(8);
  bits.skip(8 * Math.max(0, Math.clz32(~(lead << 24)) - 1));
  const size = blockSize(sizeCode, bits);
  const sampleRate = readRate(rateCode, bits) || defaults.sampleRate;
  bits.skip(8);
  const isStereo = channelCode >= LEFT_SIDE;
  if (size === 0 || sampleRate === 0 || sampleBits < 4 || sampleBits > 24 || channelCode > MID_SIDE)
    return undefined;
  const planes: Int32Array[] = [];
  for (let channel = 0; channel < (isStereo ? 2 : channelCode + 1); channel++) {
    const isSide = isStereo && (channel === 0) === (channelCode === SIDE_RIGHT);
    const plane = readSubframe(bits, size, sampleBits + (isSide ? 1 : 0));
    if (!plane) return undefined;
    planes.push(plane);
  }
  if (isStereo) undoDifference(channelCode, planes as [Int32Array, Int32Array]);
  const scale = 1 / 2 ** (sampleBits - 1);
  return { sampleRate, channels: planes.map((plane) => Float32Array.from(plane, (value) => value * scale)) };
}

function blockSize(code: number, bits: FlacBits): number {
  if (code === 1) return 192;
  if (code >= 2 && code <= 5) return 144 << code;
  if (code === 6) return bits.read(8) + 1;
  if (code === 7) return bits.read(16) + 1;
  return code >= 8 ? 1 << code : 0;
}

function readRate(code: number, bits: FlacBits): number {
  if (code === 12) return bits.read(8) * 1000;
  if (code === 13) return bits.read(16);
  if (code === 14) return bits.read(16) * 10;
  return RATES[code] ?? 0;
}

function undoDifference(code: number, [a, b]: readonly [Int32Array, Int32Array]): void {
  for (let i = 0; i < a.length; i++) {
    const [first, second] = [a[i]!, b[i]!];
    if (code === LEFT_SIDE) b[i] = first - second;
    else if (code === SIDE_RIGHT) a[i] = first + second;
    else {
      const sum = 2 * first + (second & 1);
      a[i] = (sum + second) >> 1;
      b[i] = (sum - second) >> 1;
    }
  }
}

/** Returns the samples of one channel (RFC 9639 9.2); undefined if they are invalid. */
function readSubframe(bits: FlacBits, size: number, channelBits: number): Int32Array | undefined {
  const head = bits.read(8);
  const type = head >> 1;
  const wasted = head & 1 ? bits.unary() + 1 : 0;
  const sampleBits = channelBits - wasted;
  if (sampleBits < 1) return undefined;
  const out = new Int32Array(size);
  if (type === 0) out.fill(bits.signed(sampleBits));
  else if (type === 1) for (let i = 0; i < size; i++) out[i] = bits.signed(sampleBits);
  else if (!readPredicted(bits, type, sampleBits, out)) return undefined;
  if (wasted > 0) for (let i = 0; i < size; i++) out[i] = out[i]! << wasted;
  return bits.isAtEnd ? undefined : out;
}

/** The coefficients of the fixed predictors (RFC 9639 9.2.5), the newest sample first. */
const FIXED: readonly (readonly number[])[] = [[], [1], [2, -1], [3, -3, 1], [4, -6, 4, -1]];

function readPredicted(bits: FlacBits, type: number, sampleBits: number, out: Int32Array): boolean {
  const isLinear = type >= 32;
  const order = isLinear ? type - 31 : type - 8;
  if (order < 0 || order > out.length || (!isLinear && order > 4)) return false;
  for (let i = 0; i < order; i++) out[i] = bits.signed(sampleBits);
  let coefficients = FIXED[order] ?? [];
  let shift = 0;
  if (isLinear) {
    const precision = bits.read(4) + 1;
    shift = bits.signed(5);
    if (precision === 16 || shift < 0) return false;
    coefficients = Array.from({ length: order }, () => bits.signed(precision));
  }
  if (!readResidual(bits, order, out)) return false;
  const scale = 2 ** shift;
  for (let i = order; i < out.length; i++) {
    // Sums have up to 53 bits: more than integers of 32 bits, and exact as numbers.
    let sum = 0;
    for (let k = 0; k < order; k++) sum += coefficients[k]! * out[i - 1 - k]!;
    out[i] = out[i]! + Math.floor(sum / scale);
  }
  return true;
}

/** Reads Rice codes in partitions (RFC 9639 9.2.7) to `out`, after its first `order` samples. */
function readResidual(bits: FlacBits, order: number, out: Int32Array): boolean {
  const method = bits.read(2);
  const partitions = 1 << bits.read(4);
  const each = out.length / partitions;
  if (method > 1 || !Number.isInteger(each) || each < order) return false;
  const parameterBits = 4 + method;
  const unpacked = (1 << parameterBits) - 1;
  for (let partition = 0, at = order; partition < partitions; partition++) {
    const end = (partition + 1) * each;
    const parameter = bits.read(parameterBits);
    if (parameter === unpacked) {
      const raw = bits.read(5);
      for (; at < end; at++) out[at] = raw === 0 ? 0 : bits.signed(raw);
    } else bits.rice(parameter, out, at, end);
    at = end;
    if (bits.isAtEnd) return false;
  }
  return true;
}

/** Reads bits, the most significant first. Zeros follow the end. */
class FlacBits {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  #at = 0;

  constructor(frame: Uint8Array) {
    this.#bytes = new Uint8Array(frame.length + 8);
    this.#bytes.set(frame);
    this.#end = 8 * frame.length;
  }

  /** True if more was read than the frame has. */
  get isAtEnd(): boolean {
    return this.#at > this.#end;
  }

  skip(count: number): void {
    this.#at += count;
  }

  /** Reads up to 25 bits. */
  read(count: number): number {
    if (count === 0) return 0;
    const value = this.#window() >>> (32 - count);
    this.#at += count;
    return value;
  }

  /** Reads up to 32 bits as a two's complement number. */
  signed(count: number): number {
    if (count > 25) {
      const high = this.signed(count - 16);
      return high * 65536 + this.read(16);
    }
    const value = this.#window() >> (32 - count);
    this.#at += count;
    return value;
  }

  /** Counts zeros before a one. */
  unary(): number {
    for (let zeros = 0; ; ) {
      // 25 bits of the window are always valid.
      const run = Math.min(25, Math.clz32(this.#window()));
      zeros += run;
      this.#at += run;
      if (run < 25 || this.#at > this.#end) {
        this.#at++;
        return zeros;
      }
    }
  }

  rice(parameter: number, out: Int32Array, from: number, to: number): void {
    for (let i = from; i < to && this.#at <= this.#end; i++) {
      const high = this.unary();
      const value = parameter > 25 ? this.#wide(high, parameter) : (high << parameter) | this.read(parameter);
      out[i] = (value >>> 1) ^ -(value & 1);
    }
  }

  #wide(high: number, parameter: number): number {
    const middle = this.read(parameter - 16);
    return (((high << (parameter - 16)) | middle) << 16) | this.read(16);
  }

  #window(): number {
    const at = this.#at >> 3;
    const bytes = this.#bytes;
    const whole = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
    return whole << (this.#at & 7);
  }
}

const CRC_TABLE = Uint16Array.from({ length: 256 }, (_, index) => {
  let value = index << 8;
  for (let bit = 0; bit < 8; bit++) value = value & 0x8000 ? (value << 1) ^ 0x8005 : value << 1;
  return value;
});

/** The checksum of a frame with its own checksum at its end (RFC 9639 9.3): 0 if it is intact. */
function crc16(bytes: Uint8Array): number {
  let value = 0;
  for (let i = 0; i < bytes.length; i++)
    value = ((value << 8) ^ CRC_TABLE[(value >> 8) ^ bytes[i]!]!) & 0xffff;
  return value;
}
