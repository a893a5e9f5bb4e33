import type { Runtime } from "./contract.ts";
import { machineRuntime } from "./machine.ts";

/** The runtime on Node. */
export const runtime: Runtime = machineRuntime("node", process.versions.node);
