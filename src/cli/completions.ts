import type { SettingsTable } from "../settings/settings.ts";
import type { Command, CommandFlag } from "./command.ts";
import { COMMANDS, GLOBAL_FLAGS } from "./commands.ts";

/** A flag as a completion offers it. */
interface Completed {
  readonly name: string;
  readonly short?: string | undefined;
  readonly help: string;
  /** The completion of its value; undefined for a flag without a value. */
  readonly value: "files" | "folders" | "any" | readonly string[] | undefined;
}

/** Returns the completion script of a shell for all commands, flags and settings. */
export function completions(shell: "bash" | "zsh" | "fish", table: SettingsTable): string {
  const settings = Object.values(table).map(({ name, kind, help }) => ({
    name,
    help,
    value: kind.values ?? completionOf(kind.placeholder),
  }));
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](settings);
}

function completed({ name, short, help, value, values }: CommandFlag): Completed {
  return { name, short, help, value: value === undefined ? undefined : (values ?? completionOf(value)) };
}

function completionOf(placeholder: string): "files" | "folders" | "any" {
  if (placeholder === "FILE") return "files";
  return placeholder === "FOLDER" ? "folders" : "any";
}

function flagsOf(command: Command, settings: readonly Completed[]): Completed[] {
  const own = [...command.flags, ...GLOBAL_FLAGS].map(completed);
  if (!command.takesSettings) return own;
  const names = new Set(own.map(({ name }) => name));
  return [...own, ...settings.filter(({ name }) => !names.has(name))];
}

/** The completion of a command's operands. */
function operandsOf({ name, completes }: Command): "files" | readonly string[] {
  return name === "help" ? COMMANDS.map((command) => command.name) : (completes ?? []);
}

function bashScript(settings: readonly Completed[]): string {
  const names = (flag: Completed) => [`--${flag.name}`, ...(flag.short ? [`-${flag.short}`] : [])];
  const cases = COMMANDS.map((command) => {
    const flags = flagsOf(command, settings);
    const operands = operandsOf(command);
    const values = flags
      .filter(({ value }) => value !== undefined)
      .map((flag) => `      ${names(flag).join("|")}) ${bashValue(flag.value!)}; return ;;`);
    const operand = operands === "files" ? bashValue("files") : bashValue(operands);
    return [
      `  ${command.name})`,
      '    case "$previous" in',
      ...values,
      "    esac",
      `    if [[ "$current" == -* ]]; then COMPREPLY=($(compgen -W '${flags.flatMap(names).join(" ")}' -- "$current"))`,
      `    else ${operand}; fi ;;`,
    ].join("\n");
  });
  return `# bash completion of sluice
_sluice() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command=serve
  COMPREPLY=()
  # Bash splits --flag=value at the equals sign.
  if [[ "$current" == "=" ]]; then current=""; fi
  if [[ "$previous" == "=" ]]; then previous="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  if [[ COMP_CWORD -eq 1 && "$current" != -* ]]; then
    COMPREPLY=($(compgen -W '${COMMANDS.map(({ name }) => name).join(" ")}' -- "$current"))
    return
  fi
  if [[ "\${COMP_WORDS[1]}" != -* ]]; then command="\${COMP_WORDS[1]}"; fi
  case "$command" in
${cases.join("\n")}
  esac
}
complete -o filenames -F _sluice sluice
`;
}

function bashValue(value: Completed["value"] & {}): string {
  if (value === "files") return 'COMPREPLY=($(compgen -f -- "$current"))';
  if (value === "folders") return 'COMPREPLY=($(compgen -d -- "$current"))';
  if (value === "any" || value.length === 0) return ":";
  return `COMPREPLY=($(compgen -W '${value.join(" ")}' -- "$current"))`;
}

function zshScript(settings: readonly Completed[]): string {
  const cases = COMMANDS.map((command) => {
    const specs = flagsOf(command, settings).map(zshFlag);
    const operands = operandsOf(command);
    const operand = operands === "files" ? "_files" : `(${operands.join(" ")})`;
    if (operands.length > 0) specs.push(`'1:operand:${operand}'`);
    return [`    ${command.name})`, "      _arguments \\", `        ${specs.join(" \\\n        ")} ;;`].join(
      "\n",
    );
  });
  const commands = COMMANDS.map(({ name, summary }) => `    '${name}:${zshText(summary)}'`);
  return `#compdef sluice
# zsh completion of sluice
_sluice() {
  local -a commands=(
${commands.join("\n")}
  )
  local command=serve
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe command commands
    return
  fi
  if [[ $words[2] != -* ]]; then
    command=$words[2]
    shift words
    (( CURRENT-- ))
  fi
  case $command in
${cases.join("\n")}
  esac
}
if [[ $funcstack[1] == _sluice ]]; then _sluice "$@"; else compdef _sluice sluice; fi
`;
}

function zshFlag({ name, short, help, value }: Completed): string {
  const action =
    value === "files" ? "_files" : value === "folders" ? "_files -/" : value === "any" ? "" : undefined;
  const suffix =
    value === undefined ? "" : `:value:${action ?? `(${(value as readonly string[]).join(" ")})`}`;
  const assign = value === undefined ? "" : "=";
  const text = `[${zshText(help)}]${suffix}`;
  const long = `'--${name}${assign}${text}'`;
  return short === undefined ? long : `'(-${short} --${name})-${short}${text}' ${long}`;
}

/** Escapes the characters that are special in zsh specs and single quotes. */
function zshText(text: string): string {
  return text.replace(/[[\]:\\]/g, "\\$&").replaceAll("'", "'\\''");
}

function fishScript(settings: readonly Completed[]): string {
  const lines = ["# fish completion of sluice", "complete -c sluice -f"];
  const names = COMMANDS.map(({ name }) => name).join(" ");
  for (const { name, summary } of COMMANDS)
    lines.push(
      `complete -c sluice -n "not __fish_seen_subcommand_from ${names}" -a ${name} -d ${fishText(summary)}`,
    );
  for (const command of COMMANDS) {
    const seen = `__fish_seen_subcommand_from ${command.name}`;
    const isDefault = command.name === "serve";
    const condition = isDefault ? `${seen}; or not __fish_seen_subcommand_from ${names}` : seen;
    const operands = operandsOf(command);
    if (operands === "files") lines.push(`complete -c sluice -n "${seen}" -F`);
    else if (operands.length > 0) lines.push(`complete -c sluice -n "${seen}" -a "${operands.join(" ")}"`);
    for (const { name, short, help, value } of flagsOf(command, settings)) {
      const parts = [`complete -c sluice -n "${condition}" -l ${name}`];
      if (short !== undefined) parts.push(`-s ${short}`);
      if (value === "files") parts.push("-r -F");
      else if (value === "folders") parts.push('-x -a "(__fish_complete_directories)"');
      else if (value === "any") parts.push("-x");
      else if (value !== undefined) parts.push(`-x -a "${value.join(" ")}"`);
      lines.push(`${parts.join(" ")} -d ${fishText(help)}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

function fishText(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}
