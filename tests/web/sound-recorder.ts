import type { Page } from "playwright-core";
import { JUDGED_RATE } from "../e2e/sound-judge.ts";

/** What the page appended to a buffer, and the initialization segment before it. */
export interface AppendedPart {
  readonly init: Uint8Array;
  readonly part: Uint8Array;
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
      recorder.appendedParts[kind].push({ init: inits.get(kind)!, part: bytes });
    }
  };
}

/** A part of a track that hls.js appended to its buffer, and the same part as Chromium decodes it. */
interface Appended {
  readonly bytes: Uint8Array;
  readonly samples: Float32Array;
}

/** Waits for the first part that was appended. */
export async function appended(page: Page, kind: "audio" | "video"): Promise<Appended> {
  await page.waitForFunction(
    (one) => (globalThis as never as Recorder).appendedParts[one] !== undefined,
    kind,
  );
  const { bytes, samples } = await page.evaluate(
    async ([one, rate]) => {
      const [{ init, part }] = (globalThis as never as Recorder).appendedParts[one] as [AppendedPart];
      const bytes = new Uint8Array([...init, ...part]);
      if (one === "video") return { bytes: Array.from(bytes), samples: [] };
      const context = new OfflineAudioContext(1, 1, rate);
      const decoded = await context.decodeAudioData(bytes.slice().buffer);
      return { bytes: Array.from(bytes), samples: Array.from(decoded.getChannelData(0)) };
    },
    [kind, JUDGED_RATE] as const,
  );
  return { bytes: Uint8Array.from(bytes), samples: Float32Array.from(samples) };
}
