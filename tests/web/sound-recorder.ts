import type { Page } from "playwright-core";
import { JUDGED_RATE } from "../e2e/sound-judge.ts";

/** What the page appended to a buffer, and the initialization segment before it. */
export interface AppendedPart {
  readonly init: Uint8Array;
  readonly part: Uint8Array;
  /** The decode time of its first frame (ISO 14496-12 8.8.12). */
  readonly startSeconds: number;
}

/** The global object of a page with {@link recordAppends}. */
export interface Recorder {
  /** By kind (`audio`, `video`). */
  appendedParts: Record<string, AppendedPart[]>;
}

/** Runs in the page: keeps what is appended to the buffers of the video. */
export function recordAppends(): void {
  const recorder = globalThis as never as Recorder;
  recorder.appendedParts = {};
  const kinds = new WeakMap<SourceBuffer, string>();
  const inits = new Map<string, Uint8Array>();
  /** Returns a view of the content of the first box with this name, behind version and flags, and the version. */
  const boxOf = (bytes: Uint8Array, name: string) => {
    const at = new TextDecoder("latin1").decode(bytes.subarray(0, 4096)).indexOf(name);
    return { view: new DataView(bytes.buffer, bytes.byteOffset + at + 8), version: bytes[at + 4] };
  };
  const startOf = (init: Uint8Array, part: Uint8Array) => {
    const [header, time] = [boxOf(init, "mdhd"), boxOf(part, "tfdt")];
    const timescale = header.view.getUint32(header.version === 1 ? 16 : 8);
    return (time.version === 1 ? Number(time.view.getBigUint64(0)) : time.view.getUint32(0)) / timescale;
  };
  const { addSourceBuffer } = MediaSource.prototype;
  MediaSource.prototype.addSourceBuffer = function (type) {
    const buffer = addSourceBuffer.call(this, type);
    kinds.set(buffer, type.startsWith("audio") ? "audio" : "video");
    return buffer;
  };
  const { appendBuffer } = SourceBuffer.prototype;
  SourceBuffer.prototype.appendBuffer = function (data) {
    appendBuffer.call(this, data);
    const kind = kinds.get(this)!;
    const bytes = new Uint8Array(data as ArrayBuffer).slice();
    if (String.fromCharCode(...bytes.subarray(4, 8)) === "ftyp") inits.set(kind, bytes);
    else if (inits.has(kind)) {
      recorder.appendedParts[kind] ??= [];
      const init = inits.get(kind)!;
      recorder.appendedParts[kind].push({ init, part: bytes, startSeconds: startOf(init, bytes) });
    }
  };
}

/** A part of a track that hls.js appended to its buffer, and the same part as Chromium decodes it. */
interface Appended {
  readonly bytes: Uint8Array;
  readonly samples: Float32Array;
}

/** No part is longer. */
const LONGEST_SECONDS = { audio: 2.5, video: 10 };

/** Waits for a part that was appended: the first one, or the last one that begins at `seconds` or a little earlier. */
export async function appended(page: Page, kind: "audio" | "video", seconds?: number): Promise<Appended> {
  const range = seconds === undefined ? [0, 1e9] : [seconds - LONGEST_SECONDS[kind], seconds + 0.05];
  const wanted = [kind, JUDGED_RATE, seconds !== undefined, ...range] as const;
  await page.waitForFunction(
    ([one, , , from, to]) =>
      (globalThis as never as Recorder).appendedParts[one]?.some(
        ({ startSeconds }) => startSeconds >= from! && startSeconds <= to!,
      ),
    wanted,
  );
  const { bytes, samples } = await page.evaluate(async ([one, rate, isLast, from, to]) => {
    const found = (globalThis as never as Recorder).appendedParts[one]!.filter(
      ({ startSeconds }) => startSeconds >= from! && startSeconds <= to!,
    );
    if (isLast) found.sort((a, b) => b.startSeconds - a.startSeconds);
    const { init, part } = found[0]!;
    const bytes = new Uint8Array([...init, ...part]);
    if (one === "video") return { bytes: Array.from(bytes), samples: [] };
    const context = new OfflineAudioContext(1, 1, rate);
    const decoded = await context.decodeAudioData(bytes.slice().buffer);
    return { bytes: Array.from(bytes), samples: Array.from(decoded.getChannelData(0)) };
  }, wanted);
  return { bytes: Uint8Array.from(bytes), samples: Float32Array.from(samples) };
}
