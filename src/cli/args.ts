import { SluiceError } from "../base/errors.ts";
import { nearest } from "../settings/nearest.ts";
import type { Command, CommandFlag, CommandName } from "./command.ts";
import { COMMANDS, GLOBAL_FLAGS } from "./commands.ts";

/** A parsed command line. */
export interface Arguments {
  readonly command: CommandName;
  /** Values of settings by flag name, such as `http-port`; not validated yet. */
  readonly settings: ReadonlyMap<string, string>;
  /** Values of the command's own flags and the global flags; `true` for a flag without a value. */
  readonly flags: ReadonlyMap<string, string | true>;
  /** Values of repeatable flags, in order. */
  readonly lists: ReadonlyMap<string, readonly string[]>;
  readonly operands: readonly string[];
}

/**
 * Parses the arguments after the program name: `[command] [flags and operands]`. The value of a flag follows it or `=`; `--`
 * ends the flags. Throws a usage error that suggests the closest known command or flag.
 */
export function parseArguments(args: readonly string[], settingNames: readonly string[]): Arguments {
  const first = args[0];
  const named = COMMANDS.find((command) => command.name === first);
  if (named === undefined && first !== undefined && !first.startsWith("-")) throw unknownCommand(first);
  const command = named ?? COMMANDS[0]!;
  const settings = new Map<string, string>();
  const flags = new Map<string, string | true>();
  const lists = new Map<string, string[]>();
  const operands: string[] = [];
  const rest = args.slice(named === undefined ? 0 : 1);

  for (let i = 0; i < rest.length; i++) {
    const arg = rest[i]!;
    if (arg === "--") {
      operands.push(...rest.slice(i + 1));
      break;
    }
    if (arg === "-" || !arg.startsWith("-")) {
      operands.push(arg);
      continue;
    }
    const [written, attached] = splitAtEquals(arg);
    const flag = findFlag(written, command, settingNames);
    if (flag.value === undefined) {
      if (attached !== undefined) throw usageError(`--${flag.name} takes no value`);
      flags.set(flag.name, true);
      continue;
    }
    const value = attached ?? rest[++i];
    if (value === undefined || (attached === undefined && /^--./.test(value))) {
      throw usageError(`--${flag.name} needs a value: --${flag.name} ${flag.value}`);
    }
    if (flag.isSetting) settings.set(flag.name, value);
    else if (flag.isRepeated) lists.set(flag.name, [...(lists.get(flag.name) ?? []), value]);
    else flags.set(flag.name, value);
  }
  if (operands.length > command.maxOperands && !flags.has("help")) {
    throw usageError(`${command.name}: unexpected "${operands[command.maxOperands]}"`);
  }
  return { command: command.name, settings, flags, lists, operands };
}

function findFlag(
  written: string,
  command: Command,
  settingNames: readonly string[],
): CommandFlag & { isSetting: boolean } {
  const own = [...command.flags, ...GLOBAL_FLAGS];
  const name = written.replace(/^--?/, "");
  const isShort = !written.startsWith("--");
  const found = own.find((flag) => (isShort ? flag.short === name : flag.name === name));
  if (found !== undefined) return { ...found, isSetting: false };
  const settings = command.takesSettings ? settingNames : [];
  if (!isShort && settings.includes(name)) return { name, value: "VALUE", help: "", isSetting: true };
  const near = nearest(name, [...own.map((flag) => flag.name), ...settings]);
  const hint = near === undefined ? `; see sluice ${command.name} --help` : `; did you mean --${near}?`;
  throw usageError(`unknown flag ${written}${hint}`);
}

function unknownCommand(word: string): Error {
  const near = nearest(
    word,
    COMMANDS.map((command) => command.name),
  );
  // A link without a command is meant to be played.
  const link = /^magnet:|^sluice:|^https?:|\.torrent$|^[0-9a-f]{40}$/i.test(word);
  if (link) return usageError(`unknown command; did you mean: sluice play '${word}'?`);
  return usageError(
    `unknown command "${word}"${near === undefined ? "; see sluice --help" : `; did you mean ${near}?`}`,
  );
}

function splitAtEquals(arg: string): [flag: string, value: string | undefined] {
  const at = arg.indexOf("=");
  return at < 0 ? [arg, undefined] : [arg.slice(0, at), arg.slice(at + 1)];
}

/** An invalid command line; the program exits with 2. The message says what was expected. */
export function usageError(message: string): SluiceError {
  return new SluiceError("bad_configuration", message);
}
