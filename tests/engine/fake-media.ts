import { orAborted } from "../../src/async/abort.ts";
import type { SluiceError } from "../../src/base/errors.ts";
import type { TextCue } from "../../src/media/webvtt.ts";
import type { Media, MediaTrack, Remux, RemuxFormat, SegmentTimes } from "../../src/remux/contract.ts";

/** Media with 12 s segments of 400 packets that contain the segment number. */
export class FakeMedia implements Media {
  container: Media["container"] = "mp4";
  rawMime: string | undefined;
  zeroTicks = 900_000;
  tracks: readonly MediaTrack[] = [track("video", "h264"), track("audio", "aac")];
  segments: readonly SegmentTimes[] = segmentTimes(5);
  soundSlices: Media["soundSlices"] = [];
  tsProblem: SluiceError | undefined;
  fmp4Problem: SluiceError | undefined;
  silentIn: Media["silentIn"] = [];
  separateAudio: Media["separateAudio"] = { ts: [], fmp4: [] };
  /** The requested language of each opening. */
  readonly languages: (string | undefined)[] = [];
  /** The segments made, in order. */
  readonly made: string[] = [];
  /** Segments wait for this promise before they are made. */
  gate: (index: number) => Promise<void> = async () => {};
  packetsPerSegment = 400;

  get durationSeconds(): number {
    return this.segments.length * 12;
  }

  async remux(format: RemuxFormat, from: number, to = this.segments.length): Promise<Remux> {
    const segmentOf = (index: number) =>
      format === "ts" ? tsBytes(index, this.packetsPerSegment) : new TextEncoder().encode(`moof${index}`);
    const size = segmentOf(0).length;
    return {
      source: {
        size: size * this.segments.length,
        // Each segment is read from its start.
        read: async ({ start, end }, { signal } = {}) => {
          const index = Math.floor(start / size);
          await orAborted(this.gate(index), signal);
          if (start === index * size) this.made.push(`${format === "ts" ? "ts" : "m4s"} ${index}`);
          return segmentOf(index).slice(start - index * size, end - index * size);
        },
      },
      ranges: function* () {
        for (let index = from; index < to; index++)
          yield { start: index * size, end: (index + 1) * size, until: to * size };
      },
      closed: new AbortController().signal,
      remuxer: new TransformStream(),
    };
  }

  async fmp4Init(): Promise<Uint8Array<ArrayBuffer>> {
    return this.#make("init", 0, new TextEncoder().encode("ftyp"));
  }

  async cues(trackIndex: number, index: number): Promise<TextCue[]> {
    return [
      { startSeconds: 12 * index, endSeconds: 12 * index + 1, text: `track ${trackIndex} segment ${index}` },
    ];
  }

  close(): void {}

  async #make(kind: string, index: number, bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
    await this.gate(index);
    this.made.push(`${kind} ${index}`);
    return bytes;
  }
}

/** The packets of fake segment `index`: PID 0x100, the index in every payload byte. */
export function tsBytes(index: number, packets = 400): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(packets * 188).fill(index);
  for (let at = 0; at < bytes.length; at += 188) bytes.set([0x47, 0x01, 0x00, 0x10], at);
  return bytes;
}

export function segmentTimes(count: number): SegmentTimes[] {
  return Array.from({ length: count }, (_, i) => ({ startSeconds: 12 * i, durationSeconds: 12 }));
}

export function track(kind: MediaTrack["kind"], codec: string, language = "eng"): MediaTrack {
  return { kind, codec, codecString: undefined, language, title: undefined, isDefault: true };
}
