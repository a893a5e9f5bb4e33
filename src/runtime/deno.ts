import type { Runtime } from "./contract.ts";
import { bindDenoUdp } from "./deno-udp.ts";
import { machineRuntime } from "./machine.ts";

/** The runtime on Deno. */
export const runtime: Runtime = machineRuntime("deno", process.versions.deno ?? "", undefined, bindDenoUdp);
