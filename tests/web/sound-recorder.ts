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
