import { loadWebAssets, type WebAssets } from "./assets.ts";

/** Builds the files of the page from the modules on disk. */
export const webAssets: WebAssets = loadWebAssets;
