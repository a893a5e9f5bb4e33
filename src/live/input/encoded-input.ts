import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { PacketAligner } from "../../media/ts-align.ts";
import { pidAt, TS_PACKET_BYTES } from "../../media/ts-packet.ts";
import { streamsOf } from "../../media/ts-programme.ts";
import { TableReader } from "../../media/ts-tables.ts";
import type { Clock } from "../../runtime/contract.ts";
import { InputBranches } from "./input-branches.ts";
import type { LiveInput } from "./source.ts";
import { type RunEncoder, waitForRetry } from "./source-feed.ts";

/** A picture size and a rate that the video is encoded with. */
export interface EncodedRendition {
  /** Lines. */
  readonly height: number;
  readonly bitsPerSecond: number;
}

/** Bits per second of the audio of each rendition. */
const ENCODED_AUDIO_RATE = 128_000;

/** The tables of a stream are repeated within this many bytes: a second of 16 Mbit/s. */
const MAX_HEAD_BYTES = 2 * 1024 * 1024;

/** What {@link encodedInputs} depends on. */
export interface EncoderDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly encode: RunEncoder;
}

/**
 * Encodes a stream in several sizes with one process of ffmpeg, until `signal` fires or the stream ends. Returns an input for each
 * rendition. The process is started again if it ends. `open` returns the stream from now on.
 */
export function encodedInputs(
  renditions: readonly EncodedRendition[],
  open: () => LiveInput,
  { clock, log, encode }: EncoderDependencies,
  signal: AbortSignal,
): readonly LiveInput[] {
  const branches = new InputBranches(clock);
  const inputs = renditions.map((_, nth) => branches.add(nth + 1));
  const run = async () => {
    let isOver = false;
    for (let failures = 1; !isOver && !signal.aborted; failures++) {
      const source = new SourceReader(open().packets());
      const aligner = new PacketAligner();
      let problem = "ffmpeg has ended";
      try {
        const args = encoderArguments(renditions, await source.hasAudio());
        const reader = encode(args, source.stream(), signal).getReader();
        for (let read = await reader.read(); !read.done; read = await reader.read()) {
          const packets = aligner.push(read.value);
          if (packets.length > 0) branches.push(packets);
          failures = 1;
        }
      } catch (thrown) {
        problem = messageOf(thrown);
      }
      isOver = source.hasEnded;
      if (!isOver && !signal.aborted) await waitForRetry({ clock, log }, problem, failures, signal);
    }
  };
  void run()
    .catch((thrown) => {
      if (!signal.aborted) log.warn("renditions are no longer encoded", { reason: messageOf(thrown) });
    })
    .finally(() => branches.end());
  return inputs;
}

/** The source of one process: its tables are read before the process starts. */
class SourceReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #head: Uint8Array[] = [];
  hasEnded = false;

  constructor(packets: ReadableStream<Uint8Array>) {
    this.#reader = packets.getReader();
  }

  /** Waits for the tables of the stream. */
  async hasAudio(): Promise<boolean> {
    const tables = new TableReader();
    for (let bytes = 0; bytes < MAX_HEAD_BYTES; bytes += this.#head.at(-1)!.length) {
      const packets = await this.#next();
      if (!packets) return false;
      this.#head.push(packets);
      for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES)
        if (tables.wants(pidAt(packets, at))) tables.push(packets, at);
      const found = tables.tables(false);
      if (found) return streamsOf(found.pmt).some(({ kind }) => kind === "audio");
    }
    return false;
  }

  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const packets = this.#head.shift() ?? (await this.#next());
          if (packets) controller.enqueue(packets);
          else controller.close();
        },
        cancel: (reason) => this.#reader.cancel(reason),
      },
      { highWaterMark: 0 },
    );
  }

  async #next(): Promise<Uint8Array | undefined> {
    const { done, value } = await this.#reader.read();
    this.hasEnded = done;
    return value;
  }
}

/**
 * Each rendition becomes a programme of one transport stream. Timestamps are those of the source, and key frames are where the source has
 * them, so that players can change between the renditions and the source at any segment.
 */
function encoderArguments(renditions: readonly EncodedRendition[], hasAudio: boolean): string[] {
  const labels = renditions.map((_, nth) => `[r${nth}]`);
  const sizes = renditions.map(
    ({ height }, nth) => `[s${nth}]yadif=deint=interlaced,scale=-2:${height}[r${nth}]`,
  );
  const split = `[0:v:0]split=${renditions.length}${renditions.map((_, nth) => `[s${nth}]`).join("")}`;
  return [
    ...["-hide_banner", "-nostats", "-loglevel", "error", "-copyts"],
    ...["-fflags", "+discardcorrupt", "-analyzeduration", "2000000", "-f", "mpegts", "-i", "pipe:0"],
    ...["-filter_complex", [split, ...sizes].join(";")],
    ...labels.flatMap((label) => ["-map", label, ...(hasAudio ? ["-map", "0:a:0"] : [])]),
    ...["-c:v", "libx264", "-preset", "veryfast", "-tune", "zerolatency", "-pix_fmt", "yuv420p"],
    ...[
      "-g",
      "9999",
      "-force_key_frames:v",
      "source",
      "-fps_mode",
      "passthrough",
      "-enc_time_base:v",
      "1:90000",
    ],
    ...renditions.flatMap(({ bitsPerSecond }, nth) => {
      const video = String(Math.max(32_000, bitsPerSecond - ENCODED_AUDIO_RATE));
      return [`-b:v:${nth}`, video, `-maxrate:v:${nth}`, video, `-bufsize:v:${nth}`, video];
    }),
    ...renditions.flatMap((_, nth) => {
      const streams = hasAudio ? [2 * nth, 2 * nth + 1] : [nth];
      return ["-program", [`program_num=${nth + 1}`, ...streams.map((index) => `st=${index}`)].join(":")];
    }),
    ...["-c:a", "aac", "-b:a", String(ENCODED_AUDIO_RATE), "-ac", "2"],
    ...["-f", "mpegts", "-muxdelay", "0", "-muxpreload", "0", "-mpegts_copyts", "1", "-flush_packets", "1"],
  ];
}
