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
import { eachMp4Box, findMp4Box } from "../media/mp4-boxes.ts";
import { buildFragment, type FragmentSample, type FragmentTrack } from "../media/mp4-fragment.ts";
import { decodeTicks } from "../media/timestamps.ts";
import type { SourceTrack } from "./media-tracks.ts";
import { OwnedMemory } from "./owned-memory.ts";
import type { PacketReader, SegmentBounds } from "./packet-reader.ts";
import type { TsMuxPacket } from "./ts-mux-input.ts";
import { TS_BASE_SECONDS } from "./ts-muxer.ts";

/** The initialisation segment, and what fragments must know of its tracks. */
interface Init {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly tracks: readonly InitTrack[];
}

interface InitTrack {
  readonly id: number;
  readonly timescale: number;
  /** How far decoding runs ahead of showing. */
  readonly reorderSeconds: number;
}

/**
 * Writes packets as fragmented MP4: one `moov` for all, one fragment for each segment. Times are those of the transport
 * stream (ten seconds later than in the file), so that subtitles fit both. It keeps no position.
 */
export class Fmp4Writer {
  readonly tracks: readonly SourceTrack[];
  readonly #reader: PacketReader;
  #init: Init | undefined;

  constructor(reader: PacketReader, tracks: readonly SourceTrack[]) {
    this.#reader = reader;
    this.tracks = tracks;
  }

  /** The initialisation segment. Reads the first packet of each track, once. */
  async init(signal?: AbortSignalLike): Promise<Uint8Array<ArrayBuffer>> {
    return (await this.#prepare(signal)).bytes;
  }

  /** The packets within `bounds` as one fragment, numbered `index` + 1. */
  async segment(
    bounds: SegmentBounds,
    index: number,
    signal?: AbortSignalLike,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const init = await this.#prepare(signal);
    const memory = new OwnedMemory();
    const packets = await this.#reader.read(this.tracks, bounds, memory, signal);
    const fragments: FragmentTrack[] = [];
    for (const [position, track] of this.tracks.entries()) {
      const own = packets.filter((packet) => packet.track === position);
      if (own.length > 0) fragments.push(fragmentOf(own, track, init.tracks[position]!));
    }
    const segment = buildFragment(index + 1, fragments);
    memory.free();
    return segment;
  }

  async #prepare(signal?: AbortSignalLike): Promise<Init> {
    this.#init ??= await writeInit(this.#reader, this.tracks, signal);
    return this.#init;
  }
}

/** Lets the library write the `moov`: it knows the sample entries of every codec. */
async function writeInit(
  reader: PacketReader,
  tracks: readonly SourceTrack[],
  signal?: AbortSignalLike,
): Promise<Init> {
  const parts: Uint8Array[] = [];
  const keep = (data: Uint8Array) => parts.push(data.slice());
  const format = new CmafOutputFormat({ onFtyp: keep, onMoov: keep });
  const output = new Output({ format, target: new NullTarget(), initTarget: new NullTarget() });
  const feeds: Array<() => Promise<void>> = [];
  for (const track of tracks) {
    const packet = await reader.first(track, signal);
    assert(track.decoderConfig !== undefined, "a known codec has a decoder configuration");
    const moved = new EncodedPacket(
      packet.data,
      "key",
      Math.max(0, packet.ptsSeconds),
      packet.durationSeconds,
    );
    if (track.kind === "video") {
      const source = new EncodedVideoPacketSource(track.libraryCodec as VideoCodec);
      output.addVideoTrack(source);
      feeds.push(() => source.add(moved, { decoderConfig: track.decoderConfig as VideoDecoderConfig }));
    } else {
      const source = new EncodedAudioPacketSource(track.libraryCodec as AudioCodec);
      output.addAudioTrack(source, { languageCode: track.described.language });
      feeds.push(() => source.add(moved, { decoderConfig: track.decoderConfig as AudioDecoderConfig }));
    }
  }
  await output.start();
  for (const feed of feeds) await feed();
  await output.finalize();
  const bytes = concatBytes(parts);
  clearDates(bytes, 0, bytes.length);
  const numbered: InitTrack[] = [];
  for (const [position, numbers] of trackNumbers(bytes, tracks.length).entries()) {
    const track = tracks[position]!;
    const isVideo = track.kind === "video";
    numbered.push({ ...numbers, reorderSeconds: isVideo ? await reader.reorderSeconds(track, signal) : 0 });
  }
  return { bytes, tracks: numbered };
}

/** The library writes when it wrote; without that the same file gives the same bytes, whenever it is asked for. */
function clearDates(bytes: Uint8Array, from: number, to: number): void {
  eachMp4Box(bytes, from, to, ({ type, start, end }) => {
    if (type === "moov" || type === "trak" || type === "mdia") clearDates(bytes, start, end);
    else if (type === "mvhd" || type === "tkhd" || type === "mdhd") {
      bytes.fill(0, start + 4, start + (bytes[start] === 1 ? 20 : 12));
    }
  });
}

/** The id and the ticks a second of each track, in order. */
function trackNumbers(bytes: Uint8Array, count: number): { id: number; timescale: number }[] {
  const numbers: { id: number; timescale: number }[] = [];
  const moov = findMp4Box(bytes, 0, bytes.length, ["moov"]);
  assert(moov !== undefined, "the library writes a moov");
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
  assert(numbers.length === count, "the library writes every track");
  return numbers;
}

/**
 * Decode times are rebuilt as for MPEG-TS, never after the presentation: players differ in what they make of negative
 * composition offsets.
 */
function fragmentOf(packets: readonly TsMuxPacket[], track: SourceTrack, init: InitTrack): FragmentTrack {
  const { id, timescale, reorderSeconds } = init;
  const reorder = Math.round(reorderSeconds * timescale);
  const shown = packets.map(({ ptsSeconds }) => Math.round((ptsSeconds + TS_BASE_SECONDS) * timescale));
  const decoded = decodeTicks(shown, reorder);
  let latest = packets[0]!;
  for (const packet of packets) if (packet.ptsSeconds > latest.ptsSeconds) latest = packet;
  const end =
    Math.round((latest.ptsSeconds + latest.durationSeconds + TS_BASE_SECONDS) * timescale) - reorder;
  const samples = packets.map(
    (packet, i): FragmentSample => ({
      data: packet.data,
      duration: Math.max(0, (decoded[i + 1] ?? end) - decoded[i]!),
      isSync: track.kind === "audio" || packet.isKey,
      compositionOffset: shown[i]! - decoded[i]!,
    }),
  );
  return { id, decodeTime: Math.max(0, decoded[0]!), samples };
}
