import type { InputAudioTrack, InputTrack, InputVideoTrack } from "mediabunny";
import { trackLanguage } from "../media/language.ts";
import type { MediaTrack } from "./contract.ts";
import type { Demuxer } from "./demux-pool.ts";

/** A track of video or audio as the writers need it. */
export interface SourceTrack {
  /** What players are told of it. */
  readonly described: MediaTrack;
  readonly kind: "video" | "audio";
  /** Index into the demultiplexer's tracks. */
  readonly index: number;
  /** The container's own number of the track. */
  readonly id: number;
  /** The codec as mediabunny names it, undefined where it does not know it. */
  readonly libraryCodec: string | undefined;
  readonly decoderConfig: VideoDecoderConfig | AudioDecoderConfig | undefined;
  /** avcC, hvcC, AudioSpecificConfig … */
  readonly config: Uint8Array<ArrayBuffer> | undefined;
  readonly sampleRate: number | undefined;
}

/** Codec names of mediabunny that differ from ours. */
const NAMES: Readonly<Record<string, string>> = { avc: "h264" };

/** Describes the video and audio tracks of an opened file, in the order of the file. */
export async function describeTracks(demuxer: Demuxer): Promise<SourceTrack[]> {
  const tracks: SourceTrack[] = [];
  for (const [index, track] of demuxer.tracks.entries()) {
    if (track.isVideoTrack()) tracks.push(await videoTrack(track, index));
    else if (track.isAudioTrack()) tracks.push(await audioTrack(track, index, demuxer));
  }
  return tracks;
}

async function videoTrack(track: InputVideoTrack, index: number): Promise<SourceTrack> {
  const codec = await track.getCodec();
  const config = codec ? await track.getDecoderConfig() : null;
  return {
    described: {
      kind: "video",
      codec: codec ? (NAMES[codec] ?? codec) : await foreignName(track),
      codecString: config?.codec,
      ...(await common(track)),
      width: await track.getCodedWidth(),
      height: await track.getCodedHeight(),
    },
    kind: "video",
    index,
    id: track.id,
    libraryCodec: codec ?? undefined,
    decoderConfig: config ?? undefined,
    config: ownBytes(config?.description),
    sampleRate: undefined,
  };
}

async function audioTrack(track: InputAudioTrack, index: number, demuxer: Demuxer): Promise<SourceTrack> {
  const codec = await track.getCodec();
  const config = codec ? await track.getDecoderConfig() : null;
  const rate = config?.sampleRate ?? (await track.getSampleRate());
  return {
    described: {
      kind: "audio",
      codec: codec === "mp3" ? await mpegLayer(track, index, demuxer) : (codec ?? (await foreignName(track))),
      codecString: config?.codec,
      ...(await common(track)),
    },
    kind: "audio",
    index,
    id: track.id,
    libraryCodec: codec ?? undefined,
    decoderConfig: config ?? undefined,
    config: ownBytes(config?.description),
    sampleRate: rate > 0 ? rate : undefined,
  };
}

async function common(track: InputTrack) {
  return {
    language: trackLanguage(await track.getLanguageCode()),
    title: (await track.getName()) ?? undefined,
    isDefault: (await track.getDisposition()).default,
  };
}

/** Tells layer II from layer III where the container may not: the layer bits of a frame do (ISO 11172-3 2.4.1.3). */
async function mpegLayer(track: InputAudioTrack, index: number, demuxer: Demuxer): Promise<"mp2" | "mp3"> {
  const id = await track.getInternalCodecId();
  if (id === "A_MPEG/L3" || id === ".mp3") return "mp3";
  const frame = await demuxer.sink(index).getFirstPacket();
  return frame && frame.data.length > 1 && ((frame.data[1]! >> 1) & 3) === 2 ? "mp2" : "mp3";
}

/** A codec that mediabunny does not know: MP2, or what the container calls it, such as `mp4v` or `V_MPEG2`. */
async function foreignName(track: InputTrack): Promise<string> {
  const id = await track.getInternalCodecId();
  if (id === "A_MPEG/L2") return "mp2";
  return typeof id === "string" && /^[\w/. -]{1,40}$/.test(id) ? id : "unknown";
}

function ownBytes(source: AllowSharedBufferSource | undefined): Uint8Array<ArrayBuffer> | undefined {
  if (!source) return undefined;
  if (ArrayBuffer.isView(source)) {
    return new Uint8Array(source.buffer, source.byteOffset, source.byteLength).slice();
  }
  return new Uint8Array(source).slice();
}
