import { assert } from "../base/assert.ts";
import type { BufferPool } from "../base/buffer-pool.ts";
import { concatBytes } from "../base/bytes.ts";
import { DecodeError, SluiceError } from "../base/errors.ts";
import { buildPmt, type PmtStream } from "../media/psi.ts";
import { TICKS_PER_SECOND } from "../media/timestamps.ts";
import type { PlannedFrame, PlannedFrames } from "./packet-reader.ts";
import { Remuxer } from "./remuxer.ts";
import { type FrameWriter, frameWriter } from "./ts-frames.ts";
import type { PacketBatch, TsMuxPacket, TsMuxTrack } from "./ts-mux-input.ts";
import type { PlannedTrack } from "./ts-pes-planner.ts";
import { TsSegmentWriter } from "./ts-segment-writer.ts";
import { TablesWriter } from "./ts-tables-writer.ts";

/** The PID of the programme map table. */
export const PMT_PID = 0x1000;
const FIRST_PID = 0x100;
/**
 * A track ahead of the others waits for them, up to so many bytes. ffmpeg may store audio 10 s late (`max_interleave_delta`), which is
 * this much at 53 Mbit/s; written earlier, the audio would come after its time, and players drop it. The demuxer reads no further ahead
 * either. A well interleaved file holds a few frames.
 */
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
  readonly #tracks: readonly TsTrack[];
  readonly #tables: TablesWriter;

  /**
   * Throws `SluiceError("broken_media")` if a decoder configuration is invalid. ADTS must carry the AAC tracks ({@link fitTs}).
   * `isPlanned`: the frames are {@link PlannedFrame}s, whose sizes alone decide the size of the stream. All tracks must allow it
   * ({@link canPlan}).
   */
  constructor(tracks: readonly TsMuxTrack[], isPlanned = false) {
    assert(tracks.length > 0, "a transport stream needs a track");
    const clockIndex = Math.max(0, tracks.findIndex(isVideoTrack));
    this.#tracks = tracks.map((track, index) => outputTrack(track, index, clockIndex, isPlanned));
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
    return concatBytes(writer.finish());
  }

  /** Returns the stage that writes the segments of a stream of frames, into memory of `pool`. */
  remuxer(pool?: BufferPool): Remuxer<PacketBatch, Uint8Array<ArrayBuffer>> {
    const begin = () => new TsSegmentWriter(this.#tracks, this.#tables, HOLD_BYTES, pool);
    let writer = begin();
    return new Remuxer({
      transform({ packets, endsSegment }) {
        for (const packet of packets) writer.add(packet);
        if (!endsSegment) return writer.take();
        const end = writer.finish();
        writer = begin();
        return end;
      },
    });
  }

  /** Returns the sizes of the segments of these frames in bytes. Only for a muxer of planned frames. */
  *sizes(frames: Iterable<PlannedFrames>): Generator<number> {
    let writer = new TsSegmentWriter(this.#tracks, this.#tables, HOLD_BYTES);
    let bytes = 0;
    for (const { samples, endsSegment } of frames) {
      for (const sample of samples) writer.add(sample);
      if (endsSegment) writer.end();
      bytes += writer.takeSize();
      if (!endsSegment) continue;
      yield bytes;
      writer = new TsSegmentWriter(this.#tracks, this.#tables, HOLD_BYTES);
      bytes = 0;
    }
  }

  /** Marks the frames of a segment that end before byte `skipBytes` of it: they are not read. Only for a muxer of planned frames. */
  skip(frames: Iterable<PlannedFrames>, skipBytes: number): void {
    const writer = new TsSegmentWriter(this.#tracks, this.#tables, HOLD_BYTES);
    for (const { samples } of frames) for (const sample of samples) writer.add(sample);
    writer.end();
    writer.takeSize((written, end) => {
      if (end <= skipBytes) for (const frame of written) (frame as PlannedFrame).isSkipped = true;
    });
  }
}

/** Returns true if the sizes of a track's frames in the stream follow from their sizes in the file. */
export function canPlan(track: TsMuxTrack): boolean {
  return readFrameWriter(track).bound !== undefined;
}

/** One output track. */
export interface TsTrack extends PlannedTrack {
  readonly stream: PmtStream;
}

/** Frames are measured when their data is known. */
function measuredForm(frames: FrameWriter): Pick<TsTrack, "measure" | "write"> {
  return {
    measure: ({ data, isKey }) => frames.measure(data, isKey),
    write: ({ data, isKey }, out, at) => frames.write(data, isKey, out, at),
  };
}

/**
 * Frames have the size that an index tells. Zeros follow those that are smaller, and replace those that are not read. An Annex B stream
 * may have them after a unit (ISO 14496-10 B.1.2).
 */
function plannedForm(frames: FrameWriter): Pick<TsTrack, "measure" | "write"> {
  assert(frames.bound, "the size of a frame depends on its content");
  const bound = frames.bound.bind(frames);
  return {
    measure: (frame) => bound((frame as PlannedFrame).size, frame.isKey),
    write(frame, out, at) {
      const size = bound((frame as PlannedFrame).size, frame.isKey);
      const written = frame.data.length > 0 ? frames.write(frame.data, frame.isKey, out, at) : 0;
      out.fill(0, at + written, at + size);
      return size;
    },
  };
}

/** Returns how a track is written; `index` numbers its PID. The track `clockIndex` carries the PCR. */
export function outputTrack(
  track: TsMuxTrack,
  index: number,
  clockIndex: number,
  isPlanned: boolean,
): TsTrack {
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
    ...(isPlanned ? plannedForm(frames) : measuredForm(frames)),
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
