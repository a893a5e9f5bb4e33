import type { Random } from "../../src/base/random.ts";

/** A decoder under attack. Each file of `tests/fuzz/targets` exports one as `target`, or several as `targets`. */
export interface FuzzTarget {
  /** The decoder's name, for the command line and the report. */
  readonly name: string;
  /** Valid inputs (and notable broken ones) that mutations begin from. Called once. */
  corpus(): readonly Uint8Array[];
  /** Gives `bytes` to the decoder. Throws `DecodeError` or `SluiceError` where it refuses; anything else is a finding.
   * What it returns is kept until the next input. */
  run(bytes: Uint8Array): unknown;
  /** Inputs of up to 64 KiB made to cost as much time and memory as they can; each is weighed once a run. */
  extremes?(): readonly Uint8Array[];
  /** Words of the format, inserted now and then. */
  readonly words?: readonly Uint8Array[];
  /** A mutation that keeps the format whole (lengths that fit), used for half of the inputs. */
  mutate?(random: Random, seed: Uint8Array): Uint8Array;
  /** Inputs are cut to this many bytes; 64 KiB where absent. */
  readonly maxBytes?: number;
}

/** What a run found. */
export interface FuzzReport {
  readonly name: string;
  readonly count: number;
  /** Inputs that the decoder took. */
  readonly accepted: number;
  readonly inputsPerSecond: number;
  readonly slowestMs: number;
  /** What the heap held more at the end than at the beginning, in bytes. */
  readonly heapGrowthBytes: number;
  readonly findings: readonly FuzzFinding[];
}

/** An input that broke a rule. */
export interface FuzzFinding {
  readonly index: number;
  readonly problem: string;
  readonly input: Uint8Array;
}
