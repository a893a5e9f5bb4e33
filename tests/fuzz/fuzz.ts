import { DecodeError, messageOf, SluiceError } from "../../src/base/errors.ts";
import { seededRandom } from "../seeded-random.ts";
import type { FuzzFinding, FuzzReport, FuzzTarget } from "./contract.ts";
import { mutateBytes, pick } from "./mutate.ts";

/** The processor time that one input may take: it delays everything else for as long. */
const SLOW_MS = 100;
/** An input that takes longer on the clock than this is measured in processor time, without the pauses of a busy machine. */
const MEASURE_MS = 10;
/** Memory that a decoded value may take: a multiple of the input, and a base. */
const MEMORY_FACTOR = 16;
const MEMORY_BASE_BYTES = 1024 * 1024;
/** Heap growth allowed for caches of the runtime. Only checked if the runtime can run the garbage collector on request. */
const HEAP_GROWTH_BYTES = 64 * 1024 * 1024;
/** The run stops after this many findings. */
const MAX_FINDINGS = 5;
const DEFAULT_MAX_BYTES = 64 * 1024;

/** Runs `count` inputs on a target. Each input depends only on `seed` and its index. `measuresExtremes`: default true. */
export function fuzz(
  target: FuzzTarget,
  count: number,
  seed: number,
  options: { measuresExtremes?: boolean } = {},
): FuzzReport {
  const corpus = target.corpus();
  for (const entry of corpus) runOnce(target, entry);
  const findings: FuzzFinding[] = [];
  const before = heapBytes();
  const start = performance.now();
  const extremes = options.measuresExtremes === false ? [] : (target.extremes?.() ?? []);
  for (const input of extremes) findings.push(...measure(target, input));
  let slowestMs = Math.max(0, ...extremes.map((input) => quickest(target, input)));
  let accepted = 0;
  for (let index = 0; index < count && findings.length < MAX_FINDINGS; index++) {
    const input = fuzzInput(target, corpus, seed, index);
    const outcome = runOnce(target, input);
    if (outcome.isAccepted) accepted++;
    const ms = outcome.ms > MEASURE_MS ? Math.min(outcome.ms, quickest(target, input)) : outcome.ms;
    slowestMs = Math.max(slowestMs, ms);
    if (outcome.problem !== undefined) findings.push({ index, problem: outcome.problem, input });
    else if (ms > SLOW_MS) findings.push({ index, problem: `took ${Math.round(ms)} ms`, input });
  }
  const inputsPerSecond = Math.round((count * 1000) / (performance.now() - start));
  const heapGrowthBytes = heapBytes() - before;
  if (canCollect() && heapGrowthBytes > HEAP_GROWTH_BYTES) {
    findings.push({
      index: count,
      problem: `the heap grew by ${heapGrowthBytes} bytes`,
      input: new Uint8Array(0),
    });
  }
  return { name: target.name, count, accepted, inputsPerSecond, slowestMs, heapGrowthBytes, findings };
}

/** Returns the input at `index` of the run with `seed`. */
export function fuzzInput(
  target: FuzzTarget,
  corpus: readonly Uint8Array[],
  seed: number,
  index: number,
): Uint8Array {
  const random = seededRandom(Math.imul(index + 1, 0x9e3779b1) ^ seed);
  const maxBytes = target.maxBytes ?? DEFAULT_MAX_BYTES;
  const sources = { corpus, words: target.words ?? [], maxBytes };
  const entry = pick(random, corpus);
  if (!target.mutate || random() < 0.5) return mutateBytes(random, entry, sources);
  const mutated = target.mutate(random, entry);
  const input = random() < 0.3 ? mutateBytes(random, mutated, sources) : mutated;
  return input.length > maxBytes ? input.slice(0, maxBytes) : input;
}

function runOnce(
  target: FuzzTarget,
  input: Uint8Array,
): { ms: number; isAccepted: boolean; problem?: string } {
  const start = performance.now();
  try {
    target.run(input);
    return { ms: performance.now() - start, isAccepted: true };
  } catch (thrown) {
    const ms = performance.now() - start;
    if (thrown instanceof DecodeError || thrown instanceof SluiceError) return { ms, isAccepted: false };
    const name = thrown instanceof Error ? thrown.name : typeof thrown;
    return { ms, isAccepted: false, problem: `threw ${name}: ${messageOf(thrown)}` };
  }
}

/** The least processor time of three runs, in ms. */
function quickest(target: FuzzTarget, input: Uint8Array): number {
  return Math.min(
    ...[0, 1, 2].map(() => {
      const before = process.cpuUsage();
      runOnce(target, input);
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1000;
    }),
  );
}

/** Measures time and memory of an extreme input. */
function measure(target: FuzzTarget, input: Uint8Array): FuzzFinding[] {
  const problems: string[] = [];
  const { problem } = runOnce(target, input);
  if (problem !== undefined) problems.push(problem);
  const ms = quickest(target, input);
  if (ms > SLOW_MS) problems.push(`took ${Math.round(ms)} ms`);
  const bytes = canCollect() ? Math.min(heldBytes(target, input), heldBytes(target, input)) : 0;
  if (bytes > MEMORY_FACTOR * input.length + MEMORY_BASE_BYTES) {
    problems.push(`${input.length} bytes hold ${Math.round(bytes)} bytes of memory`);
  }
  return problems.map((text) => ({ index: -1, problem: text, input }));
}

/** Returns the memory of one decoded value in bytes: the mean of several, because the heap grows in pages. */
function heldBytes(target: FuzzTarget, input: Uint8Array): number {
  const copies = 8;
  const held: unknown[] = [];
  const before = heapBytes();
  for (let i = 0; i < copies; i++) {
    try {
      held.push(target.run(input));
    } catch (thrown) {
      if (!(thrown instanceof DecodeError || thrown instanceof SluiceError)) throw thrown;
    }
  }
  const growth = heapBytes() - before;
  return held.length === 0 ? 0 : growth / held.length;
}

/** Returns the heap size, after a garbage collection if the runtime allows one. */
function heapBytes(): number {
  const { Bun, gc } = globalThis as Collector;
  if (Bun) Bun.gc(true);
  else gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  // Bun counts array buffers as part of the heap.
  return Bun ? heapUsed : heapUsed + arrayBuffers;
}

function canCollect(): boolean {
  const { Bun, gc } = globalThis as Collector;
  return Bun !== undefined || gc !== undefined;
}

interface Collector {
  readonly Bun?: { gc(force: boolean): void };
  readonly gc?: () => void;
}
