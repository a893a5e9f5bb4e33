import { type Command, type CommandFlag, type CommandName, JSON_FLAG } from "./command.ts";
import { CONTENT_COMMANDS } from "./content-commands.ts";

/** Flags of every command. */
export const GLOBAL_FLAGS: readonly CommandFlag[] = [
  { name: "help", short: "h", help: "Show the help of the program or of a command" },
  { name: "version", short: "V", help: "Show the version" },
  { name: "config", value: "FILE", help: "Read this config file" },
];

/** Settings that matter to commands that only use the database. */
const DATABASE_SETTINGS = ["data-dir", "store", "log"];

/** All subcommands; `serve` is the default. */
export const COMMANDS: readonly Command[] = [
  {
    name: "serve",
    summary: "Start the engine and its HTTP interface (the default command)",
    operands: "",
    maxOperands: 0,
    flags: [{ name: "json", help: "Write the addresses as one line of JSON instead of the banner" }],
    takesSettings: true,
    shownSettings: [
      ...["host", "http-port", "p2p-port", "data-dir", "cache-limit", "upload-limit", "download-limit"],
      ...["bind", "proxy", "log"],
    ],
    examples: [
      ["sluice", "listen on http://127.0.0.1:6878/"],
      ["sluice serve --host 127.0.0.1", "accept players of this machine only"],
      ["sluice serve --cache-limit 50GB --upload-limit 1MB", "more disk, less upload"],
      ["SLUICE_HTTP_PORT=7000 sluice", "a setting as a variable"],
    ],
  },
  ...CONTENT_COMMANDS,
  {
    name: "status",
    summary: "Show whether the running engine can serve players, for scripts and health checks",
    operands: "",
    maxOperands: 0,
    flags: [JSON_FLAG],
    takesSettings: true,
    shownSettings: ["host", "http-port"],
    examples: [
      ["sluice status", "exit code 0 if it is ready, 1 if a check fails, 3 if no engine answers"],
      ["sluice status --json", "the same data as /readyz"],
    ],
  },
  {
    name: "doctor",
    summary: "Check ports, peers, clock, disk and settings, and explain buffering",
    operands: "",
    maxOperands: 0,
    flags: [
      JSON_FLAG,
      {
        name: "seen",
        help: "Ask DHT nodes which address they see. This bypasses bind and proxy, and reveals this machine",
      },
    ],
    takesSettings: true,
    shownSettings: ["host", "http-port", "p2p-port", "bind", "proxy", "data-dir"],
    examples: [
      ["sluice doctor", "check the running engine, or this machine if none runs"],
      ["sluice doctor --json", "the same data as /api/diagnosis"],
    ],
  },
  {
    name: "settings",
    summary: "List all settings with their values, defaults and variables",
    operands: "",
    maxOperands: 0,
    flags: [JSON_FLAG],
    takesSettings: true,
    shownSettings: [],
    examples: [
      ["sluice settings", "every flag, variable and config key"],
      ["sluice settings --json", "for scripts"],
    ],
  },
  {
    name: "token",
    summary: "Show or renew the access token of the control interface",
    operands: "show | renew",
    maxOperands: 1,
    completes: ["show", "renew"],
    flags: [JSON_FLAG],
    takesSettings: true,
    shownSettings: ["access-token", ...DATABASE_SETTINGS],
    examples: [
      ["sluice token show", "for clients on other machines, which cannot call get_api_access_token"],
      ["sluice token renew", "the old token stops working at once, also in a running engine"],
    ],
  },
  {
    name: "account",
    summary: "Manage the accounts that can sign in",
    operands: "add EMAIL | password EMAIL | limit EMAIL | remove EMAIL | list",
    maxOperands: 2,
    completes: ["add", "password", "limit", "remove", "list"],
    flags: [
      {
        name: "streams",
        value: "N",
        help: "limit: streams at the same time with --xtream; default: any number",
      },
      {
        name: "group",
        value: "NAME",
        isRepeated: true,
        help: "limit: only this category or tag with --xtream; repeat it for more",
      },
      JSON_FLAG,
    ],
    takesSettings: true,
    shownSettings: DATABASE_SETTINGS,
    examples: [
      ["sluice account add me@example.org", "prompts for the password"],
      ["sluice account password me@example.org < file", "reads the password from the first line"],
      ["sluice account limit me@example.org --streams 2 --group News --group Sport", "replaces its limits"],
      ["sluice account list --json", "a JSON array of addresses"],
    ],
  },
  {
    name: "backup",
    summary: "Write the database, logos and broadcast keys to a file; the engine may be running",
    operands: "<file | ->",
    maxOperands: 1,
    completes: "files",
    flags: [JSON_FLAG],
    takesSettings: true,
    shownSettings: DATABASE_SETTINGS,
    examples: [
      ["sluice backup sluice.backup", "readable only by you: it contains access tokens and keys"],
      ["sluice backup - | gzip > sluice.backup.gz", "to standard output"],
    ],
  },
  {
    name: "restore",
    summary: "Replace the database with a backup; the engine must not be running",
    operands: "<file>",
    maxOperands: 1,
    completes: "files",
    flags: [{ name: "force", help: "Replace an existing database; a copy of it is kept" }, JSON_FLAG],
    takesSettings: true,
    shownSettings: DATABASE_SETTINGS,
    examples: [
      ["sluice restore sluice.backup", "into a new data folder"],
      ["sluice restore sluice.backup --force", "replace the existing database"],
    ],
  },
  {
    name: "migrate",
    summary: "Copy the database to another store, and compare both; the engine must not be running",
    operands: "",
    maxOperands: 0,
    flags: [
      { name: "from", value: "STORE", help: "Store to read: sqlite, or the URL of a Redis or Valkey server" },
      { name: "to", value: "STORE", help: "Store to write: the same" },
      { name: "force", help: "Replace the records of a store that already has some" },
      JSON_FLAG,
    ],
    takesSettings: true,
    shownSettings: ["data-dir", "log"],
    examples: [
      [
        "sluice migrate --from sqlite --to redis://127.0.0.1:6379",
        "to a server; continues if it was interrupted",
      ],
      ["sluice migrate --from redis://127.0.0.1:6379 --to sqlite", "back to a file"],
    ],
  },
  {
    name: "completions",
    summary: "Write the completion script of a shell",
    operands: "bash | zsh | fish",
    maxOperands: 1,
    completes: ["bash", "zsh", "fish"],
    flags: [],
    takesSettings: false,
    examples: [
      ["source <(sluice completions bash)", "for this bash session"],
      ["sluice completions zsh > ~/.zfunc/_sluice", "zsh, if ~/.zfunc is in fpath"],
      ["sluice completions fish > ~/.config/fish/completions/sluice.fish", "fish"],
    ],
  },
  {
    name: "man",
    summary: "Write the manual page (roff)",
    operands: "",
    maxOperands: 0,
    flags: [],
    takesSettings: false,
    examples: [["sluice man | man -l -", "read it"]],
  },
  {
    name: "version",
    summary: "Show the version and the runtime",
    operands: "",
    maxOperands: 0,
    flags: [JSON_FLAG],
    takesSettings: false,
    examples: [["sluice version", ""]],
  },
  {
    name: "help",
    summary: "Show the help of the program or of a command",
    operands: "[command]",
    maxOperands: 1,
    flags: [],
    takesSettings: false,
    examples: [["sluice help play", ""]],
  },
];

/** Returns the command of this name. */
export function commandOf(name: CommandName): Command {
  return COMMANDS.find((command) => command.name === name)!;
}
