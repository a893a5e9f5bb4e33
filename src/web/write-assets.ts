/** Writes the built files of the page for `deno compile`. */
import { writeFile } from "node:fs/promises";
import { BUILT_FILE, buildWebAssets } from "./assets.ts";

await writeFile(BUILT_FILE, JSON.stringify(await buildWebAssets()));
