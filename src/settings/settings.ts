import { clusterSettings } from "./cluster-settings.ts";
import { deviceSettings } from "./device-settings.ts";
import { httpSettings } from "./http-settings.ts";
import { choice } from "./kinds.ts";
import { peerSettings } from "./peer-settings.ts";
import { playbackSettings } from "./playback-settings.ts";
import { serviceSettings } from "./service-settings.ts";
import { type Setting, setting } from "./setting.ts";
import { storageSettings } from "./storage-settings.ts";

/** All settings, by the name that the code uses. Flags, variables, config keys, help and documentation derive from this table. */
export function settingsTable(folders: { readonly dataDir: string | undefined }) {
  return {
    ...httpSettings(),
    ...peerSettings(),
    ...storageSettings(folders),
    ...playbackSettings(),
    ...serviceSettings(),
    ...deviceSettings(),
    ...clusterSettings(),
    log: setting("log", choice("silent", "error", "warn", "info", "debug"), "info", "Log level"),
    logFormat: setting(
      "log-format",
      choice("text", "json"),
      "text",
      "Format of the log: lines for people, or one JSON object per line for log systems",
    ),
    logColors: setting("log-colors", choice("auto", "always", "never"), "auto", "Colors in the log"),
  } as const;
}

/** Type of {@link settingsTable}. */
export type SettingsTable = ReturnType<typeof settingsTable>;
export type SettingKey = keyof SettingsTable;

/** The values of all settings: sizes in bytes, times in milliseconds, rates in bytes per second. */
export type Config = {
  readonly [K in SettingKey]: SettingsTable[K] extends Setting<infer T> ? T : never;
};

/** Returns the environment variable of a setting: `SLUICE_HTTP_PORT` for `http-port`. */
export function variableOf(setting: { readonly name: string }): string {
  return `SLUICE_${setting.name.toUpperCase().replaceAll("-", "_")}`;
}
