/** Returns the program of a codec, read from its package when it is first needed. */
export { readCodecProgram as codecProgram } from "./codec-scripts.ts";
