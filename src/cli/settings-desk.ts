import type { SettingEntry, SettingsList, SettingsService } from "../../routes/http/dependencies.ts";
import { SluiceError } from "../base/errors.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import type { Files } from "../runtime/contract.ts";
import {
  type ConfigSources,
  changedFile,
  type DescribedSetting,
  describeSettings,
} from "../settings/config.ts";
import { isLive, type SettingGroup, settingGroups } from "../settings/groups.ts";
import type { Config, SettingKey, SettingsTable } from "../settings/settings.ts";
import { configFrom } from "./load-config.ts";

/** Time between the request for a restart and the restart, in which the response reaches the client. */
const ANSWER_MS = 200;

/** What {@link SettingsDesk} needs. */
export interface SettingsDeskDependencies {
  readonly table: SettingsTable;
  /** Reads flags, variables and the config file again. Rejects with `bad_configuration`. */
  readonly sources: () => Promise<ConfigSources>;
  /** The config file, which may not exist yet; undefined if the user has no folder for it. */
  readonly path: string | undefined;
  readonly files: Pick<Files, "replace" | "read">;
  /** The settings with which the engine runs. */
  readonly running: () => Config;
  /** Called with the settings that apply at once, in place of those of `running`. */
  readonly onApply: (config: Config) => void;
  /** Called when a client asks for a restart. */
  readonly onRestart: () => void;
}

/** Shows the settings to clients and writes their changes to the config file. */
export class SettingsDesk implements SettingsService {
  readonly #parts: SettingsDeskDependencies;
  /** The content of the config file before the first change that the running engine does not use. */
  #previous: { readonly bytes: Uint8Array | undefined } | undefined;
  #problem: string | undefined;
  #change: Promise<void> = Promise.resolve();

  constructor(parts: SettingsDeskDependencies) {
    this.#parts = parts;
  }

  async list(): Promise<SettingsList> {
    const { table, path, running } = this.#parts;
    const sources = await this.#parts.sources();
    const described = describeSettings(table, sources);
    const next = configFrom(table, sources);
    const groups = settingGroups(described.map(({ setting }) => setting.name));
    const describedOf = new Map(described.map((each) => [each.setting.name, each]));
    return {
      file: path,
      needsRestart: JSON.stringify(next) !== JSON.stringify(running()),
      problem: this.#problem,
      settings: groups.flatMap((group) => group.names.map((name) => entryOf(describedOf.get(name)!, group))),
    };
  }

  change(changes: ReadonlyMap<string, string | null>, { isHost }: { isHost: boolean }): Promise<void> {
    // One change at a time: each starts from the file that the one before it wrote.
    const done = this.#change.then(() => this.#write(changes, isHost));
    this.#change = done.catch(() => {});
    return done;
  }

  restart(): void {
    this.#problem = undefined;
    setTimeout(this.#parts.onRestart, ANSWER_MS);
  }

  /** The engine runs with the settings of the file. */
  applied(): void {
    this.#previous = undefined;
  }

  /** The engine cannot start with the settings of the file: restores the previous file. Returns false if there is none. */
  async revert(problem: string): Promise<boolean> {
    const { path, files } = this.#parts;
    if (this.#previous === undefined || path === undefined) return false;
    this.#problem = problem;
    await files.replace(path, this.#previous.bytes ?? encodeUtf8("{}\n"));
    this.#previous = undefined;
    return true;
  }

  async #write(changes: ReadonlyMap<string, string | null>, isHost: boolean): Promise<void> {
    const { table, path, files } = this.#parts;
    if (path === undefined)
      throw new SluiceError(
        "bad_configuration",
        "there is no folder for the config file. Set HOME, or name a file with --config.",
      );
    const hostOnly = settingGroups(Object.values(table).map(({ name }) => name))
      .filter((group) => group.isHostOnly)
      .flatMap((group) => group.names);
    const refused = [...changes.keys()].find((name) => hostOnly.includes(name));
    if (!isHost && refused !== undefined)
      throw new SluiceError("access_denied", `${refused} can be changed only on the engine's computer`);
    const sources = await this.#parts.sources();
    const content = changedFile(table, sources.file, changes);
    // Settings that conflict are refused before they are written.
    const next = configFrom(table, { ...sources, file: { path, content } });
    this.#previous ??= { bytes: await files.read(path, MAX_FILE_BYTES) };
    await files.replace(path, encodeUtf8(`${JSON.stringify(content, undefined, 2)}\n`));
    this.#applyLive(next);
  }

  /** Applies the changed settings that need no restart. */
  #applyLive(next: Config): void {
    const { table, running, onApply } = this.#parts;
    const present = running();
    const changed = (Object.keys(table) as SettingKey[]).filter(
      (key) =>
        JSON.stringify(present[key]) !== JSON.stringify(next[key]) &&
        isLive(table[key].name, present[key], next[key]),
    );
    if (changed.length === 0) return;
    const values = Object.fromEntries(changed.map((key) => [key, next[key]]));
    onApply({ ...present, ...values } as Config);
    if (JSON.stringify(running()) === JSON.stringify(next)) this.applied();
  }
}

function entryOf({ setting, value, from }: DescribedSetting, group: SettingGroup): SettingEntry {
  const { name, help, kind, shownDefault } = setting;
  return {
    name,
    group: group.title,
    help,
    value: value === undefined ? undefined : textOf(value),
    defaultText: shownDefault,
    expected: kind.expected,
    values: kind.values,
    isSecret: kind.isSecret ?? false,
    from,
    isHostOnly: group.isHostOnly ?? false,
    isLive: isLive(name, undefined, undefined),
  };
}

/** Limit of the config file: more than all settings at their longest. */
const MAX_FILE_BYTES = 1_000_000;

/** A value of the config file as a flag would be written. */
function textOf(value: unknown): string {
  return Array.isArray(value) ? value.map(String).join(",") : String(value);
}
