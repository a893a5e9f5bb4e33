/** Returns the script of a codec, read from its package when it is first needed. */
export { readCodecScript as codecScript } from "./codec-scripts.ts";
