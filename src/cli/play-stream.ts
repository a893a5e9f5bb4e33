import { SluiceError } from "../base/errors.ts";
import type { Transfer } from "../engine/contract.ts";
import type { House } from "./house.ts";

/**
 * What comes as segments, HLS of another server or a transport stream without an end, as one transport stream. Rejects
 * with `SluiceError` where it cannot be one. A live one goes on until `signal` fires: that is its end, not an error.
 */
export async function streamBytes(
  house: House,
  { infohash }: Transfer,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const session = await house.engine.start(
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
    // Longer than any start may take: what cannot be played is told before a file is made.
    await session.settle(house.engine.settings.startTimeoutMs + house.engine.settings.metadataTimeoutMs);
    return untilStopped(await session.transportStream(signal), signal);
  } catch (thrown) {
    session.stop();
    throw thrown;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Where a player finds it: HLS as HLS, with all its sounds and subtitles. */
export function streamUrl(base: string, { infohash, transportType }: Transfer): string {
  const path = transportType === "hls" ? "manifest.m3u8" : "getstream";
  return `${base}/ace/${path}?infohash=${infohash}`;
}

/** Throws where what has neither size nor end was asked for as a file. */
export function refuseRaw(format: string | undefined): void {
  if (format !== "raw") return;
  throw new SluiceError(
    "bad_configuration",
    "--format raw: this is a stream, which has no file of its own; it is written as ts",
  );
}

/** The same bytes, which end when the signal fires: what has been written of a live stream is kept. */
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
