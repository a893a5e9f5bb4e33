import {
  CustomSource,
  EncodedPacketSink,
  Input,
  type InputAudioTrack,
  type InputFormat,
  type InputTrack,
  type InputVideoTrack,
  type TrackDisposition,
} from "mediabunny";
import { orAborted } from "../async/abort.ts";
import { SluiceError } from "../base/errors.ts";
import { languageCode, trackLanguage } from "../media/language.ts";
import type { AudioTranscoder } from "./audio/transcoder.ts";
import type { BlockCache } from "./block-cache.ts";
import type { AudioConversion, MediaTrack } from "./contract.ts";

/** The largest single read that mediabunny may request: a larger index or cluster is treated as hostile. */
const READ_LIMIT_BYTES = 128 * 1024 * 1024;
/** Size of mediabunny's own cache. It is small, because the {@link BlockCache} behind it holds the same bytes. */
const INPUT_CACHE_BYTES = 512 * 1024;

/** A video or audio track with the data that the segment writers need. */
export interface SourceTrack {
  /** The description that players receive. */
  readonly described: MediaTrack;
  readonly kind: "video" | "audio";
  /** The track number in the container: `track_ID` of MP4, `TrackNumber` of Matroska. */
  readonly id: number;
  /** The codec name in mediabunny; undefined if mediabunny does not support the codec. */
  readonly libraryCodec: string | undefined;
  readonly decoderConfig: VideoDecoderConfig | AudioDecoderConfig | undefined;
  /** The codec's own configuration record: avcC, hvcC, AudioSpecificConfig, … */
  readonly config: Uint8Array<ArrayBuffer> | undefined;
  readonly sampleRate: number | undefined;
  /** True for commentary, and for versions for people with impaired hearing or sight: listed last. */
  readonly isSecondary?: boolean;
}

/** How to open a file; the options of `openMedia` with defaults applied. */
export interface OpenSettings {
  /** Preferred audio language, ISO 639-2/T; `und` for no preference. */
  readonly language: string;
  readonly targetSeconds: number;
  readonly signal: AbortSignal | undefined;
  readonly conversion: AudioConversion | undefined;
  readonly transcoder: AudioTranscoder | undefined;
}

/** Replacement bytes for parts of the file, by byte position. */
type BytePatches = ReadonlyMap<number, Uint8Array>;

/** Codec names of mediabunny that differ from ours. */
const NAMES: Readonly<Record<string, string>> = { avc: "h264" };

/**
 * Reads the tracks of a file with mediabunny. Returns one video track, then the audio tracks, the preferred language
 * first. A video track with a supported codec is preferred, because cover pictures appear as video tracks.
 * Rejects with `SluiceError`, or with mediabunny's own error if the file is invalid.
 */
export async function readTracks(
  cache: BlockCache,
  formats: InputFormat[],
  { language, signal = new AbortController().signal }: OpenSettings,
  patches: BytePatches = new Map(),
): Promise<SourceTrack[]> {
  const input = new Input({
    formats,
    source: new CustomSource({
      getSize: () => cache.size,
      read: (start, end) => {
        if (end - start > READ_LIMIT_BYTES) {
          throw new SluiceError(
            "broken_media",
            `the file index requests ${end - start} bytes in one read; the limit is ${READ_LIMIT_BYTES}`,
          );
        }
        return readPatched(cache, start, end, patches, signal);
      },
      maxCacheSize: INPUT_CACHE_BYTES,
      prefetchProfile: "none",
      // Called for failed reads that mediabunny no longer awaits; the awaited read reports the error.
      handleUnhandledError: () => {},
    }),
  });
  try {
    // mediabunny may keep waiting for bytes after the signal is aborted.
    const tracks = await orAborted(input.getTracks().then(describeTracks), signal);
    return orderTracks(tracks, language);
  } finally {
    input.dispose();
  }
}

function readPatched(
  cache: BlockCache,
  start: number,
  end: number,
  patches: BytePatches,
  signal: AbortSignal,
): Uint8Array | Promise<Uint8Array> {
  const bytes = cache.read(start, end, signal);
  const hits = [...patches].filter(([at, patch]) => at < end && at + patch.length > start);
  return hits.length === 0
    ? bytes
    : Promise.resolve(bytes).then((original) => patched(original, start, hits));
}

function patched(bytes: Uint8Array, start: number, patches: [number, Uint8Array][]): Uint8Array {
  const copy = bytes.slice();
  for (const [at, patch] of patches) {
    for (const [i, byte] of patch.entries()) {
      const offset = at + i - start;
      if (offset >= 0 && offset < copy.length) copy[offset] = byte;
    }
  }
  return copy;
}

async function describeTracks(inputTracks: readonly InputTrack[]): Promise<SourceTrack[]> {
  const tracks: SourceTrack[] = [];
  for (const track of inputTracks) {
    if (track.isVideoTrack()) tracks.push(await videoTrack(track));
    else if (track.isAudioTrack()) tracks.push(await audioTrack(track));
  }
  return tracks;
}

function orderTracks(tracks: readonly SourceTrack[], language: string): SourceTrack[] {
  const videos = tracks.filter((track) => track.kind === "video");
  const video = videos.find((track) => track.libraryCodec !== undefined) ?? videos[0];
  const all = tracks.filter((track) => track.kind === "audio");
  const audio = [...all.filter((track) => !track.isSecondary), ...all.filter((track) => track.isSecondary)];
  const preferred =
    language === "und"
      ? undefined
      : audio.find((track) => languageCode(track.described.language) === language);
  if (!preferred) return [...(video ? [video] : []), ...audio];
  const ordered = [preferred, ...audio.filter((track) => track !== preferred)].map((track) => ({
    ...track,
    described: { ...track.described, isDefault: track === preferred },
  }));
  return [...(video ? [video] : []), ...ordered];
}

async function videoTrack(track: InputVideoTrack): Promise<SourceTrack> {
  const codec = await track.getCodec();
  const config = codec ? await track.getDecoderConfig() : null;
  return {
    described: {
      kind: "video",
      codec: codec ? (NAMES[codec] ?? codec) : await unsupportedCodecName(track),
      codecString: config?.codec,
      ...(await commonFields(track)),
      width: await track.getCodedWidth(),
      height: await track.getCodedHeight(),
    },
    kind: "video",
    id: track.id,
    libraryCodec: codec ?? undefined,
    decoderConfig: config ?? undefined,
    config: copyBytes(config?.description),
    sampleRate: undefined,
  };
}

async function audioTrack(track: InputAudioTrack): Promise<SourceTrack> {
  const codec = await track.getCodec();
  const config = codec ? await track.getDecoderConfig() : null;
  const rate = config?.sampleRate ?? (await track.getSampleRate());
  const channels = await track.getNumberOfChannels();
  const name = codec === "mp3" ? await mpegLayer(track) : (codec ?? (await unsupportedCodecName(track)));
  return {
    described: {
      kind: "audio",
      codec: name,
      // mediabunny has no name for MPEG audio layer II (RFC 6381 3.3, ISO 14496-3 table 1.17).
      codecString: name === "mp2" ? "mp4a.40.33" : config?.codec,
      ...(channels > 0 && { channels }),
      ...(await commonFields(track)),
    },
    kind: "audio",
    id: track.id,
    libraryCodec: codec ?? undefined,
    decoderConfig: config ?? undefined,
    config: copyBytes(config?.description),
    sampleRate: rate > 0 ? rate : undefined,
    isSecondary: isSecondary(await track.getDisposition(), await track.getName()),
  };
}

/** Many files mark such tracks in their title only. */
function isSecondary(
  { commentary, hearingImpaired, visuallyImpaired }: TrackDisposition,
  title: string | null,
): boolean {
  const isNamed = /\b(commentary|comment|audio description|descriptive)\b/i.test(title ?? "");
  return commentary || hearingImpaired || visuallyImpaired || isNamed;
}

async function commonFields(track: InputTrack) {
  return {
    language: trackLanguage(await track.getLanguageCode()),
    title: (await track.getName()) ?? undefined,
    isDefault: (await track.getDisposition()).default,
  };
}

/** Returns the layer by the container's codec id, else by the layer bits of the first frame (ISO 11172-3 2.4.1.3). */
async function mpegLayer(track: InputAudioTrack): Promise<"mp2" | "mp3"> {
  const id = await track.getInternalCodecId();
  if (id === "A_MPEG/L3" || id === ".mp3") return "mp3";
  const frame = await new EncodedPacketSink(track).getFirstPacket();
  return frame && frame.data.length > 1 && ((frame.data[1]! >> 1) & 3) === 2 ? "mp2" : "mp3";
}

/** The name of a codec that mediabunny does not support: `mp2`, or the container's own id, such as `mp4v` or `V_MPEG2`. */
async function unsupportedCodecName(track: InputTrack): Promise<string> {
  const id = await track.getInternalCodecId();
  if (id === "A_MPEG/L2") return "mp2";
  return typeof id === "string" && /^[\w/. -]{1,40}$/.test(id) ? id : "unknown";
}

function copyBytes(source: AllowSharedBufferSource | undefined): Uint8Array<ArrayBuffer> | undefined {
  if (!source) return undefined;
  if (ArrayBuffer.isView(source)) {
    return new Uint8Array(source.buffer, source.byteOffset, source.byteLength).slice();
  }
  return new Uint8Array(source).slice();
}
