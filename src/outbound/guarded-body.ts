import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { Deadline } from "./deadline.ts";

/** Limits of a body. */
interface BodyGuard {
  readonly clock: Clock;
  /** The longest time that one read may take. */
  readonly idleTimeoutMs: number;
  /** The deadline of the whole exchange; ended with the body. */
  readonly whole: Deadline;
  /** Adds what was being fetched to an error. */
  explain(thrown: unknown): Error;
}

/** Wraps a body: it errors if the deadline passes or a read takes too long, and releases its timers and its source when
 * it ends. Each pull is one read of `source`. */
export function guardedBody(
  source: ReadableStream<Uint8Array>,
  guard: BodyGuard,
): ReadableStream<Uint8Array> {
  const { clock, idleTimeoutMs, whole } = guard;
  const reader = source.getReader();
  let isOver = false;
  let stopWaiting = () => {};
  /** Releases everything; returns false if that has already happened. */
  const finish = () => {
    if (isOver) return false;
    isOver = true;
    stopWaiting();
    whole.signal.removeEventListener("abort", expire);
    whole.end();
    return true;
  };
  let expire = () => {};
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const fail = (thrown: unknown) => {
          const error = guard.explain(thrown);
          if (!finish()) return;
          reader.cancel(error).catch(() => {}); // `error` is the more useful of the two.
          controller.error(error);
        };
        expire = () => fail(whole.signal.reason);
        if (whole.signal.aborted) expire();
        else whole.signal.addEventListener("abort", expire, { once: true });
      },
      async pull(controller) {
        const fail = (thrown: unknown) => {
          const error = guard.explain(thrown);
          if (finish()) controller.error(error);
          reader.cancel(error).catch(() => {}); // As in `start`.
        };
        if (Number.isFinite(idleTimeoutMs))
          stopWaiting = clock.at(after(clock.now(), idleTimeoutMs), () =>
            fail(new Error(`no bytes in ${idleTimeoutMs / 1000} s`)),
          );
        try {
          const { done, value } = await reader.read();
          stopWaiting();
          if (isOver) return;
          if (!done) return controller.enqueue(value);
          finish();
          controller.close();
        } catch (thrown) {
          fail(thrown);
        }
      },
      async cancel(reason) {
        finish();
        await reader.cancel(reason).catch(() => {}); // The caller has no use for an error of the source.
      },
    },
    { highWaterMark: 0 },
  );
}
