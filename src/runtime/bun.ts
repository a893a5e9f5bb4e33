import type { Runtime } from "./contract.ts";
import { machineRuntime } from "./machine.ts";

/** What Bun gives. */
export const runtime: Runtime = machineRuntime("bun", process.versions.bun ?? "");
