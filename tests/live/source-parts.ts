import { runtime } from "#runtime";
import { SILENT_LOG } from "../../src/base/log.ts";
import { RtmpListeners } from "../../src/live/input/rtmp-listeners.ts";
import type { LiveInputDependencies } from "../../src/live/input/source.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import type { OpenOptions } from "../../src/outbound/request.ts";
import { openToRead } from "../../src/runtime/files.ts";
import { FakeClock } from "../engine/fake-clock.ts";

/** The dependencies of the real machine. */
export function realParts(changes: Partial<LiveInputDependencies> = {}): LiveInputDependencies {
  return {
    clock: runtime.clock,
    net: runtime.net,
    outbound: createOutbound(runtime, SILENT_LOG),
    log: SILENT_LOG,
    rtmp: new RtmpListeners({ runtime, log: SILENT_LOG }),
    openEncoder: async () => {
      throw new Error("no encoder in this test");
    },
    unixMs: () => Date.now(),
    openFile: openToRead,
    pipe: () => streamOf([]),
    ...changes,
  };
}

/** A file in memory. */
export function memoryFile(bytes: Uint8Array) {
  return {
    size: bytes.length,
    read: async ({ start, end }: { start: number; end: number }) => bytes.slice(start, end),
    close: async () => {},
  };
}

/** A pulled stream: an error among the chunks fails it, undefined makes it silent from there on. */
export function streamOf(chunks: Iterable<Uint8Array | Error | undefined>): ReadableStream<Uint8Array> {
  const rest = chunks[Symbol.iterator]();
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const { done, value } = rest.next();
        if (done) controller.close();
        else if (value instanceof Error) controller.error(value);
        else if (value) controller.enqueue(value);
      },
    },
    { highWaterMark: 0 },
  );
}

/** The response to one request to the fake web. */
export interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Iterable<Uint8Array | Error | undefined>;
  /** Instead of a response. */
  readonly failure?: Error;
}

/** A clock, a time of day and a web that the test controls. */
export class FakeWorld {
  readonly clock = new FakeClock();
  readonly asked: { readonly url: string; readonly atMs: number; readonly options: OpenOptions }[] = [];
  answer: (url: string, count: number) => Answer = () => ({ status: 404 });
  /** The value of unixMs at clock time 0. */
  epochMs = 1_700_000_000_000;

  parts(changes: Partial<LiveInputDependencies> = {}): LiveInputDependencies {
    return realParts({
      clock: this.clock,
      unixMs: () => this.epochMs + this.clock.now(),
      outbound: {
        open: async (url, options) => {
          this.asked.push({ url, atMs: this.clock.now(), options });
          const { status = 200, headers = {}, body = [], failure } = this.answer(url, this.asked.length);
          if (failure) throw failure;
          return {
            status,
            headers: new Headers(headers),
            body: streamOf(body),
            finalUrl: url,
            allowPrivate: true,
          };
        },
      },
      ...changes,
    });
  }
}

/** Reads until `bytes` have arrived, or the stream ends. */
export async function readBytes(stream: ReadableStream<Uint8Array>, bytes: number): Promise<Uint8Array> {
  const reader = stream.getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  while (length < bytes) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value.slice());
    length += value.length;
  }
  await reader.cancel();
  return Buffer.concat(parts);
}
