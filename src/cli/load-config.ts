import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { messageOf, SluiceError } from "../base/errors.ts";
import { type ConfigSources, readConfig } from "../settings/config.ts";
import type { Config, SettingsTable } from "../settings/settings.ts";
import type { Arguments } from "./args.ts";

/**
 * Collects flags, variables and the config file. `defaultFile` may be missing; a file that `--config` or `SLUICE_CONFIG` names
 * must exist. Throws `bad_configuration`.
 */
export async function configSources(
  args: Arguments,
  environment: Readonly<Record<string, string | undefined>>,
  defaultFile: string | undefined,
): Promise<ConfigSources> {
  const named = args.flags.get("config") ?? environment.SLUICE_CONFIG;
  const chosen = typeof named === "string" && named !== "" ? resolve(named) : undefined;
  const path = chosen ?? defaultFile;
  const content = path === undefined ? undefined : await readJson(path, chosen !== undefined);
  const file = path === undefined || content === undefined ? undefined : { path, content };
  return { flags: args.settings, environment, file };
}

/** Returns the value of every setting, with an absolute data folder. Throws `bad_configuration`. */
export function configFrom(table: SettingsTable, sources: ConfigSources): Config {
  const config = readConfig(table, sources);
  if (config.dataDir === "")
    throw new SluiceError(
      "bad_configuration",
      "this user has no home folder for the data. Set HOME, or choose a folder with --data-dir.",
    );
  return { ...config, dataDir: resolve(config.dataDir) };
}

async function readJson(path: string, mustExist: boolean): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const { code } = error as { code?: string };
    // A file where a folder is expected means the same: this config file does not exist.
    if (!mustExist && (code === "ENOENT" || code === "ENOTDIR")) return undefined;
    throw new SluiceError("bad_configuration", `cannot read the config file ${path}: ${messageOf(error)}`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SluiceError("bad_configuration", `the config file ${path} is not JSON: ${messageOf(error)}`);
  }
}

/** The folders of this program (XDG base directory specification). A field is undefined if the user has no home folder. */
export interface Folders {
  readonly dataDir: string | undefined;
  readonly configFile: string | undefined;
}

/** Returns the folders below `$XDG_DATA_HOME` and `$XDG_CONFIG_HOME`, or below their defaults in the home folder. */
export function foldersOf(
  environment: Readonly<Record<string, string | undefined>>,
  homeOf: () => string = homedir,
): Folders {
  const home = homeFolder(homeOf);
  // The specification: "All paths set in these environment variables must be absolute"; others are ignored.
  const below = (variable: string, fallback: string, ...rest: string[]) => {
    const set = environment[variable];
    if (set !== undefined && isAbsolute(set)) return join(set, ...rest);
    return home === undefined ? undefined : join(home, fallback, ...rest);
  };
  return {
    dataDir: below("XDG_DATA_HOME", ".local/share", "sluice"),
    configFile: below("XDG_CONFIG_HOME", ".config", "sluice", "config.json"),
  };
}

/** Undefined if HOME is not set and the user has no passwd entry, as in some containers. */
function homeFolder(homeOf: () => string): string | undefined {
  try {
    const home = homeOf();
    return isAbsolute(home) ? home : undefined;
  } catch {
    return undefined;
  }
}
