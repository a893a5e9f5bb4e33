import * as v from "valibot";
import { SluiceError } from "../base/errors.ts";
import type { ReachSettings } from "../net/contract.ts";
import type { EngineSettings } from "../transfer/contract.ts";
import { nearest } from "./nearest.ts";
import { type Config, type SettingKey, type SettingsTable, variableOf } from "./settings.ts";

/** Sources of settings, highest precedence first. */
export interface ConfigSources {
  /** Keyed by flag name without dashes, such as `http-port`. */
  readonly flags: ReadonlyMap<string, string>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The parsed config file and its path; undefined if the file does not exist. */
  readonly file: { readonly path: string; readonly content: unknown } | undefined;
}

/**
 * Returns the value of every setting. A flag overrides a variable, which overrides the config file, which overrides the
 * default. Throws `SluiceError("bad_configuration")` that names the setting, the source of its value and what was expected.
 */
export function readConfig(table: SettingsTable, sources: ConfigSources): Config {
  const keys = Object.keys(table) as SettingKey[];
  const file = fileObject(table, sources.file);
  const values = keys.map((key) => [key, settingValue(table, key, sources, file)]);
  return Object.fromEntries(values) as Config;
}

/** A setting with its present value. */
export interface DescribedSetting {
  readonly setting: SettingsTable[SettingKey];
  /** As the user wrote it; undefined if the default applies, or if it is a secret. */
  readonly value: unknown;
  /** Such as `the variable SLUICE_HOST`; undefined if the default applies. */
  readonly source: string | undefined;
  /** Kind of the source; undefined if the default applies. */
  readonly from: SettingOrigin | undefined;
}

/** Kinds of sources, highest precedence first. */
export type SettingOrigin = "flag" | "variable" | "file";

/** Describes every setting with its value and where the value comes from. Throws as {@link readConfig} does. */
export function describeSettings(table: SettingsTable, sources: ConfigSources): DescribedSetting[] {
  readConfig(table, sources);
  const file = fileObject(table, sources.file);
  return Object.values(table).map((setting) => {
    const written = writtenValue(setting, sources, file);
    const value = setting.kind.isSecret ? undefined : written?.value;
    return { setting, value, source: written?.source, from: written?.from };
  });
}

/**
 * Returns the content of the config file with some settings changed, by name; null removes a setting from the file. Checks every
 * new value as {@link readConfig} does. Throws `bad_parameter` that names the setting.
 */
export function changedFile(
  table: SettingsTable,
  file: ConfigSources["file"],
  changes: ReadonlyMap<string, string | null>,
): Record<string, unknown> {
  const content = { ...fileObject(table, file) };
  const settings = new Map(Object.values(table).map((setting) => [setting.name, setting]));
  for (const [name, value] of changes) {
    const setting = settings.get(name);
    if (setting === undefined)
      throw new SluiceError("bad_parameter", `unknown setting "${name}"${hint(name, [...settings.keys()])}`);
    if (value === null) delete content[name];
    else {
      check(setting, value, "the new value", "bad_parameter");
      content[name] = value;
    }
  }
  return content;
}

/**
 * Returns a warning for each `SLUICE_` variable that is not a setting. It is not an error because some container hosts
 * add such variables for a service of this name.
 */
export function unknownVariables(table: SettingsTable, environment: ConfigSources["environment"]): string[] {
  const names = [...Object.values(table).map(variableOf), "SLUICE_CONFIG"];
  return Object.keys(environment)
    .filter((name) => name.startsWith("SLUICE_") && !names.includes(name))
    .map((name) => `unknown variable ${name} ignored${hint(name, names)}`);
}

/** The values of `live-lag`: how far playback may fall behind its swarm before media is skipped. */
const LAG_MS = { low: 2_000, normal: 3_000, safe: 8_000 } as const;

/** Returns the settings that the engine takes. */
export function engineSettings(config: Config): EngineSettings {
  return {
    dataDir: config.dataDir,
    p2pHost: config.p2pHost,
    p2pPort: config.p2pPort,
    cacheLimitBytes: config.cacheLimit,
    bucket: config.cache,
    memoryLimitBytes: config.memoryLimit,
    uploadLimit: config.uploadLimit,
    downloadLimit: config.downloadLimit,
    maxSessions: config.maxSessions,
    maxTransfers: config.maxTransfers,
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
    isLowLatency: config.lowLatency === "on",
    reach: reachSettings(config),
  };
}

/** Returns the settings that decide how the engine finds and reaches peers. */
export function reachSettings(config: Config): ReachSettings {
  return {
    dht: config.dht === "on",
    dhtNodes: config.dhtNodes,
    lsd: config.lsd === "on",
    encryption: config.encryption,
    utp: config.utp === "on",
    webrtc: config.webrtc === "on",
    iceServers: config.iceServers,
    portMapping: config.portMapping === "on",
    bind: config.bind,
    proxy: config.proxy,
    proxyStrict: config.proxyStrict === "on",
    limitLan: config.limitLan === "on",
    scheduled: config.schedule,
    ipFilter: config.ipFilter,
    portFile: config.portFile,
    portCommand: config.portCommand,
    tracker: config.tracker,
  };
}

function settingValue(
  table: SettingsTable,
  key: SettingKey,
  sources: ConfigSources,
  file: Readonly<Record<string, unknown>>,
): unknown {
  const setting = table[key];
  const written = writtenValue(setting, sources, file);
  return written === undefined ? setting.default : check(setting, written.value, written.source);
}

/** Returns the value with the highest precedence, as the user wrote it; undefined if no source sets it. */
function writtenValue(
  setting: SettingsTable[SettingKey],
  sources: ConfigSources,
  file: Readonly<Record<string, unknown>>,
): { readonly value: unknown; readonly source: string; readonly from: SettingOrigin } | undefined {
  const flag = sources.flags.get(setting.name);
  if (flag !== undefined) return { value: flag, source: `the flag --${setting.name}`, from: "flag" };
  const variable = variableOf(setting);
  const fromEnvironment = sources.environment[variable];
  // Shell scripts set a variable to the empty string to unset it.
  if (fromEnvironment !== undefined && fromEnvironment !== "")
    return { value: fromEnvironment, source: `the variable ${variable}`, from: "variable" };
  const fromFile = file[setting.name];
  if (fromFile !== undefined)
    return { value: fromFile, source: `"${setting.name}" in ${sources.file?.path}`, from: "file" };
  return undefined;
}

function check(
  setting: SettingsTable[SettingKey],
  value: unknown,
  source: string,
  code: "bad_configuration" | "bad_parameter" = "bad_configuration",
): unknown {
  const result = v.safeParse(setting.kind.schema as v.GenericSchema, value);
  if (result.success) return result.output;
  const written = typeof value === "string" ? `"${value}"` : JSON.stringify(value);
  const shown = setting.kind.isSecret ? "something else (not shown because it is a secret)" : written;
  throw new SluiceError(
    code,
    `${setting.name}: expected ${setting.kind.expected}, but ${source} is ${shown}`,
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
