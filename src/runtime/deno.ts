import type { Runtime } from "./contract.ts";
import { machineRuntime } from "./machine.ts";

/** What Deno gives. */
export const runtime: Runtime = machineRuntime("deno", process.versions.deno ?? "");
