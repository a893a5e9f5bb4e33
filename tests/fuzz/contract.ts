import type { Random } from "../../src/base/random.ts";

/** A decoder to fuzz. Each file of `tests/fuzz/targets` exports one as `target`, or several as `targets`. */
export interface FuzzTarget {
  /** Name of the decoder, for the command line and the report. */
  readonly name: string;
  /** Valid inputs, and notable malformed ones, from which mutations start. Called once. */
  corpus(): readonly Uint8Array[];
  /** Decodes `bytes`. Throws `DecodeError` or `SluiceError` if the decoder refuses; any other error is a finding. The result is
   * kept until the next input. */
  run(bytes: Uint8Array): unknown;
  /** Inputs of up to 64 KiB that cost as much time and memory as possible; each is measured once per run. */
  extremes?(): readonly Uint8Array[];
  /** Tokens of the format, inserted at random. */
  readonly words?: readonly Uint8Array[];
  /** A mutation that keeps lengths consistent, used for half of the inputs. */
  mutate?(random: Random, seed: Uint8Array): Uint8Array;
  /** Inputs are cut to this many bytes; default 64 KiB. */
  readonly maxBytes?: number;
}

/** Result of a run. */
export interface FuzzReport {
  readonly name: string;
  readonly count: number;
  /** Inputs that the decoder accepted. */
  readonly accepted: number;
  readonly inputsPerSecond: number;
  readonly slowestMs: number;
  /** Growth of the heap during the run. */
  readonly heapGrowthBytes: number;
  readonly findings: readonly FuzzFinding[];
}

/** An input that broke a rule. */
export interface FuzzFinding {
  readonly index: number;
  readonly problem: string;
  readonly input: Uint8Array;
}
