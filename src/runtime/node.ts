import type { Runtime } from "./contract.ts";
import { machineRuntime } from "./machine.ts";

/** What Node gives. */
export const runtime: Runtime = machineRuntime("node", process.versions.node);
