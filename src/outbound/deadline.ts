import { onAbort, orAborted } from "../async/abort.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";

/** A timeout and a caller's signal combined into one signal. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Milliseconds until the timeout; never below 0. */
  leftMs(): number;
  /** Settles like `work`, or rejects with the signal's reason if that fires first. */
  race<T>(work: Promise<T>): Promise<T>;
  /** Stops the timer and the listener on the caller's signal. */
  end(): void;
}

/** Starts a deadline that fires after `ms` (`Infinity`: never), or earlier with `signal`. `message` is the text of the
 * timeout error. */
export function startDeadline(
  clock: Clock,
  ms: number,
  signal?: AbortSignal,
  message = `no response within ${Math.round(ms)} ms`,
): Deadline {
  const controller = new AbortController();
  const due = after(clock.now(), ms);
  const isTimed = ms !== Number.POSITIVE_INFINITY;
  const cancel = isTimed ? clock.at(due, () => controller.abort(new Error(message))) : () => {};
  const stopListening = onAbort(signal, () => controller.abort(signal!.reason));
  return {
    signal: controller.signal,
    leftMs: () => Math.max(0, due - clock.now()),
    race: (work) => orAborted(work, controller.signal),
    end() {
      cancel();
      stopListening();
    },
  };
}
