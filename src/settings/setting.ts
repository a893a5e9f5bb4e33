import { formatDuration, formatSize, type SettingKind } from "./kinds.ts";

/** One setting. Its name is the flag (`--http-port`), the variable (`SLUICE_HTTP_PORT`) and the key in the config file. */
export interface Setting<T> {
  readonly name: string;
  readonly kind: SettingKind<T>;
  readonly default: T;
  /** The default as `--help` and the documentation show it. */
  readonly shownDefault: string;
  /** One line for `--help` and the documentation. */
  readonly help: string;
}

/** Creates a setting; `shownDefault` replaces a default that is not readable. */
export function setting<T>(
  name: string,
  kind: SettingKind<T>,
  defaultValue: NoInfer<T>,
  help: string,
  shownDefault = show(kind, defaultValue),
): Setting<T> {
  return { name, kind, default: defaultValue, shownDefault, help };
}

function show(kind: SettingKind<unknown>, value: unknown): string {
  if (kind.placeholder === "SIZE" && typeof value === "number") return formatSize(value);
  if (kind.placeholder === "TIME" && typeof value === "number") return formatDuration(value);
  return String(value);
}
