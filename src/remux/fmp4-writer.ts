import {
  type AudioCodec,
  CmafOutputFormat,
  EncodedAudioPacketSource,
  EncodedPacket,
  EncodedVideoPacketSource,
  NullTarget,
  Output,
  type VideoCodec,
} from "mediabunny";
import { assert } from "../base/assert.ts";
import type { AbortSignalLike } from "../base/byte-source.ts";
import { concatBytes, readU32 } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import { eachMp4Box, findMp4Box } from "../media/mp4-boxes.ts";
import { buildFragment, type FragmentSample, type FragmentTrack } from "../media/mp4-fragment.ts";
import { decodeTicks } from "../media/timestamps.ts";
import type { SourceTrack } from "./media-tracks.ts";
import type { PacketReader } from "./packet-reader.ts";
import { Remuxer } from "./remuxer.ts";
import { type PacketBatch, TS_BASE_SECONDS, type TsMuxPacket } from "./ts-mux-input.ts";

/** The initialisation segment, and the track numbers that fragments refer to. */
interface Init {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly tracks: readonly InitTrack[];
}

interface InitTrack {
  readonly source: SourceTrack;
  readonly id: number;
  readonly timescale: number;
  /** How far decode times precede presentation times. */
  readonly reorderSeconds: number;
}

/** What the initialisation segment takes from a file. */
type FirstPackets = Pick<PacketReader, "first" | "reordering">;

/**
 * Writes packets as fragmented MP4 (ISO 14496-12 8.8): one `moov` for the file, one fragment per segment. Times equal those of the
 * transport stream (`TS_BASE_SECONDS` after the file's), so that the same subtitles fit both. It keeps no position.
 */
export class Fmp4Writer {
  readonly #tracks: readonly SourceTrack[];
  readonly #reader: FirstPackets;
  #init: Init | undefined;

  constructor(reader: FirstPackets, tracks: readonly SourceTrack[]) {
    this.#reader = reader;
    this.#tracks = tracks;
  }

  /** Returns the initialisation segment. The first call reads the first packet of each track. Rejects with `SluiceError`. */
  async init(signal?: AbortSignalLike): Promise<Uint8Array<ArrayBuffer>> {
    return (await this.#prepare(signal)).bytes;
  }

  /** Returns the tracks of the segments: those that have a packet near the start. */
  async tracks(signal?: AbortSignalLike): Promise<readonly SourceTrack[]> {
    return (await this.#prepare(signal)).tracks.map(({ source }) => source);
  }

  /**
   * Returns the stage that writes each segment as one fragment; the first has the sequence number `index + 1`. It holds a segment,
   * because the sizes of all frames precede the first (ISO 14496-12 8.8.8). Rejects with `SluiceError`.
   */
  async remuxer(
    index: number,
    signal?: AbortSignalLike,
  ): Promise<Remuxer<PacketBatch, Uint8Array<ArrayBuffer>>> {
    const init = await this.#prepare(signal);
    let sequence = index;
    let held: TsMuxPacket[][] = init.tracks.map(() => []);
    return new Remuxer({
      transform: ({ packets, endsSegment }) => {
        for (const packet of packets) held[packet.track]!.push(packet);
        if (!endsSegment) return [];
        const fragments = held.flatMap((own, position) =>
          own.length > 0 ? [fragmentOf(own, init.tracks[position]!)] : [],
        );
        const fragment = buildFragment(++sequence, fragments);
        for (const { memory } of held.flat()) memory?.release();
        held = init.tracks.map(() => []);
        return [fragment];
      },
    });
  }

  async #prepare(signal?: AbortSignalLike): Promise<Init> {
    this.#init ??= await writeInit(this.#reader, this.#tracks, signal);
    return this.#init;
  }
}

/** Writes the `moov` with mediabunny, which knows the sample entries of all codecs. */
async function writeInit(
  reader: FirstPackets,
  tracks: readonly SourceTrack[],
  signal?: AbortSignalLike,
): Promise<Init> {
  const parts: Uint8Array[] = [];
  const collect = (data: Uint8Array) => parts.push(data.slice());
  const format = new CmafOutputFormat({ onFtyp: collect, onMoov: collect });
  const output = new Output({ format, target: new NullTarget(), initTarget: new NullTarget() });
  const feeds: Array<() => Promise<void>> = [];
  const kept: SourceTrack[] = [];
  for (const track of tracks) {
    const packet = await firstPacket(reader, track, tracks, signal);
    if (!packet) continue;
    kept.push(track);
    assert(track.decoderConfig !== undefined, "a supported codec has no decoder configuration");
    const nonNegative = new EncodedPacket(
      packet.data,
      "key",
      Math.max(0, packet.ptsSeconds),
      packet.durationSeconds,
    );
    if (track.kind === "video") {
      const source = new EncodedVideoPacketSource(track.libraryCodec as VideoCodec);
      output.addVideoTrack(source);
      feeds.push(() => source.add(nonNegative, { decoderConfig: track.decoderConfig as VideoDecoderConfig }));
    } else {
      const source = new EncodedAudioPacketSource(track.libraryCodec as AudioCodec);
      output.addAudioTrack(source, { languageCode: track.described.language });
      feeds.push(() => source.add(nonNegative, { decoderConfig: track.decoderConfig as AudioDecoderConfig }));
    }
  }
  await output.start();
  for (const feed of feeds) await feed();
  await output.finalize();
  const bytes = concatBytes(parts);
  clearDates(bytes, 0, bytes.length);
  const numbered: InitTrack[] = [];
  for (const [position, numbers] of trackNumbers(bytes, kept.length).entries()) {
    const source = kept[position]!;
    const reorderSeconds = source.kind === "video" ? (await reader.reordering(source, signal)).seconds : 0;
    numbered.push({ source, ...numbers, reorderSeconds });
  }
  return { bytes, tracks: numbered };
}

/** Returns the first packet of a track; undefined for an audio track without packets beside a video, which then plays without sound. */
async function firstPacket(
  reader: FirstPackets,
  track: SourceTrack,
  tracks: readonly SourceTrack[],
  signal?: AbortSignalLike,
): Promise<TsMuxPacket | undefined> {
  try {
    return await reader.first(track, signal);
  } catch (error) {
    const isOptional = track.kind === "audio" && tracks.some(({ kind }) => kind === "video");
    if (isOptional && error instanceof SluiceError && error.code === "broken_media") return undefined;
    throw error;
  }
}

/** Clears the creation and modification times that mediabunny writes, so that the same file always gives the same bytes. */
function clearDates(bytes: Uint8Array, from: number, to: number): void {
  eachMp4Box(bytes, from, to, ({ type, start, end }) => {
    if (type === "moov" || type === "trak" || type === "mdia") clearDates(bytes, start, end);
    else if (type === "mvhd" || type === "tkhd" || type === "mdhd") {
      bytes.fill(0, start + 4, start + (bytes[start] === 1 ? 20 : 12));
    }
  });
}

/** The id and timescale of each track, in order. */
function trackNumbers(bytes: Uint8Array, count: number): { id: number; timescale: number }[] {
  const numbers: { id: number; timescale: number }[] = [];
  const moov = findMp4Box(bytes, 0, bytes.length, ["moov"]);
  assert(moov !== undefined, "mediabunny wrote no moov");
  eachMp4Box(bytes, moov.start, moov.end, (box) => {
    if (box.type !== "trak") return;
    const header = findMp4Box(bytes, box.start, box.end, ["tkhd"])!;
    const media = findMp4Box(bytes, box.start, box.end, ["mdia", "mdhd"])!;
    const isLong = (at: number) => bytes[at] === 1;
    numbers.push({
      id: readU32(bytes, header.start + (isLong(header.start) ? 20 : 12)),
      timescale: readU32(bytes, media.start + (isLong(media.start) ? 20 : 12)),
    });
  });
  assert(numbers.length === count, "mediabunny did not write every track");
  return numbers;
}

/**
 * Computes decode times as for MPEG-TS, never after the presentation time, because players handle negative composition offsets
 * differently.
 */
function fragmentOf(packets: readonly TsMuxPacket[], track: InitTrack): FragmentTrack {
  const { source, id, timescale, reorderSeconds } = track;
  const reorder = Math.round(reorderSeconds * timescale);
  const pts = packets.map(({ ptsSeconds }) => Math.round((ptsSeconds + TS_BASE_SECONDS) * timescale));
  const dts = decodeTicks(pts, reorder);
  let latest = packets[0]!;
  for (const packet of packets) if (packet.ptsSeconds > latest.ptsSeconds) latest = packet;
  const end =
    Math.round((latest.ptsSeconds + latest.durationSeconds + TS_BASE_SECONDS) * timescale) - reorder;
  const samples = packets.map(
    (packet, i): FragmentSample => ({
      data: packet.data,
      duration: Math.max(0, (dts[i + 1] ?? end) - dts[i]!),
      isSync: source.kind === "audio" || packet.isKey,
      compositionOffset: pts[i]! - dts[i]!,
    }),
  );
  return { id, decodeTime: Math.max(0, dts[0]!), samples };
}
