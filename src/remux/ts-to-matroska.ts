import {
  type AudioCodec,
  CustomSource,
  EncodedAudioPacketSource,
  type EncodedPacket,
  EncodedPacketSink,
  EncodedVideoPacketSource,
  Input,
  type InputAudioTrack,
  type InputVideoTrack,
  MkvOutputFormat,
  MPEG_TS,
  Output,
  StreamTarget,
  type VideoCodec,
} from "mediabunny";
import type { RandomAccess } from "../base/byte-source.ts";
import { latin1Bytes } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";

/** What a Matroska file says about its content. Empty texts are omitted. */
export interface MatroskaTags {
  readonly title: string;
  readonly subtitle: string;
  readonly description: string;
  /** Such as `S02E05`. */
  readonly episode: string;
  readonly channel: string;
  /** UNIX time. */
  readonly recordedAt: number;
}

/** Dependencies of {@link tsToMatroska}. */
interface MatroskaJob {
  readonly source: RandomAccess;
  readonly tags: MatroskaTags;
  /** Writes at an offset of the new file; offsets before the end are written again at the end. */
  write(at: number, bytes: Uint8Array): Promise<void>;
  /** Called with the share that is done, 0 to 1. */
  progress(share: number): void;
  readonly signal: AbortSignal;
}

const READ_LIMIT_BYTES = 16 * 1024 * 1024;
const CACHE_BYTES = 8 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;
/** The codec id that mediabunny writes for MPEG audio, and that of layer II, which broadcasts use (Matroska codec registry). */
const LAYER_3 = latin1Bytes("A_MPEG/L3");
const LAYER_2 = latin1Bytes("A_MPEG/L2");
/** The track heads are within the first bytes of the file. */
const HEAD_BYTES = 64 * 1024;

/** A track that is copied, with its next packet. */
interface Copied {
  readonly packets: AsyncGenerator<EncodedPacket, void>;
  next: EncodedPacket | undefined;
  /** The latest time so far, in seconds, and that before the last key frame. */
  shown: number;
  shownBeforeKey: number;
  add(packet: EncodedPacket): Promise<void>;
}

/**
 * Copies the video and the audio tracks of a transport stream into a Matroska file, with an index, the duration and tags. Nothing is
 * converted. Rejects with `unsupported_content` if a track cannot be copied, with the signal's reason when it fires.
 */
export async function tsToMatroska({ source, tags, write, progress, signal }: MatroskaJob): Promise<void> {
  let isLayer2 = false;
  const input = new Input({
    formats: [MPEG_TS],
    source: new CustomSource({
      getSize: () => source.size,
      read(start, end) {
        signal.throwIfAborted();
        if (end - start > READ_LIMIT_BYTES) throw new SluiceError("broken_media", "the stream is damaged");
        return source.read({ start, end });
      },
      maxCacheSize: CACHE_BYTES,
      prefetchProfile: "none",
      handleUnhandledError: () => {},
    }),
  });
  const writable = new WritableStream<{ readonly data: Uint8Array; readonly position: number }>({
    async write({ data, position }) {
      signal.throwIfAborted();
      await write(position, isLayer2 && position < HEAD_BYTES ? withLayer2(data) : data);
    },
  });
  const target = new StreamTarget(writable, { chunked: true, chunkSize: CHUNK_BYTES });
  const output = new Output({ format: new MkvOutputFormat(), target });
  try {
    const copied: Copied[] = [];
    for (const track of await input.getTracks()) {
      if (!track.isVideoTrack() && !track.isAudioTrack()) continue;
      const codec = await track.getCodec();
      if (codec === null)
        throw new SluiceError("unsupported_content", "a track of the recording cannot be stored in Matroska");
      const packets = new EncodedPacketSink(track).packets();
      const first = await packets.next();
      if (first.done) continue;
      isLayer2 ||= codec === "mp3" && isLayerTwo(first.value.data);
      const add = track.isVideoTrack()
        ? await addVideo(output, track, codec as VideoCodec)
        : await addAudio(output, track as InputAudioTrack, codec as AudioCodec);
      copied.push({ packets, next: first.value, add, shown: -1, shownBeforeKey: -1 });
    }
    if (copied.length === 0) throw new SluiceError("broken_media", "the recording has no media");
    output.setMetadataTags(metadataOf(tags));
    await output.start();
    await copyAll(copied, progress, source.size, signal);
    await output.finalize();
  } catch (error) {
    if (output.state === "started") await output.cancel().catch(() => {});
    throw signal.aborted ? signal.reason : error;
  } finally {
    input.dispose();
  }
}

async function addVideo(output: Output, track: InputVideoTrack, codec: VideoCodec) {
  const source = new EncodedVideoPacketSource(codec);
  output.addVideoTrack(source);
  const decoderConfig = (await track.getDecoderConfig()) ?? undefined;
  return (packet: EncodedPacket) => source.add(packet, decoderConfig && { decoderConfig });
}

async function addAudio(output: Output, track: InputAudioTrack, codec: AudioCodec) {
  const source = new EncodedAudioPacketSource(codec);
  output.addAudioTrack(source, { languageCode: await track.getLanguageCode() });
  const decoderConfig = (await track.getDecoderConfig()) ?? undefined;
  return (packet: EncodedPacket) => source.add(packet, decoderConfig && { decoderConfig });
}

/** Copies the packets of all tracks in the order of their times, from 0. */
async function copyAll(
  tracks: readonly Copied[],
  progress: (share: number) => void,
  size: number,
  signal: AbortSignal,
): Promise<void> {
  const start = Math.min(...tracks.map(({ next }) => next!.timestamp));
  for (let bytes = 0; ; ) {
    signal.throwIfAborted();
    let first: Copied | undefined;
    for (const track of tracks)
      if (track.next && (!first?.next || track.next.timestamp < first.next.timestamp)) first = track;
    if (!first?.next) return;
    const packet = first.next;
    bytes += packet.byteLength;
    const timestamp = Math.max(0, packet.timestamp - start);
    if (packet.type === "key") first.shownBeforeKey = first.shown;
    // Frames of a damaged place that would be shown among those before the last key frame are left out.
    if (timestamp >= first.shownBeforeKey) await first.add(packet.clone({ timestamp }));
    first.shown = Math.max(first.shown, timestamp);
    const next = await first.packets.next();
    first.next = next.done ? undefined : next.value;
    progress(Math.min(1, bytes / size));
  }
}

function metadataOf({ title, subtitle, description, episode, channel, recordedAt }: MatroskaTags) {
  const raw = { SUBTITLE: subtitle, EPISODE: episode, PUBLISHER: channel, SYNOPSIS: description };
  return {
    title,
    ...(description !== "" && { description }),
    date: new Date(1000 * recordedAt),
    raw: Object.fromEntries(Object.entries(raw).filter(([, value]) => value !== "")),
  };
}

/** Whether a frame of MPEG audio is of layer II (ISO 11172-3 2.4.2.3). */
function isLayerTwo(frame: Uint8Array): boolean {
  return frame[0] === 0xff && (frame[1]! & 0xe0) === 0xe0 && (frame[1]! & 0x06) === 0x04;
}

function withLayer2(bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice();
  const end = Math.min(copy.length, HEAD_BYTES) - LAYER_3.length;
  for (let at = 0; at <= end; at++)
    if (LAYER_3.every((byte, i) => copy[at + i] === byte)) copy.set(LAYER_2, at);
  return copy;
}
