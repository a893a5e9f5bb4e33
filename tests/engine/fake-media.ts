import type { SluiceError } from "../../src/base/errors.ts";
import type { Media, MediaTrack, SegmentTimes } from "../../src/remux/contract.ts";

/** Media of twelve-second segments, each of 400 packets that carry their own segment's number. */
export class FakeMedia implements Media {
  readonly container = "mp4";
  tracks: readonly MediaTrack[] = [track("video", "h264"), track("audio", "aac")];
  segments: readonly SegmentTimes[] = segmentTimes(5);
  tsProblem: SluiceError | undefined;
  fmp4Problem: SluiceError | undefined;
  /** The languages asked for, one for each opening. */
  readonly languages: (string | undefined)[] = [];
  /** The segments made, in order. */
  readonly made: string[] = [];
  /** Segments wait for this before they are made. */
  gate: (index: number) => Promise<void> = async () => {};
  packetsPerSegment = 400;

  get durationSeconds(): number {
    return this.segments.length * 12;
  }

  async tsSegment(index: number): Promise<Uint8Array<ArrayBuffer>> {
    return this.#make("ts", index, tsBytes(index, this.packetsPerSegment));
  }

  async fmp4Init(): Promise<Uint8Array<ArrayBuffer>> {
    return this.#make("init", 0, new TextEncoder().encode("ftyp"));
  }

  async fmp4Segment(index: number): Promise<Uint8Array<ArrayBuffer>> {
    return this.#make("m4s", index, new TextEncoder().encode(`moof${index}`));
  }

  async webvttSegment(trackIndex: number, index: number): Promise<string> {
    return `WEBVTT\n\ntrack ${trackIndex} segment ${index}\n`;
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
