import type { Runtime } from "./contract.ts";
import { machineRuntime } from "./machine.ts";

/** The runtime on Deno. */
export const runtime: Runtime = machineRuntime("deno", process.versions.deno ?? "");
