import { readWebAssets } from "./assets.ts";

/** The page's files, read from the disk at start. */
export const webAssets = readWebAssets();
