import { onAbort } from "../../async/abort.ts";
import { deferred } from "../../async/deferred.ts";
import { DecodeError, messageOf, SluiceError, type SluiceErrorCode } from "../../base/errors.ts";
import type { UnixSeconds } from "../../base/time.ts";
import type { Files, Runtime } from "../../runtime/contract.ts";
import type { StartWorker, WorkerPort } from "../../runtime/worker-contract.ts";
import { unzippedBody } from "../playlist-body.ts";
import { GuideFile } from "./guide-file.ts";

/** Decompressed. The largest public guides have about 1.5 GB. */
export const MAX_GUIDE_BYTES = 4 * 2 ** 30;
const BLOCK_BYTES = 64 * 1024;
/** The parser leaves a string for each character of an attribute, and one for each part of a text. */
const GARBAGE_PER_BYTE = 8;
/** The HTTP client and the streams copy what they pass on. */
const GARBAGE_PER_SENT_BYTE = 4;

interface ReadingOptions {
  /** Programmes that end before or start after these times are dropped. */
  readonly from: UnixSeconds;
  readonly to: UnixSeconds;
  readonly signal: AbortSignal;
  /** Receives the number of programmes that were read. */
  readonly onProgrammes: (count: number) => void;
}

/**
 * Reads a guide, which may be compressed, while it arrives, and writes its programmes to a new file at `path`; memory stays bounded.
 * Rejects if the guide is broken, truncated or has no programmes of these times; then the file is not complete.
 */
export type ReadGuide = (
  body: ReadableStream<Uint8Array>,
  path: string,
  options: ReadingOptions,
) => Promise<void>;

/** Reads a guide on this thread. */
export function createGuideReader(files: Files, discarded?: Runtime["discarded"]): ReadGuide {
  return async (packed, path, { from, to, signal, onProgrammes }) => {
    const body = await unzippedBody(packed, MAX_GUIDE_BYTES, signal);
    const file = await GuideFile.create(files, path);
    // Loaded here, because most engines never read a guide.
    const { XmltvReader } = await import("./xmltv-reader.ts");
    const reader = new XmltvReader({
      channel: (channel) => file.addChannel(channel),
      programme(programme) {
        if (programme.start < to && (programme.stop ?? programme.start) > from) file.addProgramme(programme);
      },
    });
    let decoder: TextDecoder | undefined;
    const source = body.getReader();
    try {
      for (;;) {
        const { done, value } = await source.read();
        if (done) break;
        for (let at = 0; at < value.length; at += BLOCK_BYTES) {
          const block = value.subarray(at, at + BLOCK_BYTES);
          decoder ??= decoderOf(block);
          reader.push(decoder.decode(block, { stream: true }));
          discarded?.(GARBAGE_PER_BYTE * block.length);
          await file.flush();
        }
        onProgrammes(file.programmeCount);
      }
      reader.push(decoder?.decode() ?? "");
      reader.end();
      if (file.programmeCount === 0)
        throw new DecodeError("XMLTV", 0, "the guide has no programmes of these days");
      await file.finish();
    } catch (error) {
      await source.cancel(error).catch(() => {}); // `error` is the more useful one.
      await file.close();
      throw error;
    }
  };
}

/** The decoder of the encoding that the XML declaration names (XML 1.0, 4.3.3); UTF-8 without one. */
function decoderOf(head: Uint8Array): TextDecoder {
  const start = String.fromCharCode(...head.subarray(0, 200));
  const name = /^\s*<\?xml[^>]*encoding\s*=\s*["']([\w.:-]{1,40})["']/.exec(start)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(name);
  } catch {
    return new TextDecoder();
  }
}

/** What the engine sends to the worker: first the task, then a part of the guide for each `next`, `null` at its end. */
type ToWorker =
  | { readonly path: string; readonly from: UnixSeconds; readonly to: UnixSeconds }
  | { readonly bytes: Uint8Array<ArrayBuffer> | null };

/** What the worker sends: requests for parts, its progress, and its result. */
type FromWorker =
  | "next"
  | "done"
  | { readonly programmes: number }
  | { readonly code: SluiceErrorCode; readonly message: string };

/**
 * Reads guides in a worker: parsing takes 10 to 60 s of CPU time, and its garbage is collected ten times a second. On the thread of
 * the engine, the pieces of a stream would wait for each of these steps several times.
 */
export function createWorkerReader(startWorker: StartWorker, discarded?: Runtime["discarded"]): ReadGuide {
  return async (body, path, { from, to, signal, onProgrammes }) => {
    const source = body.getReader();
    const ended = deferred<void>();
    const sendNext = async () => {
      const { done, value } = await source.read();
      // A copy, because a chunk may be a view on a much larger buffer.
      const bytes = done ? null : new Uint8Array(value);
      send({ bytes }, bytes?.buffer);
      if (bytes) discarded?.(GARBAGE_PER_SENT_BYTE * bytes.length);
    };
    const worker = startWorker("guide-worker", {
      onMessage(message) {
        const answer = message as FromWorker;
        if (answer === "next") void sendNext().catch(ended.reject);
        else if (answer === "done") ended.resolve();
        else if ("programmes" in answer) onProgrammes(answer.programmes);
        else ended.reject(new SluiceError(answer.code, answer.message));
      },
      onError: ended.reject,
    });
    const send = (message: ToWorker, moved?: ArrayBuffer) => worker.send(message, moved);
    const release = onAbort(signal, () => ended.reject(signal.reason));
    try {
      send({ path, from, to });
      await ended.promise;
    } catch (error) {
      await source.cancel(error).catch(() => {}); // `error` is the more useful one.
      throw error;
    } finally {
      release();
      await worker.stop();
    }
  };
}

/** Executes the task of a worker that {@link createWorkerReader} has started. */
export function serveGuideReading(port: WorkerPort, readGuide: ReadGuide): void {
  const send = (message: FromWorker) => port.send(message);
  let received: (bytes: Uint8Array | null) => void = () => {};
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const bytes = await new Promise<Uint8Array | null>((resolve) => {
          received = resolve;
          send("next");
        });
        if (bytes) controller.enqueue(bytes);
        else controller.close();
      },
    },
    // The next part is on its way while one is read.
    { highWaterMark: 1 },
  );
  port.onMessage((message) => {
    const order = message as ToWorker;
    if ("bytes" in order) return received(order.bytes);
    const onProgrammes = (programmes: number) => send({ programmes });
    // The engine ends the worker to cancel the task.
    const { signal } = new AbortController();
    readGuide(body, order.path, { from: order.from, to: order.to, signal, onProgrammes }).then(
      () => send("done"),
      (error: unknown) =>
        send({
          code: error instanceof SluiceError ? error.code : "url_unreachable",
          message: messageOf(error),
        }),
    );
  });
}
