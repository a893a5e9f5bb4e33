import type { AbortSignalLike } from "../base/byte-source.ts";
import type { Instant } from "../base/time.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import { onAbort } from "./abort.ts";

/** Resolves at `at`, or earlier if the signal fires; never rejects. */
export function sleepUntil(clock: Clock, at: Instant, signal: AbortSignalLike): Promise<void> {
  return new Promise((resolve) => {
    if (at <= clock.now()) return resolve();
    let release = () => {};
    const cancel = clock.at(at, () => {
      release();
      resolve();
    });
    release = onAbort(signal, () => {
      cancel();
      resolve();
    });
  });
}

/** Resolves after `ms`, or earlier if the signal fires; never rejects. */
export function sleep(clock: Clock, ms: number, signal: AbortSignalLike): Promise<void> {
  return sleepUntil(clock, after(clock.now(), ms), signal);
}

/** Returns true when `promise` resolves, or false after `ms`. Rejects if `promise` rejects before that. */
export function resolvesWithin(promise: Promise<unknown>, clock: Clock, ms: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const cancel = clock.at(after(clock.now(), ms), () => resolve(false));
    promise.then(() => resolve(true), reject).finally(cancel);
  });
}
