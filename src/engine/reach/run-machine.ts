import type { Machine } from "../../base/machine.ts";
import type { Clock } from "../../runtime/contract.ts";
import { WakeTimer } from "../wake-timer.ts";

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
  let isOver = false;
  const timer = new WakeTimer(clock, () => {
    machine.wake(clock.now());
    drain();
  });
  const drain = () => {
    for (let output = machine.poll(); output !== undefined && !isOver; output = machine.poll()) acted(output);
    timer.want(machine.nextWake());
  };
  return {
    handle(input) {
      if (isOver) return;
      machine.handle(input, clock.now());
      drain();
    },
    stop() {
      isOver = true;
      timer.stop();
    },
  };
}
