import { type Deferred, deferred } from "../../async/deferred.ts";
import { concatBytes, equalBytes } from "../../base/bytes.ts";
import { parseAacConfig } from "../../media/aac.ts";
import { readMpegAudioHeader } from "../../media/audio-headers.ts";
import { type FlvTag, parseFlvAudio, parseFlvVideo } from "../../media/flv.ts";
import { TsLiveWriter } from "../../remux/ts-live-writer.ts";
import type { TsMuxTrack } from "../../remux/ts-mux-input.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { PublishedStream, Publisher, RtmpListeners } from "./rtmp-listeners.ts";
import type { LiveFeed, LiveInputFacts } from "./source-feed.ts";
import type { RtmpPlace } from "./source-place.ts";

/** A publisher is not read while so many bytes wait for the broadcast: 1.6 s of 20 Mbit/s. */
const MAX_QUEUE_BYTES = 4 * 1024 * 1024;
/** Bytes per delivery. */
const BATCH_BYTES = 64 * 1024;
/** How long the first frames wait for the configuration of the other track. */
const TRACKS_WAIT_MS = 1000;
/** Limit of the frames that wait for it. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** A larger step of the times within one publication is a fault of its clock, and is left out. */
const MAX_STEP_MS = 10_000;
/** A publication begins at least this long after the last frame of the one before. */
const FRAME_MS = 40;

type Kind = "audio" | "video";

interface Frame {
  readonly kind: Kind;
  readonly tag: FlvTag & { readonly kind: "frame" };
  /** Decode time, without the offset of this publication. */
  readonly timeMs: number;
}

/** What a publisher sends by RTMP, as MPEG-TS. A publisher that comes back continues the stream, whose times do not go back. */
export class RtmpFeed implements LiveFeed, PublishedStream {
  readonly #place: RtmpPlace;
  readonly #key: string;
  readonly #listeners: RtmpListeners;
  readonly #clock: Clock;
  readonly #facts: LiveInputFacts;
  #stop: (() => void) | undefined;
  #queue: Uint8Array[] = [];
  #queueBytes = 0;
  #arrival: Deferred<void> = deferred();
  #isClosed = false;
  #publisher: Publisher | undefined;
  #isPaused = false;
  /** What is published. Video is before audio in the stream. */
  #tracks: { video?: TsMuxTrack; audio?: TsMuxTrack } = {};
  /** The first frames have waited long enough, or both tracks are known. */
  #areTracksKnown = false;
  /** Frames that arrived before the tracks were known. */
  #waiting: Frame[] = [];
  #waitingBytes = 0;
  #writer: { readonly stream: TsLiveWriter; readonly tracks: readonly TsMuxTrack[] } | undefined;
  /** The last timestamp of this publication, and its place in the unwrapped time. */
  #timestamp: { readonly raw: number; readonly timeMs: number } | undefined;
  /** Added to the times of this publication. */
  #offsetMs = 0;
  /** The latest decode time of the stream, and when it was received. */
  #last: { readonly streamMs: number; readonly atMs: number } | undefined;
  /** The next frame is the first one of a publication. */
  #startsAnew = true;
  /** Nothing is sent before a keyframe. */
  #needsKey = true;

  constructor(
    place: RtmpPlace,
    key: string,
    dependencies: { readonly rtmp: RtmpListeners; readonly clock: Clock },
    facts: LiveInputFacts,
  ) {
    this.#place = place;
    this.#key = key;
    this.#listeners = dependencies.rtmp;
    this.#clock = dependencies.clock;
    this.#facts = facts;
  }

  async next(): Promise<Uint8Array | undefined> {
    if (!this.#stop && !this.#isClosed) {
      this.#facts.problem = "no program publishes to this address yet";
      const stop = await this.#listeners.receive(this.#place, this.#key, this);
      this.#stop = stop;
      if (this.#isClosed) stop();
    }
    while (this.#queue.length === 0) {
      if (this.#isClosed) return undefined;
      await this.#arrival.promise;
    }
    return this.#takeBatch();
  }

  close(): void {
    this.#isClosed = true;
    this.#publisher?.refuse("the broadcast has ended");
    this.#stop?.();
    this.#queue = [];
    this.#wake();
  }

  began(publisher: Publisher): void {
    const before = this.#publisher;
    this.#publisher = publisher;
    before?.refuse("another program publishes with this key");
    this.#facts.starts++;
    this.#facts.problem = undefined;
    this.#isPaused = false;
    this.#tracks = {};
    this.#areTracksKnown = false;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#timestamp = undefined;
    this.#startsAnew = true;
    this.#needsKey = true;
  }

  media(kind: Kind, timestampMs: number, body: Uint8Array): void {
    const tag = kind === "video" ? parseFlvVideo(body) : parseFlvAudio(body);
    if (!tag) return;
    if (tag.kind === "config") {
      this.#configure(kind, tag.codec, tag.config);
      return;
    }
    if (tag.codec === "mp3") this.#setTrack(kind, mp3Track(tag.data));
    if (this.#tracks[kind]?.codec !== tag.codec) return; // Its configuration has not arrived.
    const frame = { kind, tag, timeMs: this.#unwrapped(timestampMs) };
    this.#waiting.push(frame);
    this.#waitingBytes += tag.data.length;
    const { video, audio } = this.#tracks;
    const waitedMs = frame.timeMs - this.#waiting[0]!.timeMs;
    this.#areTracksKnown ||=
      (video && audio) !== undefined || waitedMs >= TRACKS_WAIT_MS || this.#waitingBytes >= MAX_WAITING_BYTES;
    if (this.#areTracksKnown) this.#send();
  }

  ended(publisher: Publisher): void {
    if (this.#publisher !== publisher) return;
    this.#publisher = undefined;
    this.#append(this.#writer?.stream.finish());
    this.#facts.problem = "the publishing program has disconnected";
  }

  #configure(kind: Kind, codec: TsMuxTrack["codec"], config: Uint8Array): void {
    if (config.length === 0) return;
    this.#setTrack(kind, {
      codec,
      language: "und",
      config: config.slice(),
      ...(codec === "aac" && { sampleRate: parseAacConfig(config).sampleRate }),
    });
  }

  /** Frames with the former configuration are sent first. Some programs repeat the configuration. */
  #setTrack(kind: Kind, track: TsMuxTrack): void {
    const before = this.#tracks[kind];
    if (before && isSameTrack(before, track)) return;
    if (before) this.#send();
    this.#tracks[kind] = track;
    this.#needsKey ||= kind === "video";
  }

  /** Writes the waiting frames. */
  #send(): void {
    const { video, audio } = this.#tracks;
    const frames = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    const writer = this.#writerOf([video, audio].filter((track) => track !== undefined));
    for (const { kind, tag, timeMs } of frames) {
      if (this.#needsKey && video && !(kind === "video" && tag.isKey)) continue;
      this.#needsKey = false;
      const streamMs = this.#streamTime(timeMs);
      this.#append(
        writer.write({
          track: kind === "video" || !video ? 0 : 1,
          dtsSeconds: streamMs / 1000,
          ptsSeconds: (streamMs + tag.offsetMs) / 1000,
          durationSeconds: durationOf(tag, audio),
          isKey: tag.isKey,
          data: tag.data,
        }),
      );
    }
  }

  #writerOf(tracks: readonly TsMuxTrack[]): TsLiveWriter {
    const before = this.#writer;
    const isSame =
      before?.tracks.length === tracks.length &&
      before.tracks.every((track, index) => isSameTrack(track, tracks[index]!));
    if (before && isSame) return before.stream;
    this.#append(before?.stream.finish());
    this.#writer = { stream: new TsLiveWriter(tracks, before?.stream), tracks };
    return this.#writer.stream;
  }

  /** Returns the time of a timestamp (modulo 2^32) since the first one of this publication, in ms. */
  #unwrapped(raw: number): number {
    const before = this.#timestamp;
    const step = before ? (raw - before.raw) | 0 : 0;
    const timeMs = (before?.timeMs ?? 0) + (Math.abs(step) > MAX_STEP_MS ? 0 : step);
    this.#timestamp = { raw, timeMs };
    return timeMs;
  }

  /** Returns the time in the stream. A publication begins as long after the last frame as it really did. */
  #streamTime(timeMs: number): number {
    const atMs = this.#clock.now();
    if (this.#startsAnew) {
      this.#startsAnew = false;
      const last = this.#last;
      this.#offsetMs = (last ? last.streamMs + Math.max(FRAME_MS, atMs - last.atMs) : 0) - timeMs;
    }
    const streamMs = Math.max(0, timeMs + this.#offsetMs);
    if (!this.#last || streamMs > this.#last.streamMs) this.#last = { streamMs, atMs };
    return streamMs;
  }

  #append(packets: Uint8Array | undefined): void {
    if (!packets || packets.length === 0 || this.#isClosed) return;
    this.#queue.push(packets);
    this.#queueBytes += packets.length;
    if (this.#queueBytes > MAX_QUEUE_BYTES && !this.#isPaused) {
      this.#isPaused = true;
      this.#publisher?.pause();
    }
    this.#wake();
  }

  #takeBatch(): Uint8Array {
    let count = 0;
    let bytes = 0;
    while (count < this.#queue.length && bytes < BATCH_BYTES) bytes += this.#queue[count++]!.length;
    this.#queueBytes -= bytes;
    if (this.#isPaused && this.#queueBytes <= MAX_QUEUE_BYTES / 2) {
      this.#isPaused = false;
      this.#publisher?.resume();
    }
    return concatBytes(this.#queue.splice(0, count));
  }

  #wake(): void {
    const arrival = this.#arrival;
    this.#arrival = deferred();
    arrival.resolve();
  }
}

function isSameTrack(a: TsMuxTrack, b: TsMuxTrack): boolean {
  const none = new Uint8Array(0);
  return (
    a.codec === b.codec && a.sampleRate === b.sampleRate && equalBytes(a.config ?? none, b.config ?? none)
  );
}

function mp3Track(frame: Uint8Array): TsMuxTrack {
  return { codec: "mp3", language: "und", sampleRate: readMpegAudioHeader(frame, 0)?.sampleRate ?? 48_000 };
}

function durationOf(tag: FlvTag & { readonly kind: "frame" }, audio: TsMuxTrack | undefined): number {
  const rate = audio?.sampleRate ?? 48_000;
  if (tag.codec === "mp3") return (readMpegAudioHeader(tag.data, 0)?.samples ?? 1152) / rate;
  return tag.codec === "aac" ? 1024 / rate : 0;
}
