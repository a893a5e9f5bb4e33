import { readdir } from "node:fs/promises";
import type { FuzzTarget } from "./contract.ts";

/** Loads all targets of the folder `targets`, sorted by name. */
export async function fuzzTargets(): Promise<FuzzTarget[]> {
  const folder = new URL("./targets/", import.meta.url);
  const names = (await readdir(folder)).filter((name) => name.endsWith(".ts")).sort();
  const targets: FuzzTarget[] = [];
  for (const name of names) {
    const file = (await import(new URL(name, folder).href)) as {
      target?: FuzzTarget;
      targets?: FuzzTarget[];
    };
    if (file.target) targets.push(file.target);
    targets.push(...(file.targets ?? []));
  }
  return targets;
}
