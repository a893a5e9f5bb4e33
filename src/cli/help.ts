import type { DescribedSetting } from "../settings/config.ts";
import type { Setting } from "../settings/setting.ts";
import { type SettingsTable, variableOf } from "../settings/settings.ts";
import type { CommandFlag, CommandName } from "./command.ts";
import { COMMANDS, commandOf, GLOBAL_FLAGS } from "./commands.ts";

/** Help is wrapped at this column. */
const COLUMNS = 110;

/** What the program is, in one line. */
export const SUMMARY = "Stream from the BitTorrent network to any player over HTTP; broadcast and watch live";

/** Exit codes of all commands. `doctor` and `status` exit with 1 if a check fails, `play` with the code of the player. */
export const EXIT_CODES = [
  ["0", "success"],
  ["1", "failure, such as a port in use, a full disk or no peers; doctor, status: a check failed"],
  ["2", "invalid command line, setting or config file"],
  ["3", "status: no engine answers"],
  ["130", "interrupted by Ctrl-C"],
] as const;

/** Where settings come from. */
export const PRECEDENCE =
  "A flag overrides a variable, which overrides the config file, which overrides the default. The config file is JSON, such as " +
  '{"http-port": 7000}, at $XDG_CONFIG_HOME/sluice/config.json or where --config or SLUICE_CONFIG says.';

/** The help of the program. */
export function generalHelp(): string {
  return [
    `${SUMMARY}.`,
    "",
    "Usage: sluice [command] [flags]",
    "",
    "Commands",
    ...columns(COMMANDS.map(({ name, summary }) => [name, summary])),
    "",
    "Flags",
    ...columns(GLOBAL_FLAGS.map(flagRow)),
    "",
    "Examples",
    ...columns(COMMANDS.slice(0, 3).flatMap((command) => command.examples.slice(0, 2))),
    "",
    "Exit codes",
    ...columns(EXIT_CODES),
    "",
    "sluice COMMAND --help shows the flags of a command.",
    "sluice settings lists all settings: each is a flag, a variable and a key of the config file.",
  ].join("\n");
}

/** The help of one command: its own flags, and the settings that matter most to it. */
export function commandHelp(name: CommandName, table: SettingsTable): string {
  const command = commandOf(name);
  const lines = [
    `${command.summary}.`,
    "",
    `Usage: ${usageLine(name)}`,
    "",
    "Flags",
    ...columns([...command.flags, ...GLOBAL_FLAGS].map(flagRow)),
  ];
  const { shownSettings = [] } = command;
  if (shownSettings.length > 0) {
    const shown = Object.values(table).filter((setting) => shownSettings.includes(setting.name));
    lines.push("", "Settings", ...columns(shown.map(settingRow)));
  }
  if (command.takesSettings)
    lines.push("", "sluice settings lists all settings; each can be given as a flag.");
  lines.push("", "Examples", ...columns(command.examples));
  return lines.join("\n");
}

/** The output of `sluice settings`. */
export function settingsText(settings: readonly DescribedSetting[], isJson: boolean): string {
  if (isJson) return `${JSON.stringify(settings.map(settingJson), undefined, 2)}\n`;
  const lines = [...wrapped(PRECEDENCE, COLUMNS), ""];
  for (const { setting, value, source } of settings) {
    lines.push(`--${setting.name} ${setting.kind.placeholder}`);
    lines.push(`    ${setting.help}`);
    lines.push(`    variable ${variableOf(setting)}, default ${setting.shownDefault}`);
    if (source !== undefined)
      lines.push(`    now ${value === undefined ? "set" : valueText(value)} (${source})`);
  }
  return `${lines.join("\n")}\n`;
}

/** `sluice play <link> [flags]`. */
export function usageLine(name: CommandName): string {
  const { operands } = commandOf(name);
  return ["sluice", name, operands, "[flags]"].filter((part) => part !== "").join(" ");
}

function settingJson({ setting, value, source }: DescribedSetting) {
  return {
    name: setting.name,
    flag: `--${setting.name}`,
    variable: variableOf(setting),
    expected: setting.kind.expected,
    help: setting.help,
    default: setting.shownDefault,
    value: value ?? null,
    source: source ?? null,
  };
}

function valueText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function flagRow(flag: CommandFlag): readonly [string, string] {
  const short = flag.short === undefined ? "    " : `-${flag.short}, `;
  const value = flag.value === undefined ? "" : ` ${flag.value}`;
  return [`${short}--${flag.name}${value}`, flag.help];
}

function settingRow({ name, kind, help, shownDefault }: Setting<unknown>): readonly [string, string] {
  return [`    --${name} ${kind.placeholder}`, `${help} (default: ${shownDefault})`];
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.flatMap(([left, right]) =>
    wrapped(right, COLUMNS - width - 4).map((line, i) =>
      `  ${(i === 0 ? left : "").padEnd(width)}  ${line}`.trimEnd(),
    ),
  );
}

/** Breaks a text into lines of at most `width` characters. */
function wrapped(text: string, width: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1)!;
    if (line !== "" && line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines;
}
