import type { Runtime } from "./contract.ts";
import { machineRuntime } from "./machine.ts";

/**
 * Bun makes a new array for each read from a socket, and lets garbage grow to the size of what lives before it collects
 * unasked. Asked at this pace while peers send, in the background, it keeps some 30 MB less at full speed; asked while
 * players are sent to as well, it keeps some 80 MB less of segments that are made and gone. Asked from within a read it
 * keeps more, not less.
 */
const COLLECT_EVERY_MS = 8;
/** So little, read or sent, leaves no garbage worth a collection. */
const WORTH_COLLECTING_BYTES = 2 * 1024 * 1024;

/** What Bun gives. */
export const runtime: Runtime = machineRuntime("bun", process.versions.bun ?? "", collecting());

/** Counts the bytes that are read and sent, and asks for a collection when it is time. */
function collecting(): (bytes: number) => void {
  let bytesSince = 0;
  let isTimed = false;
  const collect = () => {
    isTimed = false;
    Bun.gc(false);
  };
  return (bytes) => {
    bytesSince += bytes;
    if (isTimed || bytesSince < WORTH_COLLECTING_BYTES) return;
    bytesSince = 0;
    isTimed = true;
    setTimeout(collect, COLLECT_EVERY_MS).unref();
  };
}
