import { linkedAbort, orAborted } from "../async/abort.ts";
import { SluiceError } from "../base/errors.ts";
import { after } from "../base/time.ts";
import type { SwarmFigures } from "../protocol/swarm/contract.ts";
import type { Clock } from "../runtime/contract.ts";
import type { ActiveTransfer, EngineSettings, Transfer } from "../transfer/contract.ts";
import { peerSearchSummary } from "./diagnosis/peer-search.ts";

/** The clock and the settings that limit how long operations on a transfer wait. */
export interface Timeouts {
  readonly clock: Clock;
  readonly settings: Pick<EngineSettings, "peersTimeoutMs" | "metadataTimeoutMs" | "startTimeoutMs">;
}

/**
 * CHOICE(stalled-film): once playback has started, a read fails only after this time without any data. The only
 * seeder of a swarm may disconnect for minutes, and most players do not reconnect after an error.
 */
const STALLED_FILM_MS = 300_000;

/** Returns the timeouts that apply after playback has started. They are never shorter than those of a start. */
export function playingTimeouts({ clock, settings }: Timeouts): Timeouts {
  const startTimeoutMs = Math.max(settings.startTimeoutMs, STALLED_FILM_MS);
  return { clock, settings: { ...settings, startTimeoutMs, peersTimeoutMs: startTimeoutMs } };
}

/** Interval of progress reports while the files of a transfer are not known. */
const PROGRESS_INTERVAL_MS = 500;

/**
 * Waits until the files of a transfer are known. Rejects with `no_peers` after the peers timeout, or with `metadata_timeout`
 * after the sum of both timeouts.
 */
export async function awaitFiles(
  timeouts: Timeouts,
  transfer: ActiveTransfer,
  options: {
    signal?: AbortSignal | undefined;
    onProgress?: ((figures: SwarmFigures) => void) | undefined;
  } = {},
): Promise<void> {
  const { settings } = timeouts;
  await withTimers(timeouts, options.signal, async (timers) => {
    timers.after(settings.peersTimeoutMs, () => {
      if (hasNoPeers(transfer)) timers.fail(noPeersError(settings.peersTimeoutMs, transfer));
    });
    const waitMs = settings.peersTimeoutMs + settings.metadataTimeoutMs;
    timers.after(waitMs, () => {
      const what = transfer.figures.lacksLayers ? "all hashes of its pieces (BitTorrent v2)" : "the metadata";
      const reason = `no peer sent ${what} within ${seconds(waitMs)}`;
      timers.fail(
        transfer.figures.connectedPeers > 0
          ? new SluiceError("metadata_timeout", reason)
          : noPeersError(waitMs, transfer),
      );
    });
    if (options.onProgress) timers.every(PROGRESS_INTERVAL_MS, () => options.onProgress?.(transfer.figures));
    await orAborted(transfer.ready(timers.signal), timers.signal);
  });
}

/**
 * Runs `work`, which needs bytes of the transfer. There is no limit while bytes arrive; rejects with `no_peers` or
 * `start_timeout` if no byte arrives for the configured time.
 */
export function withDataTimeout<T>(
  timeouts: Timeouts,
  transfer: Transfer,
  work: (signal: AbortSignal) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const { peersTimeoutMs, startTimeoutMs } = timeouts.settings;
  return withTimers(timeouts, signal, (timers) => {
    let before = receivedBytes(transfer);
    if (peersTimeoutMs < startTimeoutMs) {
      timers.after(peersTimeoutMs, () => {
        if (hasNoPeers(transfer) && receivedBytes(transfer) === before)
          timers.fail(noPeersError(peersTimeoutMs, transfer));
      });
    }
    timers.every(startTimeoutMs, () => {
      const now = receivedBytes(transfer);
      if (now > before) before = now;
      else timers.fail((hasNoPeers(transfer) ? noPeersError : noDataError)(startTimeoutMs, transfer));
    });
    return orAborted(work(timers.signal), timers.signal);
  });
}

/** Returns a number that grows whenever the transfer receives verified bytes. */
export function receivedBytes(transfer: Transfer): number {
  // Count only media bytes of a live stream, because its peers exchange messages even if they have no media.
  if (transfer.live) return transfer.live.figures().receivedBytes;
  const { downloaded, piecesHeld } = transfer.figures;
  return downloaded + piecesHeld;
}

/** Builds the `start_timeout` error for a transfer that received no data within `waitedMs`. */
export function noDataError(waitedMs: number, transfer: Transfer): SluiceError {
  const { transportType = "bt" } = transfer;
  const problem = isOwnBroadcast(transfer)
    ? "the source sent no data"
    : transfer.channel
      ? "no source of the channel sent data"
      : transportType === "bt"
        ? "no peer sent data"
        : "the server sent no data";
  return new SluiceError("start_timeout", `${problem} for ${seconds(waitedMs)}`);
}

/** Builds the `no_peers` error for a transfer without any peer for `waitedMs`. */
export function noPeersError(waitedMs: number, { figures }: Transfer): SluiceError {
  return new SluiceError(
    "no_peers",
    `no peer was found within ${seconds(waitedMs)} (${peerSearchSummary(figures)})`,
  );
}

/**
 * Returns true if a BitTorrent transfer has no connected peers. Transfers from web servers and the engine's own
 * broadcasts need no peers.
 */
export function hasNoPeers(transfer: Transfer): boolean {
  const { figures, transportType = "bt" } = transfer;
  return transportType === "bt" && figures.connectedPeers === 0 && !isOwnBroadcast(transfer);
}

function isOwnBroadcast({ live }: Transfer): boolean {
  return live?.content.role === "source";
}

function seconds(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`;
}

interface Timers {
  /** Aborted with the reason of `fail`, or with the reason of the caller's signal. */
  readonly signal: AbortSignal;
  fail(reason: SluiceError): void;
  after(ms: number, run: () => void): void;
  every(ms: number, run: () => void): void;
}

/** Runs `work` with timers that are all canceled when it settles. */
async function withTimers<T>(
  { clock }: Timeouts,
  outer: AbortSignal | undefined,
  work: (timers: Timers) => Promise<T>,
): Promise<T> {
  outer?.throwIfAborted();
  const abort = linkedAbort(outer);
  const cancels = new Set<() => void>();
  const timers: Timers = {
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
      timers.after(ms, () => {
        run();
        if (!abort.signal.aborted) timers.every(ms, run);
      });
    },
  };
  try {
    return await work(timers);
  } finally {
    for (const cancel of cancels) cancel();
    abort.release();
  }
}
