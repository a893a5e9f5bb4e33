import { nearest } from "../nearest.ts";
import { COMMANDS, type Command, type CommandFlag, type CommandName, GLOBAL_FLAGS } from "./commands.ts";
import { usageError } from "./usage.ts";

/** A command line that has been read: nothing in it is unknown. */
export interface Arguments {
  readonly command: CommandName;
  /** Values of the settings by flag name, such as `http-port`; checked later. */
  readonly settings: ReadonlyMap<string, string>;
  /** The command's own flags and the global ones by name; `true` for a flag without a value. */
  readonly flags: ReadonlyMap<string, string | true>;
  /** All values, in order, of the command's flags that may be given again. */
  readonly lists: ReadonlyMap<string, readonly string[]>;
  readonly operands: readonly string[];
}

/**
 * Reads the arguments after the program's name: `[command] [flags and operands]`. A flag's value follows it or comes
 * after `=`; `--` ends the flags. Throws a usage error that suggests the nearest known word.
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
  // Somebody who gives a link without a command means to play it.
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
