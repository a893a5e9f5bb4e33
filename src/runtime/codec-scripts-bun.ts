import { readPackedProgram } from "./codec-scripts.ts" with { type: "macro" };
import { type CodecName, unpackProgram } from "./codec-scripts.ts";

/** Bun inlines the programs when it bundles this module. Each is in a function, so that it takes no memory until it is needed. */
const PROGRAMS = {
  aac: () => readPackedProgram("aac"),
  ac3: () => readPackedProgram("ac3"),
  dts: () => readPackedProgram("dts"),
  mpeg: () => readPackedProgram("mpeg"),
  opus: () => readPackedProgram("opus"),
};

/** Returns the program of a codec, which the single binary contains. */
export function codecProgram(name: CodecName) {
  return unpackProgram(PROGRAMS[name]());
}
