// The entry of the program that `npm run build` compiles for Bun.

/**
 * Number of loop iterations and calls (a call counts 15) after which JavaScriptCore compiles a function with its most expensive
 * compiler; the default is 64,000. The engine spends its time in native code and in short functions that gain little by it, while
 * the compiler threads took a sixth of the CPU time of a download of 1 GiB. Loops over all bytes still reach this number at once.
 */
const OPTION = "BUN_JSC_thresholdForFTLOptimizeAfterWarmUp";
const ITERATIONS = "4000000";

// The option is read from the environment before any code runs, so the process starts the program again, in its own place.
if (process.env[OPTION] === undefined) restart();
await import("./main.ts");

function restart(): void {
  try {
    process.execve!(process.execPath, [process.execPath, ...process.argv.slice(2)], {
      ...process.env,
      [OPTION]: ITERATIONS,
    });
  } catch {
    // A system that cannot replace a process runs the engine as well, with a little more CPU time.
  }
}

export {};
