import { readWebAssets } from "./assets.ts";

/** The files of the page, read from disk at start. */
export const webAssets = readWebAssets();
