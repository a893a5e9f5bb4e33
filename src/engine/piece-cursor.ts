import type { AbortSignalLike } from "../base/byte-source.ts";
import type { PieceStore } from "./piece-store.ts";

/** Waiting that others may end: the reader's own signal, and the end of the transfer. */
export interface WaitEnd {
  readonly signal: AbortSignalLike | undefined;
  /** Fires when the transfer stops. */
  readonly stopped: AbortSignal;
}

/** Throws the reason where waiting is over already. */
export function throwIfEnded({ signal, stopped }: WaitEnd): void {
  if (stopped.aborted) throw stopped.reason;
  if (signal?.aborted) throw signal.reason;
}

/** Waits until the bytes of `piece` are at hand and returns them: a view that is valid until the next `await`. */
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
    const settle = (act: () => void) => () => {
      cancel();
      signal?.removeEventListener("abort", abort);
      stopped.removeEventListener("abort", stop);
      act();
    };
    const abort = settle(() => reject(signal!.reason));
    const stop = settle(() => reject(stopped.reason));
    const cancel = store.whenHeld(piece, settle(resolve));
    signal?.addEventListener("abort", abort, { once: true });
    stopped.addEventListener("abort", stop, { once: true });
  });
}
