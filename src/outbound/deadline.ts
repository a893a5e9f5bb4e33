import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";

/** Time that runs out, or a caller that goes away: one signal for both. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Milliseconds that are left; never below 0. */
  leftMs(): number;
  /** The outcome of `work`, or a rejection when the deadline comes first. */
  race<T>(work: Promise<T>): Promise<T>;
  /** Stops the timer and listens to nobody any more. */
  end(): void;
}

/** A deadline `ms` from now that `signal` can bring forward; `Infinity`: only the signal. `words` say that it came. */
export function startDeadline(
  clock: Clock,
  ms: number,
  signal?: AbortSignal,
  words = `no answer in ${Math.round(ms)} ms`,
): Deadline {
  const controller = new AbortController();
  const due = after(clock.now(), ms);
  const isTimed = ms !== Number.POSITIVE_INFINITY;
  const cancel = isTimed ? clock.at(due, () => controller.abort(new Error(words))) : () => {};
  const follow = () => controller.abort(signal!.reason);
  if (signal?.aborted) follow();
  signal?.addEventListener("abort", follow, { once: true });
  return {
    signal: controller.signal,
    leftMs: () => Math.max(0, due - clock.now()),
    race: (work) => raced(work, controller.signal),
    end() {
      cancel();
      signal?.removeEventListener("abort", follow);
    },
  };
}

function raced<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
