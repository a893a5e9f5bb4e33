import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { messageOf, SluiceError } from "../base/errors.ts";
import { readConfig } from "../config.ts";
import type { Config, SettingsTable } from "../settings.ts";
import type { Arguments } from "./args.ts";

/** Reads the config file (if any) and puts flags, variables, file and defaults together. */
export async function loadConfig(
  table: SettingsTable,
  args: Arguments,
  environment: Readonly<Record<string, string | undefined>>,
  defaultFile: string,
): Promise<Config> {
  const named = args.flags.get("config") ?? environment.SLUICE_CONFIG;
  const path = typeof named === "string" && named !== "" ? resolve(named) : undefined;
  const content = await readJson(path ?? defaultFile, path !== undefined);
  const file = content === undefined ? undefined : { path: path ?? defaultFile, content };
  const config = readConfig(table, { flags: args.settings, environment, file });
  return { ...config, dataDir: resolve(config.dataDir) };
}

async function readJson(path: string, mustExist: boolean): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const isAbsent = (error as { code?: string }).code === "ENOENT";
    if (isAbsent && !mustExist) return undefined;
    throw new SluiceError("bad_configuration", `cannot read the config file ${path}: ${messageOf(error)}`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SluiceError("bad_configuration", `the config file ${path} is not JSON: ${messageOf(error)}`);
  }
}
