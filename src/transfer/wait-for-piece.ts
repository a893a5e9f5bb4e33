import { onAbort } from "../async/abort.ts";
import type { AbortSignalLike } from "../base/byte-source.ts";
import type { PieceStore } from "../storage/piece-store.ts";

/** The signals that end a wait. */
export interface WaitEnd {
  /** The signal of the reader. */
  readonly signal: AbortSignalLike | undefined;
  /** Fires when the transfer stops. */
  readonly stopped: AbortSignal;
}

/** Throws the reason if one of the signals has fired. */
export function throwIfEnded({ signal, stopped }: WaitEnd): void {
  if (stopped.aborted) throw stopped.reason;
  if (signal?.aborted) throw signal.reason;
}

/** Waits until `piece` is in memory and returns a view of it, valid until the next `await`. Rejects when a signal fires. */
export async function waitForPiece(store: PieceStore, piece: number, end: WaitEnd): Promise<Uint8Array> {
  for (;;) {
    throwIfEnded(end);
    const view = store.peek(piece) ?? (store.held.has(piece) ? await store.load(piece) : undefined);
    if (view) return view;
    if (!store.held.has(piece)) await held(store, piece, end);
  }
}

function held(store: PieceStore, piece: number, { signal, stopped }: WaitEnd): Promise<void> {
  return new Promise((resolve, reject) => {
    const releases: (() => void)[] = [];
    const settle = (act: () => void) => () => {
      for (const release of releases) release();
      act();
    };
    releases.push(store.whenHeld(piece, settle(resolve)));
    releases.push(
      onAbort(
        signal,
        settle(() => reject(signal!.reason)),
      ),
    );
    releases.push(
      onAbort(
        stopped,
        settle(() => reject(stopped.reason)),
      ),
    );
  });
}
