import { readWebAssets } from "./assets.ts" with { type: "macro" };

/** The files of the page. Bun inlines them when it bundles this module, so that the single binary contains them. */
export const webAssets = readWebAssets();
