import { readCodecScripts } from "./codec-scripts.ts" with { type: "macro" };

const scripts = readCodecScripts();

/** Returns the script of a codec. Bun inlines the scripts when it bundles this module, so that the single binary contains them. */
export function codecScript(name: keyof typeof scripts): string {
  return scripts[name];
}
