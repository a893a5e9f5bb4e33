import { buildWebAssets } from "./assets.ts" with { type: "macro" };
import type { WebAssets } from "./assets.ts";

/** The files of the page. Bun builds and inlines them when it bundles this module, so that the single binary contains them. */
const built = await buildWebAssets();

/** Returns the files of the page, which the binary contains. */
export const webAssets: WebAssets = async () => built;
