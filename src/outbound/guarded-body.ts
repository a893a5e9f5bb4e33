import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { Deadline } from "./deadline.ts";

/** What guards a body. */
export interface BodyGuard {
  readonly clock: Clock;
  /** The longest wait for the next bytes, while somebody waits for them. */
  readonly idleTimeoutMs: number;
  /** For all of it; ended when the body is. */
  readonly whole: Deadline;
  /** Says what was being fetched. */
  explain(thrown: unknown): Error;
}

/** A body that fails in words, that ends when its time is over or its source is silent, and that leaves nothing behind.
 * One pull of its reader is one read of its source. */
export function guardedBody(
  source: ReadableStream<Uint8Array>,
  guard: BodyGuard,
): ReadableStream<Uint8Array> {
  const { clock, idleTimeoutMs, whole } = guard;
  const reader = source.getReader();
  let isOver = false;
  let stopWaiting = () => {};
  /** True the first time: what happens after the end is nobody's. */
  const finish = () => {
    if (isOver) return false;
    isOver = true;
    stopWaiting();
    whole.signal.removeEventListener("abort", late);
    whole.end();
    return true;
  };
  let late = () => {};
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const fail = (thrown: unknown) => {
          const error = guard.explain(thrown);
          if (!finish()) return;
          reader.cancel(error).catch(() => {}); // The error at hand says more than that of cancelling.
          controller.error(error);
        };
        late = () => fail(whole.signal.reason);
        if (whole.signal.aborted) late();
        else whole.signal.addEventListener("abort", late, { once: true });
      },
      async pull(controller) {
        const fail = (thrown: unknown) => {
          const error = guard.explain(thrown);
          if (finish()) controller.error(error);
          reader.cancel(error).catch(() => {}); // As above.
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
        await reader.cancel(reason).catch(() => {}); // Whoever cancels does not care how it ended.
      },
    },
    { highWaterMark: 0 },
  );
}
