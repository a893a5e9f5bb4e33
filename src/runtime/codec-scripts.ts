import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** The scripts with WebAssembly codecs: package, and the script relative to the folder of its main file. */
const SCRIPTS = {
  aac: ["@mediabunny/aac-encoder", "../modules/build/aac.js"],
  ac3: ["@mediabunny/ac3", "../modules/build/ac3.js"],
  dts: ["@mediabunny/dts", "../modules/build/dts.js"],
  mpeg: ["mpg123-decoder", "dist/mpg123-decoder.min.js"],
  opus: ["opus-decoder", "dist/opus-decoder.min.js"],
} as const;

/** Names of the codec scripts. */
export type CodecName = keyof typeof SCRIPTS;

/**
 * Reads the script of a codec: CommonJS, with the WebAssembly inside. The packages export their codecs in workers only, and
 * those workers do not answer on Bun; these scripts run in any context.
 */
export function readCodecScript(name: CodecName): string {
  const packages = createRequire(import.meta.url);
  const [packageName, script] = SCRIPTS[name];
  const text = readFileSync(join(dirname(packages.resolve(packageName)), script), "utf8");
  // The address is used only to find a separate WebAssembly file, which these scripts do not have.
  return text.replaceAll("import.meta.url", '""').replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n");
}

/** Reads all scripts. Bun runs this when it builds the single binary. */
export function readCodecScripts(): Record<CodecName, string> {
  const names = Object.keys(SCRIPTS) as CodecName[];
  return Object.fromEntries(names.map((name) => [name, readCodecScript(name)])) as Record<CodecName, string>;
}
