import { BufferPool } from "../../base/buffer-pool.ts";
import type { AbortSignalLike } from "../../base/byte-source.ts";
import { concatBytes } from "../../base/bytes.ts";
import type { AudioConversion } from "../contract.ts";
import type { SourceTrack } from "../media-tracks.ts";
import {
  type Demux,
  lastSeconds,
  type PacketReader,
  type Reordering,
  type SegmentBounds,
} from "../packet-reader.ts";
import { connect, Remuxer } from "../remuxer.ts";
import type { PacketBatch, TsMuxPacket } from "../ts-mux-input.ts";
import { type AudioTranscoder, converts, PREROLL_SECONDS, type TranscodePlan } from "./transcoder.ts";

/** A file whose audio is transcoded. */
interface TranscodedFile {
  readonly reader: PacketReader;
  /** The tracks in the same order; transcoded ones are described as AAC. */
  readonly tracks: readonly SourceTrack[];
  /** The start times of the segments. */
  readonly cuts: readonly number[];
}

/**
 * Replaces the audio tracks that a request converts. Reads the first frame of each of them. Tracks with a codec that cannot be decoded
 * are omitted, so that the picture plays.
 */
export async function transcodeFile<T extends TranscodedFile>(
  file: T,
  conversion: AudioConversion,
  transcoder: AudioTranscoder,
  signal?: AbortSignalLike,
): Promise<T> {
  const { reader, tracks, cuts } = file;
  const plans = new Map<SourceTrack, Transcoded>();
  const replaced: SourceTrack[] = [];
  for (const track of tracks) {
    if (track.kind !== "audio" || !converts(conversion, track.described.codec)) {
      replaced.push(track);
      continue;
    }
    transcoder.prepare(track.described.codec);
    const first = await reader.first(track, signal).catch(() => undefined);
    const plan = await transcoder.plan(sourceOf(track), first, conversion.channels);
    if (!plan) continue;
    const aac = asAac(track, plan);
    plans.set(aac, { original: track, plan });
    replaced.push(aac);
  }
  return { ...file, reader: new TranscodingReader(reader, transcoder, cuts, plans), tracks: replaced };
}

interface Transcoded {
  readonly original: SourceTrack;
  readonly plan: TranscodePlan;
}

/** Returns what a decoder needs to know of a track. */
export function sourceOf({ described, config, decoderConfig, sampleRate }: SourceTrack) {
  const channels = (decoderConfig as AudioDecoderConfig | undefined)?.numberOfChannels;
  return { codec: described.codec, config, sampleRate, channels };
}

/** Describes a track as the AAC that it is converted to. */
export function asAac(track: SourceTrack, { config, sampleRate, channels }: TranscodePlan): SourceTrack {
  const codec = "mp4a.40.2";
  return {
    ...track,
    described: {
      ...track.described,
      codec: "aac",
      codecString: codec,
      channels,
      convertedFrom: track.described.codec,
    },
    libraryCodec: "aac",
    decoderConfig: { codec, sampleRate, numberOfChannels: channels, description: config },
    config,
    sampleRate,
  };
}

/** Identifies the packets of a segment. */
function segmentKey(tracks: readonly SourceTrack[], { startSeconds }: SegmentBounds): string {
  return `${tracks.map(({ id }) => id)} ${startSeconds}`;
}

/** Returns the indexes of the packets that are converted, `[from, to)`. */
function sliceOf(packets: readonly TsMuxPacket[], { sliceSeconds }: SegmentBounds): [number, number] {
  const [from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY] = sliceSeconds ?? [];
  const firstFrom = (seconds: number) => {
    const found = packets.findIndex(({ ptsSeconds }) => ptsSeconds >= seconds);
    return found < 0 ? packets.length : found;
  };
  return [firstFrom(from), firstFrom(to)];
}

/** Packets that are kept for further slices of their segments: 20 s of uncompressed stereo, a segment of each of ten tracks of AC-3. */
const KEPT_BYTES = 4 * 1024 * 1024;

/** Copies the packets of one batch to one piece of memory, and returns theirs: it is four times as much, and conversion takes a while. */
function copyPackets(packets: readonly TsMuxPacket[]): TsMuxPacket[] {
  const bytes = concatBytes(packets.map(({ data }) => data));
  let at = 0;
  return packets.map(({ memory, ...packet }) => {
    const data = bytes.subarray(at, at + packet.data.length);
    at += data.length;
    memory?.release();
    return { ...packet, data };
  });
}

/** Reads packets, and AAC in place of the audio that is transcoded. */
class TranscodingReader implements PacketReader {
  readonly #reader: PacketReader;
  readonly #transcoder: AudioTranscoder;
  readonly #plans: ReadonlyMap<SourceTrack, Transcoded>;
  /** The start times of the segments. */
  readonly #cuts: readonly number[];
  /** The packets of segments of which slices are requested one after the other, with their bytes; the oldest is first. */
  readonly #sliced = new Map<string, { readonly packets: readonly TsMuxPacket[]; readonly bytes: number }>();
  #keptBytes = 0;
  /** The memory for the output of slices that are not read. */
  #pool = new BufferPool();

  constructor(
    reader: PacketReader,
    transcoder: AudioTranscoder,
    cuts: readonly number[],
    plans: ReadonlyMap<SourceTrack, Transcoded>,
  ) {
    this.#reader = reader;
    this.#transcoder = transcoder;
    this.#cuts = cuts;
    this.#plans = plans;
  }

  async demux(
    tracks: readonly SourceTrack[],
    segments: readonly SegmentBounds[],
    signal?: AbortSignalLike,
  ): Promise<Demux> {
    const originals = tracks.map((track) => this.#original(track));
    const [first] = segments;
    const known = first?.sliceSeconds && this.#sliced.get(segmentKey(originals, first));
    if (known) return this.#known(tracks, known.packets, first, signal);
    const { demuxer, ...rest } = await this.#reader.demux(originals, segments, signal);
    this.#pool = rest.pool;
    return { ...rest, demuxer: connect(demuxer, this.#stage(tracks, segments, signal)) };
  }

  /** The stage that replaces audio. It holds a segment, because that is transcoded as a whole. */
  #stage(
    tracks: readonly SourceTrack[],
    segments: readonly SegmentBounds[],
    stopped: AbortSignalLike = new AbortController().signal,
  ): Remuxer<PacketBatch, PacketBatch> {
    let held: TsMuxPacket[] = [];
    let next = 0;
    return new Remuxer({
      transform: async ({ packets, endsSegment }) => {
        const isConverted = ({ track }: TsMuxPacket) => this.#plans.has(tracks[track]!);
        held.push(...packets.filter((packet) => !isConverted(packet)));
        held.push(...copyPackets(packets.filter(isConverted)));
        if (!endsSegment) return [];
        const read = held;
        const bounds = segments[Math.min(next++, segments.length - 1)]!;
        held = [];
        this.#keep(tracks, read, bounds);
        return [{ packets: await this.#replaced(tracks, read, bounds, stopped), endsSegment }];
      },
    });
  }

  /** Makes another slice of a segment whose packets are known: nothing is read. */
  #known(
    tracks: readonly SourceTrack[],
    packets: readonly TsMuxPacket[],
    bounds: SegmentBounds,
    stopped: AbortSignalLike = new AbortController().signal,
  ): Demux {
    const flush = async () => [
      { packets: await this.#replaced(tracks, packets, bounds, stopped), endsSegment: true },
    ];
    const demuxer = new Remuxer<Uint8Array<ArrayBuffer>, PacketBatch>({ transform: () => [], flush });
    return { ranges: () => [], demuxer, pool: this.#pool };
  }

  #keep(tracks: readonly SourceTrack[], packets: readonly TsMuxPacket[], bounds: SegmentBounds): void {
    const bytes = packets.reduce((sum, { data }) => sum + data.length, 0);
    const key = segmentKey(
      tracks.map((track) => this.#original(track)),
      bounds,
    );
    if (!bounds.sliceSeconds || bytes > KEPT_BYTES || this.#sliced.has(key)) return;
    this.#keptBytes += bytes;
    for (const [oldest, kept] of this.#sliced) {
      if (this.#keptBytes <= KEPT_BYTES) break;
      this.#sliced.delete(oldest);
      this.#keptBytes -= kept.bytes;
    }
    this.#sliced.set(key, { packets, bytes });
  }

  async #replaced(
    tracks: readonly SourceTrack[],
    read: readonly TsMuxPacket[],
    bounds: SegmentBounds,
    signal: AbortSignalLike,
  ): Promise<TsMuxPacket[]> {
    const packets = read.filter(({ track }) => !this.#plans.has(tracks[track]!));
    for (const [index, track] of tracks.entries()) {
      const transcoded = this.#plans.get(track);
      if (!transcoded) continue;
      const own = read.filter((packet) => packet.track === index);
      const [from, to] = sliceOf(own, bounds);
      const run = {
        before:
          from > 0
            ? lastSeconds(own.slice(0, from), PREROLL_SECONDS)
            : await this.#before(transcoded.original, bounds, signal),
        own: own.slice(from, to),
        isLast: bounds.endSeconds === Number.POSITIVE_INFINITY && to === own.length,
      };
      for (const frame of await this.#transcoder.run(transcoded.plan, run, signal))
        packets.push({ ...frame, track: index });
    }
    return packets;
  }

  tail(
    track: SourceTrack,
    segment: SegmentBounds,
    seconds: number,
    signal?: AbortSignalLike,
  ): Promise<TsMuxPacket[]> {
    return this.#reader.tail(this.#original(track), segment, seconds, signal);
  }

  async first(track: SourceTrack, signal?: AbortSignalLike): Promise<TsMuxPacket> {
    const first = await this.#reader.first(this.#original(track), signal);
    const { plan } = this.#plans.get(track) ?? {};
    // The initialisation segment takes the configuration of the track and none of this frame.
    return plan ? { ...first, durationSeconds: 1024 / plan.sampleRate, data: new Uint8Array(1) } : first;
  }

  reordering(track: SourceTrack, signal?: AbortSignalLike): Promise<Reordering> {
    return this.#reader.reordering(track, signal);
  }

  #original(track: SourceTrack): SourceTrack {
    return this.#plans.get(track)?.original ?? track;
  }

  /** The packets that decoder and encoder need before a segment; none for the first one. */
  async #before(
    track: SourceTrack,
    { startSeconds }: SegmentBounds,
    signal: AbortSignalLike,
  ): Promise<readonly TsMuxPacket[]> {
    const index = this.#cuts.indexOf(startSeconds);
    if (index < 1) return [];
    const previous = {
      startSeconds: index === 1 ? Number.NEGATIVE_INFINITY : this.#cuts[index - 1]!,
      endSeconds: startSeconds,
    };
    const kept = this.#sliced.get(segmentKey([track], previous))?.packets;
    const packets = kept ?? (await this.#reader.tail(track, previous, 2 * PREROLL_SECONDS, signal));
    // The same packets, wherever they come from.
    return packets.filter(({ ptsSeconds }) => ptsSeconds >= startSeconds - PREROLL_SECONDS);
  }
}
