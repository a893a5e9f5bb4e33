import { assert } from "../base/assert.ts";
import { DecodeError, SluiceError } from "../base/errors.ts";
import { buildPmt, type PmtStream } from "../media/psi.ts";
import { TICKS_PER_SECOND } from "../media/timestamps.ts";
import { nullPackets, TS_PACKET_BYTES } from "../media/ts-packet.ts";
import type { PlannedFrame, PlannedFrames } from "./packet-reader.ts";
import { Remuxer } from "./remuxer.ts";
import { type FrameWriter, frameWriter } from "./ts-frames.ts";
import type { PacketBatch, TsMuxPacket, TsMuxTrack } from "./ts-mux-input.ts";
import type { PlannedTrack } from "./ts-pes-planner.ts";
import { TsSegmentWriter } from "./ts-segment-writer.ts";
import { TablesWriter } from "./ts-tables-writer.ts";

const PMT_PID = 0x1000;
const FIRST_PID = 0x100;
/** A track ahead of the others waits for them, up to so many bytes: as far as badly interleaved files are read for late audio. */
const HOLD_BYTES = 64 * 1024 * 1024;
/** Encoders change their reordering within a file, so a few more frames are known than those measured at its start. */
const MIN_REORDER_FRAMES = 4;

const STREAM_TYPES = {
  h264: 0x1b,
  hevc: 0x24,
  aac: 0x0f,
  mp3: 0x03,
  mp2: 0x03,
  ac3: 0x81,
  eac3: 0x87,
  dts: 0x82,
} as const;
const REGISTRATIONS: Partial<Record<TsMuxTrack["codec"], string>> = {
  hevc: "HEVC",
  ac3: "AC-3",
  eac3: "EAC3",
  // Without it the type 0x82 means subtitles to some players (SCTE 27). DTS1 to DTS3 differ only in the frame size.
  dts: "DTS1",
};

/**
 * Writes encoded frames as MPEG-TS segments (ISO 13818-1). It keeps no position: segments can be made in any order. Concatenated they
 * are one valid stream, because each segment has a multiple of 16 packets on every PID and so begins with continuity counter 0.
 */
export class TsMuxer {
  readonly #tracks: readonly Track[];
  readonly #tables: TablesWriter;

  /** Throws `SluiceError("broken_media")` if a decoder configuration is invalid. ADTS must carry the AAC tracks ({@link fitTs}). */
  constructor(tracks: readonly TsMuxTrack[]) {
    assert(tracks.length > 0, "a transport stream needs a track");
    const clockIndex = Math.max(0, tracks.findIndex(isVideoTrack));
    this.#tracks = tracks.map((track, index) => makeTrack(track, index, clockIndex));
    const streams = this.#tracks.map((track) => track.stream);
    const pmt = buildPmt({ programme: 1, version: 0, pcrPid: this.#tracks[clockIndex]!.pid, streams });
    this.#tables = new TablesWriter(PMT_PID, 1, pmt);
  }

  /**
   * Returns one segment of whole transport packets, PAT and PMT first. `packets` are the frames of the segment in decode order
   * within each track: video from its key frame to the next segment's, audio with a PTS between the two.
   */
  segment(packets: readonly TsMuxPacket[]): Uint8Array<ArrayBuffer> {
    const writer = new TsSegmentWriter(this.#tracks, this.#tables, Number.POSITIVE_INFINITY);
    for (const packet of packets) writer.add(packet);
    return writer.finish();
  }

  /**
   * Returns the stage that writes the segments of a stream of frames. If `sizes` are given, each segment is filled up to its size in
   * bytes with null packets.
   */
  remuxer(sizes?: Iterator<number>): Remuxer<PacketBatch, Uint8Array<ArrayBuffer>> {
    const begin = () => new TsSegmentWriter(this.#tracks, this.#tables, HOLD_BYTES);
    let writer = begin();
    let written = 0;
    return new Remuxer({
      transform({ packets, endsSegment }) {
        for (const packet of packets) writer.add(packet);
        const output = endsSegment ? [writer.finish()] : writer.take();
        if (sizes) for (const { length } of output) written += length;
        if (!endsSegment) return output;
        writer = begin();
        if (sizes) output.push(...filling(written, sizes.next().value));
        written = 0;
        return output;
      },
    });
  }

  /**
   * Returns the sizes of segments in bytes by the sizes of their frames alone: no frame becomes larger than that. Segments of frames
   * with a smaller result are smaller. Returns undefined if the sizes of frames in the stream depend on their content.
   */
  segmentSizes(frames: Iterable<PlannedFrames>): Iterable<number> | undefined {
    const tracks: Track[] = [];
    for (const track of this.#tracks) {
      const bound = track.frames.bound?.bind(track.frames);
      if (!bound) return undefined;
      tracks.push({ ...track, measure: (packet) => bound((packet as PlannedFrame).size, packet.isKey) });
    }
    return sizesOf(frames, () => new TsSegmentWriter(tracks, this.#tables, HOLD_BYTES));
  }
}

function* sizesOf(frames: Iterable<PlannedFrames>, begin: () => TsSegmentWriter): Generator<number> {
  let writer = begin();
  let bytes = 0;
  for (const { samples, endsSegment } of frames) {
    for (const sample of samples) writer.add(sample);
    bytes += endsSegment ? writer.finishSize() : writer.takeSize();
    if (!endsSegment) continue;
    yield bytes;
    writer = begin();
    bytes = 0;
  }
}

/** The null packets between a segment of `written` bytes and its planned size. */
function filling(written: number, size: number): Uint8Array<ArrayBuffer>[] {
  if (written > size)
    throw new SluiceError("broken_media", "a frame contains less than the index of the file states");
  return written < size ? [nullPackets((size - written) / TS_PACKET_BYTES)] : [];
}

/** One output track. */
interface Track extends PlannedTrack {
  readonly stream: PmtStream;
}

function makeTrack(track: TsMuxTrack, index: number, clockIndex: number): Track {
  const isVideo = isVideoTrack(track);
  const isPrivate = track.codec === "ac3" || track.codec === "eac3" || track.codec === "dts";
  const registration = REGISTRATIONS[track.codec];
  const isMpeg2 = STREAM_TYPES[track.codec] === 3 && (track.sampleRate ?? 48000) < 32000;
  const frames = readFrameWriter(track);
  const language = /^[a-z]{3}$/.test(track.language) && track.language !== "und" ? track.language : undefined;
  return {
    pid: FIRST_PID + index,
    streamId: isVideo ? 0xe0 : isPrivate ? 0xbd : 0xc0 + (index & 31),
    isVideo,
    hasClock: index === clockIndex,
    stream: {
      streamType: isMpeg2 ? 4 : STREAM_TYPES[track.codec],
      pid: FIRST_PID + index,
      ...(registration && { registration }),
      ...(language && !isVideo && { language }),
    },
    frames,
    measure: ({ data, isKey }) => frames.measure(data, isKey),
    // Rounded up, with a tolerance for floating point errors.
    reorderTicks: Math.ceil((track.reorderSeconds ?? 0) * TICKS_PER_SECOND - 0.01),
    reorderFrames: Math.max(MIN_REORDER_FRAMES, track.reorderFrames ?? Number.POSITIVE_INFINITY),
  };
}

function isVideoTrack({ codec }: TsMuxTrack): boolean {
  return codec === "h264" || codec === "hevc";
}

function readFrameWriter(track: TsMuxTrack): FrameWriter {
  try {
    return frameWriter(track);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw new SluiceError(
      "broken_media",
      `the ${track.codec} decoder configuration is invalid: ${error.message}`,
      {
        cause: error,
      },
    );
  }
}
