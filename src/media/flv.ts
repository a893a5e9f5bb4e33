import { readU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";

/** The content of an audio or video tag of FLV, which RTMP sends as a message ("Video File Format Specification" 10.1, E.4). */
export type FlvTag =
  | {
      /** The decoder configuration: avcC, hvcC or AudioSpecificConfig. */
      readonly kind: "config";
      readonly codec: "h264" | "hevc" | "aac";
      readonly config: Uint8Array;
    }
  | {
      /** One frame; H.264 and HEVC length-prefixed, AAC without a header. */
      readonly kind: "frame";
      readonly codec: "h264" | "hevc" | "aac" | "mp3";
      readonly data: Uint8Array;
      readonly isKey: boolean;
      /** Presentation time minus decode time, in ms. */
      readonly offsetMs: number;
    };

const VIDEO_CODECS: Readonly<Record<number, string>> = {
  2: "Sorenson H.263",
  3: "screen video",
  4: "VP6",
  5: "VP6 with alpha",
  7: "h264",
  12: "hevc",
};
const FOURCC: Readonly<Record<string, "h264" | "hevc">> = { avc1: "h264", hvc1: "hevc" };
const AVC_PACKET = { config: 0, frame: 1 } as const;
/** Packet types of the enhanced header (Enhanced RTMP v1). */
const EX_PACKET = { config: 0, frame: 1, frameWithoutOffset: 3 } as const;
const AUDIO_CODECS: Readonly<Record<number, string>> = {
  0: "PCM",
  1: "ADPCM",
  2: "mp3",
  3: "PCM",
  4: "Nellymoser",
  5: "Nellymoser",
  6: "Nellymoser",
  7: "G.711",
  8: "G.711",
  9: "an enhanced codec",
  10: "aac",
  11: "Speex",
};

/** Parses the body of a video tag; undefined if it has no picture. Throws {@link DecodeError} if the codec is not supported. */
export function parseFlvVideo(body: Uint8Array): FlvTag | undefined {
  if (body.length < 5) return undefined;
  if (body[0]! & 0x80) return parseEnhancedVideo(body);
  const codec = VIDEO_CODECS[body[0]! & 15];
  if (codec !== "h264" && codec !== "hevc") throw unsupported("video", codec ?? `number ${body[0]! & 15}`);
  const data = body.subarray(5);
  if (body[1] === AVC_PACKET.config) return { kind: "config", codec, config: data };
  if (body[1] !== AVC_PACKET.frame) return undefined;
  return { kind: "frame", codec, data, isKey: isKeyFrame(body), offsetMs: signed24(body, 2) };
}

function parseEnhancedVideo(body: Uint8Array): FlvTag | undefined {
  const name = String.fromCharCode(...body.subarray(1, 5));
  const codec = FOURCC[name];
  if (!codec) throw unsupported("video", /^\w{4}$/.test(name) ? name : "unknown");
  const packet = body[0]! & 15;
  if (packet === EX_PACKET.config) return { kind: "config", codec, config: body.subarray(5) };
  const isKey = isKeyFrame(body);
  if (packet === EX_PACKET.frameWithoutOffset)
    return { kind: "frame", codec, data: body.subarray(5), isKey, offsetMs: 0 };
  if (packet !== EX_PACKET.frame || body.length < 8) return undefined;
  return { kind: "frame", codec, data: body.subarray(8), isKey, offsetMs: signed24(body, 5) };
}

/** Parses the body of an audio tag; undefined if it has no sound. Throws {@link DecodeError} if the codec is not supported. */
export function parseFlvAudio(body: Uint8Array): FlvTag | undefined {
  if (body.length < 2) return undefined;
  const format = body[0]! >> 4;
  const codec = AUDIO_CODECS[format];
  const frame = { kind: "frame", isKey: true, offsetMs: 0 } as const;
  if (codec === "mp3") return { ...frame, codec, data: body.subarray(1) };
  if (codec !== "aac") throw unsupported("audio", codec ?? `number ${format}`);
  if (body[1] === 0) return { kind: "config", codec, config: body.subarray(2) };
  return { ...frame, codec, data: body.subarray(2) };
}

function isKeyFrame(body: Uint8Array): boolean {
  return ((body[0]! >> 4) & 7) === 1;
}

function signed24(bytes: Uint8Array, at: number): number {
  return (readU32(bytes, at - 1) << 8) >> 8;
}

function unsupported(kind: string, codec: string): DecodeError {
  return new DecodeError("FLV", 0, `unsupported ${kind} codec: ${codec}; send H.264 or HEVC with AAC or MP3`);
}
