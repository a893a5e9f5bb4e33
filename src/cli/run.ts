import type { LogRing } from "../activity/log-ring.ts";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { describeSettings, unknownVariables } from "../settings/config.ts";
import { type Config, type SettingsTable, settingsTable } from "../settings/settings.ts";
import { VERSION } from "../settings/version.ts";
import { type Arguments, parseArguments, usageError } from "./args.ts";
import type { CommandName } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { completions } from "./completions.ts";
import type { Context } from "./context.ts";
import { commandHelp, generalHelp, settingsText } from "./help.ts";
import { configFrom, configSources, foldersOf } from "./load-config.ts";
import { createLog } from "./log.ts";
import { manPage } from "./man-page.ts";
import { systemError } from "./system-error.ts";

/** Exit codes; `help.ts` documents them. */
const EXIT_FAILURE = 1;
const EXIT_USAGE = 2;

/** Runs the command line and resolves to the exit code. Every expected failure is one line on standard error. */
export async function run(context: Context): Promise<number> {
  let config: Config | undefined;
  try {
    const folders = foldersOf(context.environment);
    const table = settingsTable(folders);
    const args = parseArguments(
      context.args,
      Object.values(table).map(({ name }) => name),
    );
    if (args.flags.has("help") || args.command === "help") {
      const topic = topicOf(args, context.args[0]);
      context.stdout.write(`${topic === undefined ? generalHelp() : commandHelp(topic, table)}\n`);
      return 0;
    }
    const text = textOf(context, args, table);
    if (text !== undefined) {
      context.stdout.write(text);
      return 0;
    }
    const readSources = () => configSources(args, context.environment, folders.configFile);
    const sources = await readSources();
    if (args.command === "settings") {
      context.stdout.write(settingsText(describeSettings(table, sources), args.flags.has("json")));
      return 0;
    }
    const started = configFrom(table, sources);
    config = started;
    const log = logOf(context, () => started);
    for (const line of unknownVariables(table, context.environment)) log.warn(line);
    if (args.command !== "serve") return await runCommand(context, config, log, args);
    const path = sources.file?.path ?? folders.configFile;
    const { serve } = await import("./serve.ts");
    return await serve(context, config, args, {
      ...{ table, sources: readSources, path },
      logOf: (running, ring) => logOf(context, running, ring),
    });
  } catch (error) {
    const message = failureText(error, config?.dataDir);
    if (message === undefined) throw error;
    context.stderr.write(`sluice: ${message}\n`);
    return error instanceof SluiceError && error.code === "bad_configuration" ? EXIT_USAGE : EXIT_FAILURE;
  }
}

/** Returns the line to print for a failure; undefined for a bug. */
function failureText(error: unknown, dataDir: string | undefined): string | undefined {
  if (!(error instanceof SluiceError)) return systemError(error, dataDir);
  // The runtime adapter does not name the place.
  if (error.message !== "the disk is full" || dataDir === undefined) return error.message;
  return `the disk of ${dataDir} is full. Free some space, or choose another data folder with --data-dir.`;
}

/** Each command loads its own modules, so that short commands (version, help, completions) do not load the engine. */
async function runCommand(context: Context, config: Config, log: Log, args: Arguments): Promise<number> {
  switch (args.command) {
    case "play":
      return (await import("./play.ts")).play(context, config, log, args);
    case "broadcast":
      return (await import("./broadcast.ts")).broadcast(context, config, log, args);
    case "relay":
      return (await import("./relay.ts")).relay(context, config, log, args);
    case "viewer-page":
      return (await import("./viewer-page.ts")).viewerPage(context, args);
    case "status":
      return (await import("./status.ts")).status(context, config, args);
    case "doctor":
      return (await import("./doctor.ts")).doctor(context, config, log, args);
    case "token":
      return (await import("./access.ts")).token(context, config, log, args);
    case "account":
      return (await import("./access.ts")).account(context, config, log, args);
    case "backup":
      return (await import("./backup.ts")).backup(context, config, log, args);
    case "restore":
      return (await import("./restore.ts")).restore(context, config, log, args);
    case "migrate":
      return (await import("./migrate.ts")).migrate(context, config, log, args);
    default:
      throw new Error(`the command ${args.command} has no implementation`);
  }
}

/** The command of `sluice help play` or `sluice play --help`; undefined for the general help. */
function topicOf(args: Arguments, first: string | undefined): CommandName | undefined {
  const word = args.command === "help" ? args.operands[0] : first;
  if (word === undefined || word.startsWith("-") || word === "help") return undefined;
  const command = COMMANDS.find(({ name }) => name === word);
  if (command === undefined) throw usageError(`help: unknown command "${word}"; see sluice --help`);
  return command.name;
}

/** The output of commands that need no settings; undefined for other commands. */
function textOf(context: Context, args: Arguments, table: SettingsTable): string | undefined {
  if (args.flags.has("version")) return `${VERSION}\n`;
  if (args.command === "version") return versionText(context, args.flags.has("json"));
  if (args.command === "man") return manPage(table);
  if (args.command !== "completions") return undefined;
  const [shell = ""] = args.operands;
  if (shell === "bash" || shell === "zsh" || shell === "fish") return completions(shell, table);
  throw usageError("completions: expected bash, zsh or fish");
}

function versionText({ runtime }: Context, isJson: boolean): string {
  const { platform, arch } = process;
  if (isJson) {
    const facts = {
      version: VERSION,
      runtime: runtime.name,
      runtime_version: runtime.version,
      platform,
      arch,
    };
    return `${JSON.stringify(facts)}\n`;
  }
  return `sluice ${VERSION} (${runtime.name} ${runtime.version}, ${platform} ${arch})\n`;
}

/** Creates the log; its level is always that of the current settings. */
function logOf({ stderr, environment }: Context, current: () => Config, ring?: LogRing) {
  const config = current();
  // https://no-color.org: any value that is not empty turns colors off.
  const isWanted = stderr.isTTY === true && (environment.NO_COLOR ?? "") === "";
  return createLog({
    get level() {
      return current().log;
    },
    get format() {
      return current().logFormat;
    },
    ring,
    colors: config.logColors === "auto" ? isWanted : config.logColors === "always",
    // Overwrites a progress line, which is drawn again below.
    write: (line) => void stderr.write(stderr.isTTY === true ? `\r\x1b[2K${line}` : line),
    wallClock: () => new Date(),
  });
}
