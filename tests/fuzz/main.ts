import { parseArgs } from "node:util";
import { toHex } from "../../src/base/bytes.ts";
import { fuzz, fuzzInput } from "./fuzz.ts";
import { fuzzTargets } from "./targets.ts";

const USAGE = `usage: npm run fuzz -- [TARGET…] [--count N] [--seed S] [--only INDEX]

Runs the named targets, or all, and prints one line each.
--count   inputs of each target (default 100000)
--seed    the same seed gives the same inputs (default 1)
--only    print one input and what the target makes of it

Targets: `;

/** Runs the named targets, or all, and prints one line each. The exit status is 1 if there are findings. */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: "boolean" },
      count: { type: "string", default: "100000" },
      seed: { type: "string", default: "1" },
      only: { type: "string" },
    },
  });
  const all = await fuzzTargets();
  if (values.help) {
    console.log(USAGE + all.map(({ name }) => name).join(", "));
    return;
  }
  const [count, seed] = [Number(values.count), Number(values.seed)];
  if (!Number.isSafeInteger(count) || !Number.isSafeInteger(seed))
    throw new Error("--count and --seed must be whole numbers");
  const unknown = positionals.filter((name) => !all.some((target) => target.name === name));
  if (unknown.length > 0)
    throw new Error(`no target ${unknown.join(", ")}; there are ${all.map((t) => t.name).join(", ")}`);
  for (const target of all) {
    if (positionals.length > 0 && !positionals.includes(target.name)) continue;
    if (values.only !== undefined) {
      const input = fuzzInput(target, target.corpus(), seed, Number(values.only));
      console.log(`${target.name} ${toHex(input)}`);
      console.log(target.run(input));
      continue;
    }
    const report = fuzz(target, count, seed);
    const figures = [
      `${report.count} inputs`,
      `${Math.round((100 * report.accepted) / report.count)} % accepted`,
      `${report.inputsPerSecond}/s`,
      `slowest ${report.slowestMs.toFixed(1)} ms`,
      `heap ${(report.heapGrowthBytes / 1048576).toFixed(1)} MiB`,
    ];
    console.log(
      `${report.findings.length === 0 ? "ok  " : "FAIL"} ${report.name.padEnd(22)} ${figures.join(", ")}`,
    );
    for (const { index, problem, input } of report.findings) {
      console.log(`     seed ${seed} index ${index}: ${problem}\n     ${toHex(input.subarray(0, 200))}`);
      process.exitCode = 1;
    }
  }
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}
