import { SluiceError } from "../base/errors.ts";
import { unknownVariables } from "../config.ts";
import { type Config, settingsTable } from "../settings.ts";
import { VERSION } from "../version.ts";
import { account } from "./account.ts";
import { type Arguments, parseArguments } from "./args.ts";
import { backup } from "./backup.ts";
import { broadcast } from "./broadcast.ts";
import { COMMANDS, type CommandName } from "./commands.ts";
import type { Context } from "./context.ts";
import { doctor } from "./doctor.ts";
import { foldersOf } from "./folders.ts";
import { commandHelp, generalHelp } from "./help.ts";
import { loadConfig } from "./load-config.ts";
import { createLog } from "./log.ts";
import { play } from "./play.ts";
import { relay } from "./relay.ts";
import { restore } from "./restore.ts";
import { serve } from "./serve.ts";
import { systemTrouble } from "./system-trouble.ts";
import { token } from "./token.ts";
import { usageError } from "./usage.ts";

/** The command line could not be read: what shells and `getopt` programs use. */
const EXIT_USAGE = 2;
const EXIT_FAILURE = 1;

/** Reads the command line, does what it says, and resolves to the exit code. Everything that fails is one clear line. */
export async function run(context: Context): Promise<number> {
  try {
    return await dispatch(context);
  } catch (error) {
    if (!(error instanceof SluiceError)) {
      const trouble = systemTrouble(error);
      if (trouble === undefined) throw error;
      context.stderr.write(`sluice: ${trouble}\n`);
      return EXIT_FAILURE;
    }
    context.stderr.write(`sluice: ${error.message}\n`);
    return error.code === "bad_configuration" ? EXIT_USAGE : EXIT_FAILURE;
  }
}

async function dispatch(context: Context): Promise<number> {
  const folders = foldersOf(context.environment);
  const table = settingsTable(folders);
  const names = Object.values(table).map((setting) => setting.name);
  const args = parseArguments(context.args, names);
  if (args.flags.has("help") || args.command === "help") {
    const topic = topicOf(args, context.args[0]);
    context.stdout.write(`${topic === undefined ? generalHelp() : commandHelp(topic, table)}\n`);
    return 0;
  }
  if (args.flags.has("version") || args.command === "version") {
    context.stdout.write(versionText(context, args.flags.has("version")));
    return 0;
  }
  const config = await loadConfig(table, args, context.environment, folders.configFile);
  const log = logOf(context, config);
  for (const line of unknownVariables(table, context.environment)) log.warn(line);
  switch (args.command) {
    case "play":
      return play(context, config, log, args);
    case "broadcast":
      return broadcast(context, config, log, args);
    case "relay":
      return relay(context, config, log, args);
    case "doctor":
      return doctor(context, config, log, args);
    case "token":
      return token(context, config, log, args);
    case "account":
      return account(context, config, log, args);
    case "backup":
      return backup(context, config, log, args);
    case "restore":
      return restore(context, config, log, args);
    default:
      return serve(context, config, log);
  }
}

/** `sluice help play`, `sluice play --help`, or nothing for the general help. */
function topicOf(args: Arguments, first: string | undefined): CommandName | undefined {
  const word = args.command === "help" ? args.operands[0] : first;
  if (word === undefined || word.startsWith("-") || word === "help") return undefined;
  const command = COMMANDS.find(({ name }) => name === word);
  if (command === undefined) throw usageError(`no help on "${word}"; see sluice --help`);
  return command.name;
}

function versionText({ runtime }: Context, isShort: boolean): string {
  if (isShort) return `${VERSION}\n`;
  return `sluice ${VERSION} (${runtime.name} ${runtime.version}, ${process.platform} ${process.arch})\n`;
}

function logOf({ stderr, environment }: Context, config: Config) {
  // https://no-color.org: a variable that is there and not empty asks for no colours.
  const isWanted = stderr.isTTY === true && (environment.NO_COLOR ?? "") === "";
  return createLog({
    level: config.log,
    colors: config.logColors === "auto" ? isWanted : config.logColors === "always",
    // Over what a progress line left there; the next one comes below.
    write: (line) => void stderr.write(stderr.isTTY === true ? `\r\x1b[2K${line}` : line),
    wallClock: () => new Date(),
  });
}
