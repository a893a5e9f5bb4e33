import { SluiceError } from "../base/errors.ts";
import type { Transfer } from "../transfer/contract.ts";
import type { Service } from "./service.ts";

/**
 * Opens content that arrives as segments (HLS of another server, or a live transport stream) as one transport stream. Rejects
 * with `SluiceError` if it cannot be remuxed. When `signal` fires, the stream ends without an error.
 */
export async function streamBytes(
  service: Service,
  { infohash }: Transfer,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const session = await service.engine.start(
    {
      selector: { kind: "infohash", infohash },
      playerId: undefined,
      output: "ts",
      container: "auto",
      fileIndex: undefined,
      audioLanguage: undefined,
      clientSessionId: -1,
      wantsEvents: false,
      allowPrivateUrls: true,
    },
    signal,
  );
  const stop = () => session.stop();
  signal.addEventListener("abort", stop, { once: true });
  try {
    // Wait for the start to succeed or fail, so that content that cannot be played creates no file.
    await session.settle(service.engine.settings.startTimeoutMs + service.engine.settings.metadataTimeoutMs);
    return untilStopped(
      await session.transportStream(({ pieces, remuxer }) => pieces.pipeThrough(remuxer), signal),
      signal,
    );
  } catch (thrown) {
    session.stop();
    throw thrown;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Returns the URL for a player. HLS is served as HLS, with all its audio tracks and subtitles. */
export function streamUrl(base: string, { infohash, transportType }: Transfer): string {
  const path = transportType === "hls" ? "manifest.m3u8" : "getstream";
  return `${base}/ace/${path}?infohash=${infohash}`;
}

/** Throws if the user asked for the raw file of a stream. */
export function refuseRaw(format: string | undefined): void {
  if (format !== "raw") return;
  throw new SluiceError("bad_configuration", "--format raw: a stream has no file; use --format ts");
}

/** Returns the same bytes, ended when the signal fires. */
function untilStopped(inner: ReadableStream<Uint8Array>, signal: AbortSignal): ReadableStream<Uint8Array> {
  const reader = inner.getReader();
  const stop = () => void reader.cancel(signal.reason).catch(() => {});
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  const leave = () => signal.removeEventListener("abort", stop);
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read().catch((thrown) => {
          leave();
          throw thrown;
        });
        if (!done) return controller.enqueue(value);
        leave();
        controller.close();
      },
      async cancel(reason) {
        leave();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
