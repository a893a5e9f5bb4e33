// The entry of the program that `npm run build` compiles for Bun.

/**
 * Numbers of loop iterations and calls (a call counts 15) after which JavaScriptCore compiles a function with its most expensive
 * compiler, for JavaScript (FTL; the default is 64,000) and WebAssembly (OMG; 50,000). The engine spends its time in native code and in
 * short functions that gain little by it, while the compiler threads took a sixth of the CPU time of a download of 1 GiB, and half of
 * that of the first second of converted sound. Loops over all bytes still reach the first number at once, and an encoder the second
 * one after some seconds of sound.
 */
const OPTIONS = {
  BUN_JSC_thresholdForFTLOptimizeAfterWarmUp: "4000000",
  BUN_JSC_thresholdForOMGOptimizeAfterWarmUp: "5000000",
};

// The options are read from the environment before any code runs, so the process starts the program again, in its own place. It would
// lose open descriptors: a socket of the service manager (deploy/systemd/sluice.service sets the options), or a pipe such as `<(…)`.
const isSet = Object.keys(OPTIONS).every((name) => process.env[name] !== undefined);
const hasDescriptors =
  process.env.LISTEN_FDS !== undefined || process.argv.some((argument) => argument.includes("/fd/"));
if (!isSet && !hasDescriptors) restart();
await import("./main.ts");

function restart(): void {
  try {
    process.execve!(process.execPath, [process.execPath, ...process.argv.slice(2)], {
      ...OPTIONS,
      ...process.env,
    });
  } catch {
    // A system that cannot replace a process runs the engine as well, with a little more CPU time.
  }
}

export {};
