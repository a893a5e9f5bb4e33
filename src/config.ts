import * as v from "valibot";
import { SluiceError } from "./base/errors.ts";
import type { EngineSettings } from "./engine/contract.ts";
import { nearest } from "./nearest.ts";
import { reachSettings } from "./reach-settings.ts";
import { type Config, type SettingKey, type SettingsTable, variableOf } from "./settings.ts";

/** Where settings may come from, strongest first: a flag, a variable, the config file. */
export interface ConfigSources {
  /** By flag name without dashes, such as `http-port`. */
  readonly flags: ReadonlyMap<string, string>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The parsed config file and its path, where there is one. */
  readonly file: { readonly path: string; readonly content: unknown } | undefined;
}

/**
 * The settings: flag over variable over config file over default. Throws `SluiceError("bad_configuration")` that names
 * the setting, where its value came from, what was expected and what came.
 */
export function readConfig(table: SettingsTable, sources: ConfigSources): Config {
  const keys = Object.keys(table) as SettingKey[];
  const file = fileObject(table, sources.file);
  const values = keys.map((key) => [key, settingValue(table, key, sources, file)]);
  return Object.fromEntries(values) as Config;
}

/**
 * One line for each `SLUICE_` variable that is no setting. A misspelt one would be ignored in silence; yet it is not an
 * error, because some hosts add variables of their own for a service of this name.
 */
export function unknownVariables(table: SettingsTable, environment: ConfigSources["environment"]): string[] {
  const names = [...Object.values(table).map(variableOf), "SLUICE_CONFIG"];
  return Object.keys(environment)
    .filter((name) => name.startsWith("SLUICE_") && !names.includes(name))
    .map((name) => `the variable ${name} is no setting and is ignored${hint(name, names)}`);
}

/** How far behind live its swarm may fall before media is skipped; for networks that are good, usual and bad. */
const LAG_MS = { low: 2_000, normal: 3_000, safe: 8_000 } as const;

/** The part of the settings that the engine takes. */
export function engineSettings(config: Config): EngineSettings {
  return {
    dataDir: config.dataDir,
    p2pHost: config.p2pHost,
    p2pPort: config.p2pPort,
    cacheLimitBytes: config.cacheLimit,
    memoryLimitBytes: config.memoryLimit,
    uploadLimit: config.uploadLimit,
    downloadLimit: config.downloadLimit,
    sessionIdleMs: config.sessionIdle,
    transferIdleMs: config.transferIdle,
    peersTimeoutMs: config.peersTimeout,
    metadataTimeoutMs: config.metadataTimeout,
    startTimeoutMs: config.startTimeout,
    maxConnections: config.maxConnections,
    segmentSeconds: config.segmentSeconds,
    trackers: config.trackers,
    liveWindowMs: config.liveWindow,
    liveLimitBytes: config.liveLimit,
    liveLagMs: LAG_MS[config.liveLag],
    compat: config.compat,
    reach: reachSettings(config),
  };
}

function settingValue(
  table: SettingsTable,
  key: SettingKey,
  sources: ConfigSources,
  file: Readonly<Record<string, unknown>>,
): unknown {
  const setting = table[key];
  const flag = sources.flags.get(setting.name);
  if (flag !== undefined) return check(setting, flag, `the flag --${setting.name}`);
  const variable = variableOf(setting);
  const fromEnvironment = sources.environment[variable];
  // An empty variable is how a shell script says "not set".
  if (fromEnvironment !== undefined && fromEnvironment !== "") {
    return check(setting, fromEnvironment, `the variable ${variable}`);
  }
  const fromFile = file[setting.name];
  if (fromFile !== undefined) return check(setting, fromFile, `"${setting.name}" in ${sources.file?.path}`);
  return setting.default;
}

function check(setting: SettingsTable[SettingKey], value: unknown, source: string): unknown {
  const result = v.safeParse(setting.kind.schema as v.GenericSchema, value);
  if (result.success) return result.output;
  const written = typeof value === "string" ? `"${value}"` : JSON.stringify(value);
  const came = setting.kind.isSecret ? "something else (not shown: it is a secret)" : written;
  throw new SluiceError(
    "bad_configuration",
    `${setting.name}: expected ${setting.kind.expected}, but ${source} is ${came}`,
  );
}

function fileObject(table: SettingsTable, file: ConfigSources["file"]): Readonly<Record<string, unknown>> {
  if (file === undefined) return {};
  const { content, path } = file;
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    throw new SluiceError("bad_configuration", `${path}: expected a JSON object of settings`);
  }
  const names = Object.values(table).map((setting) => setting.name);
  for (const name of Object.keys(content)) {
    if (names.includes(name)) continue;
    throw new SluiceError("bad_configuration", `${path}: unknown setting "${name}"${hint(name, names)}`);
  }
  return content as Record<string, unknown>;
}

function hint(name: string, names: readonly string[]): string {
  const near = nearest(name, names);
  return near === undefined ? "" : `; did you mean ${near}?`;
}
