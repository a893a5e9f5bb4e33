import { readWebAssets } from "./assets.ts" with { type: "macro" };

/** The page's files, put into this module when Bun translates it: so the single binary holds them. */
export const webAssets = readWebAssets();
