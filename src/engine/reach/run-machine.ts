import type { Machine } from "../../base/machine.ts";
import type { Clock } from "../../runtime/contract.ts";

/** A machine that the real clock drives. */
export interface RunningMachine<Input> {
  handle(input: Input): void;
  /** Nothing comes out of it any more. */
  stop(): void;
}

/** Lets a machine run: `acted` hears of each output, and the clock wakes it in time. */
export function runMachine<Input, Output>(
  machine: Machine<Input, Output>,
  clock: Clock,
  acted: (output: Output) => void,
): RunningMachine<Input> {
  let cancel = () => {};
  let isOver = false;
  const drain = () => {
    for (let output = machine.poll(); output !== undefined && !isOver; output = machine.poll()) acted(output);
    cancel();
    const next = isOver ? undefined : machine.nextWake();
    if (next !== undefined) cancel = clock.at(next, wake);
  };
  const wake = () => {
    machine.wake(clock.now());
    drain();
  };
  return {
    handle(input) {
      if (isOver) return;
      machine.handle(input, clock.now());
      drain();
    },
    stop() {
      isOver = true;
      cancel();
    },
  };
}
