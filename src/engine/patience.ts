import { SluiceError } from "../base/errors.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { ActiveTransfer, EngineSettings, Transfer } from "./contract.ts";
import type { EngineFigures } from "./engine.ts";
import { orAborted } from "./segment-cache.ts";
import { trackerNews } from "./tracker-news.ts";

/** How long whoever waits for a transfer waits. */
export type PatienceSettings = Pick<
  EngineSettings,
  "peersTimeoutMs" | "metadataTimeoutMs" | "startTimeoutMs"
>;

export interface Patience {
  readonly clock: Clock;
  readonly settings: PatienceSettings;
}

/**
 * CHOICE(stalled-film): a film that has begun waits so long without any data before its reader is told. Swarms of one
 * seeder come and go, and a player that has been cut off rarely comes back by itself.
 */
const STALLED_FILM_MS = 300_000;

/** The patience of a film that has begun: never shorter than that of a start. */
export function onceBegun({ clock, settings }: Patience): Patience {
  const longer = (ms: number) => Math.max(ms, STALLED_FILM_MS);
  const startTimeoutMs = longer(settings.startTimeoutMs);
  return { clock, settings: { ...settings, startTimeoutMs, peersTimeoutMs: startTimeoutMs } };
}

type Figures = EngineFigures["transfers"][number]["figures"];

/** How often somebody who asked to be told hears of a transfer that is not ready. */
const PROGRESS_INTERVAL_MS = 500;

/** Waits until the files of a transfer are known; rejects with `no_peers` or `metadata_timeout`, never later than both. */
export async function awaitFiles(
  patience: Patience,
  transfer: ActiveTransfer,
  options: { signal?: AbortSignal | undefined; onProgress?: ((figures: Figures) => void) | undefined } = {},
): Promise<void> {
  const { settings } = patience;
  await limited(patience, options.signal, async (limits) => {
    limits.after(settings.peersTimeoutMs, () => {
      if (isAlone(transfer)) limits.fail(noPeers(settings.peersTimeoutMs, transfer));
    });
    const waitMs = settings.peersTimeoutMs + settings.metadataTimeoutMs;
    limits.after(waitMs, () => {
      const what = transfer.figures.lacksLayers ? "all hashes of its pieces (BitTorrent v2)" : "the metadata";
      const reason = `no peer sent ${what} within ${seconds(waitMs)}`;
      limits.fail(
        transfer.figures.connectedPeers > 0
          ? new SluiceError("metadata_timeout", reason)
          : noPeers(waitMs, transfer),
      );
    });
    if (options.onProgress) limits.every(PROGRESS_INTERVAL_MS, () => options.onProgress?.(transfer.figures));
    await orAborted(transfer.ready(limits.signal), limits.signal);
  });
}

/**
 * Runs work that needs bytes of the transfer. It may take as long as bytes keep coming; it is ended with `no_peers` or
 * `start_timeout` where nothing at all has come for the time that the settings allow.
 */
export function whileBytesCome<T>(
  patience: Patience,
  transfer: Transfer,
  work: (signal: AbortSignal) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const { peersTimeoutMs, startTimeoutMs } = patience.settings;
  return limited(patience, signal, (limits) => {
    let before = bytesSoFar(transfer);
    if (peersTimeoutMs < startTimeoutMs) {
      limits.after(peersTimeoutMs, () => {
        if (isAlone(transfer) && bytesSoFar(transfer) === before)
          limits.fail(noPeers(peersTimeoutMs, transfer));
      });
    }
    limits.every(startTimeoutMs, () => {
      const now = bytesSoFar(transfer);
      if (now > before) before = now;
      else
        limits.fail(isAlone(transfer) ? noPeers(startTimeoutMs, transfer) : noData(startTimeoutMs, transfer));
    });
    return orAborted(work(limits.signal), limits.signal);
  });
}

/** A figure that grows whenever verified bytes arrive. */
export function bytesSoFar(transfer: Transfer): number {
  // Peers of a live stream talk even when they have nothing: only media counts.
  if (transfer.live) return transfer.live.figures().receivedBytes;
  const { downloaded, piecesHeld } = transfer.figures;
  return downloaded + piecesHeld;
}

/** Nothing came for so long. */
export function noData(waitedMs: number, transfer: Transfer): SluiceError {
  const { transportType = "bt" } = transfer;
  const who = isOurs(transfer)
    ? "its source did not send"
    : transportType === "bt"
      ? "no peer sent"
      : "the server did not send";
  return new SluiceError("start_timeout", `${who} any data for ${seconds(waitedMs)}`);
}

/** Nobody was there for so long. */
export function noPeers(waitedMs: number, { figures }: Transfer): SluiceError {
  return new SluiceError(
    "no_peers",
    `no peer was found within ${seconds(waitedMs)} (${trackerNews(figures)})`,
  );
}

/** Whether nobody is connected of those from whom it comes. A web server is asked anew each time: of that nobody is lost. */
export function isAlone(transfer: Transfer): boolean {
  const { figures, transportType = "bt" } = transfer;
  return transportType === "bt" && figures.connectedPeers === 0 && !isOurs(transfer);
}

/** Whether it is a stream that we broadcast ourselves: it comes from no peer. */
function isOurs({ live }: Transfer): boolean {
  return live?.content.role === "source";
}

function seconds(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`;
}

interface Limits {
  readonly signal: AbortSignal;
  fail(reason: SluiceError): void;
  after(ms: number, run: () => void): void;
  every(ms: number, run: () => void): void;
}

/** Runs `work` under timers that are all gone when it ends, whichever way. */
async function limited<T>(
  { clock }: Patience,
  outer: AbortSignal | undefined,
  work: (limits: Limits) => Promise<T>,
): Promise<T> {
  outer?.throwIfAborted();
  const abort = new AbortController();
  const cancels = new Set<() => void>();
  const forward = () => abort.abort(outer?.reason);
  outer?.addEventListener("abort", forward, { once: true });
  const limits: Limits = {
    signal: abort.signal,
    fail: (reason) => abort.abort(reason),
    after(ms, run) {
      const cancel = clock.at(after(clock.now(), ms), () => {
        cancels.delete(cancel);
        run();
      });
      cancels.add(cancel);
    },
    every(ms, run) {
      limits.after(ms, () => {
        run();
        if (!abort.signal.aborted) limits.every(ms, run);
      });
    },
  };
  try {
    return await work(limits);
  } finally {
    for (const cancel of cancels) cancel();
    outer?.removeEventListener("abort", forward);
  }
}
