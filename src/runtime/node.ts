import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Runtime } from "./contract.ts";
import { machineRuntime } from "./machine.ts";
import type { TrafficMemory } from "./sockets.ts";

/**
 * Strangers can open thousands of connections a second, which the limits close at once. V8 keeps what they leave behind for minutes, up to
 * hundreds of MiB. A collection of all objects takes 20 to 60 ms, and runs after this number of accepted connections, at most this often.
 */
const COLLECT_AFTER_CONNECTIONS = 2_048;
const COLLECT_MS = 1_000;
/** A flood is over if no such collection was necessary for this long. A shorter time would pause players between two floods. */
const FLOOD_END_MS = 30_000;

/** The runtime on Node. */
export const runtime: Runtime = machineRuntime("node", process.versions.node, trafficMemory());

type Collect = (how?: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void;

/**
 * Schedules garbage collections while many connections are accepted. V8 keeps the pages that they free, so a flood ends with a collection
 * that returns them to the system. It takes 130 ms.
 */
function trafficMemory(): TrafficMemory {
  let accepted = 0;
  let isScheduled = false;
  let collectedAt = 0;
  let collect: Collect | undefined;
  let floodEnd: NodeJS.Timeout | undefined;
  const run = () => {
    if (collect === undefined) {
      // Node offers its collector only behind this flag.
      setFlagsFromString("--expose-gc");
      collect = runInNewContext("gc") as Collect;
    }
    isScheduled = false;
    accepted = 0;
    collect();
    collectedAt = performance.now();
    floodEnd ??= setTimeout(end, FLOOD_END_MS).unref();
    floodEnd.refresh();
  };
  const end = () => {
    floodEnd = undefined;
    collect?.({ type: "major", execution: "sync", flavor: "last-resort" });
  };
  return {
    read() {},
    sent() {},
    accepted() {
      if (++accepted < COLLECT_AFTER_CONNECTIONS || isScheduled) return;
      isScheduled = true;
      setTimeout(run, Math.max(0, collectedAt + COLLECT_MS - performance.now())).unref();
    },
  };
}
