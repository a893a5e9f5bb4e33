import { type SettingsTable, variableOf } from "../settings/settings.ts";
import { VERSION } from "../settings/version.ts";
import type { CommandFlag } from "./command.ts";
import { COMMANDS, GLOBAL_FLAGS } from "./commands.ts";
import { EXIT_CODES, PRECEDENCE, SUMMARY, usageLine } from "./help.ts";

/** Returns the manual page sluice(1) in the man macros of roff. */
export function manPage(table: SettingsTable): string {
  const lines = [
    `.TH SLUICE 1 ${new Date().toISOString().slice(0, 10)} "Sluice ${VERSION}" "User Commands"`,
    ".SH NAME",
    `sluice \\- ${text(SUMMARY.charAt(0).toLowerCase() + SUMMARY.slice(1))}`,
    ".SH SYNOPSIS",
    ".B sluice",
    "[\\fIcommand\\fR] [\\fIflags\\fR]",
    ".SH DESCRIPTION",
    text(`${SUMMARY}.`),
    "Without a command,",
    ".B sluice serve",
    "runs.",
    ".SH COMMANDS",
  ];
  for (const { name, summary, flags, examples } of COMMANDS) {
    lines.push(`.SS ${text(usageLine(name))}`, text(`${summary}.`), ...flags.flatMap(flagLines));
    if (examples.length > 0) lines.push(".PP", "Examples:");
    for (const [line, meaning] of examples)
      lines.push(".TP", `\\fB${text(line)}\\fR`, ...(meaning === "" ? [] : [text(meaning)]));
  }
  lines.push(".SH FLAGS", "All commands take these flags.", ...GLOBAL_FLAGS.flatMap(flagLines));
  lines.push(".SH SETTINGS", text(PRECEDENCE));
  for (const setting of Object.values(table)) {
    const { name, kind, help, shownDefault } = setting;
    lines.push(
      ".TP",
      `\\fB\\-\\-${text(name)}\\fR \\fI${text(kind.placeholder)}\\fR`,
      text(`${help}.`),
      ".br",
    );
    lines.push(text(`Variable ${variableOf(setting)}; default ${shownDefault}.`));
  }
  lines.push(".SH EXIT STATUS");
  for (const [code, meaning] of EXIT_CODES) lines.push(".TP", `\\fB${code}\\fR`, text(`${meaning}.`));
  lines.push(".SH FILES");
  lines.push(".TP", ".I $XDG_CONFIG_HOME/sluice/config.json", "The config file.");
  lines.push(".TP", ".I $XDG_DATA_HOME/sluice", "The data folder: database, keys and cache.");
  return `${lines.join("\n")}\n`;
}

function flagLines({ name, short, value, help }: CommandFlag): string[] {
  const flags = [...(short === undefined ? [] : [`\\fB\\-${short}\\fR`]), `\\fB\\-\\-${text(name)}\\fR`];
  return [
    ".TP",
    `${flags.join(", ")}${value === undefined ? "" : ` \\fI${text(value)}\\fR`}`,
    text(`${help}.`),
  ];
}

/** Escapes a text for roff: backslashes, hyphens, and a dot or quote at the start of a line. */
function text(plain: string): string {
  return plain
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("'", "\\(aq")
    .replaceAll("…", "...")
    .replace(/^([.'])/, "\\&$1");
}
