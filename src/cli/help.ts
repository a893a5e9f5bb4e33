import { type SettingsTable, variableOf } from "../settings.ts";
import { COMMANDS, type CommandFlag, type CommandName, GLOBAL_FLAGS } from "./commands.ts";

/** The help of the whole program. */
export function generalHelp(): string {
  const commands = COMMANDS.map((command) => [command.name, command.summary] as const);
  return [
    "Sluice: play from the BitTorrent network in any player, over HTTP; broadcast live, and watch live.",
    "",
    "Usage: sluice [command] [flags]",
    "",
    "Commands",
    ...columns(commands),
    "",
    "Flags",
    ...columns(GLOBAL_FLAGS.map(flagRow)),
    "",
    "Examples",
    ...columns(COMMANDS.slice(0, 3).flatMap((command) => command.examples.slice(0, 2))),
    "",
    "sluice serve --help lists every setting.",
  ].join("\n");
}

/** The help of one command, with the settings that matter to it. */
export function commandHelp(name: CommandName, table: SettingsTable): string {
  const command = COMMANDS.find((one) => one.name === name)!;
  const lines = [
    `${command.summary}.`,
    "",
    `Usage: ${["sluice", command.name, command.operands, "[flags]"].filter((part) => part !== "").join(" ")}`,
    "",
    "Flags",
    ...columns([...command.flags, ...GLOBAL_FLAGS].map(flagRow)),
  ];
  if (command.takesSettings) {
    lines.push("", "Settings (flag over variable over config file over default)");
    const { shownSettings } = command;
    for (const setting of Object.values(table)) {
      if (shownSettings && !shownSettings.includes(setting.name)) continue;
      lines.push(`  --${setting.name} ${setting.kind.placeholder}`);
      lines.push(`      ${setting.help}`);
      lines.push(`      default ${setting.shownDefault}; variable ${variableOf(setting)}`);
    }
    if (shownSettings) lines.push("  sluice serve --help lists all others, which are taken too.");
    lines.push(
      "",
      'The config file is JSON, such as {"http-port": 7000}: $XDG_CONFIG_HOME/sluice/config.json,',
    );
    lines.push("or the file that --config or SLUICE_CONFIG names.");
  }
  lines.push("", "Examples", ...columns(command.examples));
  return lines.join("\n");
}

function flagRow(flag: CommandFlag): readonly [string, string] {
  const short = flag.short === undefined ? "    " : `-${flag.short}, `;
  const value = flag.value === undefined ? "" : ` ${flag.value}${flag.isRepeated ? " …" : ""}`;
  return [`${short}--${flag.name}${value}`, flag.help];
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`.trimEnd());
}
