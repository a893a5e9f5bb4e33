import { onAbort } from "../async/abort.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { Transfer } from "../transfer/contract.ts";

/** The head of a file contains the index of most containers, and some seconds of media. */
const HEAD_BYTES = 4 * 1024 * 1024;
/** A player names the files that follow; more than these would be replaced in the cache before they are played. */
const MAX_FILES = 3;
const CHECK_MS = 5_000;

/**
 * Fetches the head of `files` once the played file is complete, so that it takes no speed from it. Files that do not exist are
 * ignored. Ends when the signal fires.
 */
export function prefetchNext(
  clock: Clock,
  transfer: Pick<Transfer, "files" | "progress" | "source">,
  played: number,
  files: readonly number[] = [],
  signal: AbortSignal,
): void {
  const next = transfer.files
    .filter(({ index }) => index !== played && files.includes(index))
    .slice(0, MAX_FILES);
  if (next.length === 0 || signal.aborted) return;
  let cancel = () => {};
  const release = onAbort(signal, () => cancel());
  const check = () => {
    if (transfer.progress(played) < 100) {
      cancel = clock.at(after(clock.now(), CHECK_MS), check);
      return;
    }
    release();
    for (const { index, size } of next) void fetchHead(transfer, index, Math.min(size, HEAD_BYTES), signal);
  };
  check();
}

async function fetchHead(
  transfer: Pick<Transfer, "source">,
  index: number,
  bytes: number,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const _ of transfer.source(index).open({ start: 0, end: bytes }, { signal }));
  } catch {
    // The player that requests this file gets the error.
  }
}
