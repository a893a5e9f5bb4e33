import { BROADCAST_COMMAND, RELAY_COMMAND } from "./live-commands.ts";

/** A flag of one command, besides the settings that every command takes. */
export interface CommandFlag {
  readonly name: string;
  readonly short?: string;
  /** The placeholder of its value; absent for a flag without one. */
  readonly value?: string;
  readonly help: string;
  /** It may be given again, for one more value. */
  readonly isRepeated?: boolean;
}

/** One subcommand, as the parser and `--help` see it. */
export interface Command {
  readonly name: CommandName;
  readonly summary: string;
  /** What follows the name in the usage line. */
  readonly operands: string;
  readonly maxOperands: number;
  readonly flags: readonly CommandFlag[];
  readonly takesSettings: boolean;
  /** The settings that its help shows, where it takes all but few change what it does. */
  readonly shownSettings?: readonly string[];
  readonly examples: readonly (readonly [line: string, meaning: string])[];
}

export type CommandName =
  | "serve"
  | "play"
  | "broadcast"
  | "relay"
  | "backup"
  | "restore"
  | "doctor"
  | "token"
  | "account"
  | "version"
  | "help";

/** Flags of every command. */
export const GLOBAL_FLAGS: readonly CommandFlag[] = [
  { name: "help", short: "h", help: "Show help, of a command too" },
  { name: "version", short: "V", help: "Show the version" },
  { name: "config", value: "FILE", help: "Read this config file" },
];

/** Where the records are, and what is told about them. */
const RECORD_SETTINGS = ["data-dir", "store", "log"];

/** All subcommands; the first is taken where none is named. */
export const COMMANDS: readonly Command[] = [
  {
    name: "serve",
    summary: "Start the engine and its HTTP interface (the default)",
    operands: "",
    maxOperands: 0,
    flags: [],
    takesSettings: true,
    examples: [
      ["sluice", "listen on http://127.0.0.1:6878/"],
      ["sluice serve --host 0.0.0.0", "let players of the whole network in"],
      ["sluice serve --cache-limit 50GB --upload-limit 1MB", "more disk, less upload"],
      ["SLUICE_HTTP_PORT=7000 sluice", "the same settings as variables"],
    ],
  },
  {
    name: "play",
    summary: "Play one thing: in a player, to a file or to standard output",
    operands: "<link | magnet | infohash | transport file | url>",
    maxOperands: 1,
    flags: [
      { name: "output", short: "o", value: "FILE", help: "Write to this file, or to standard output with -" },
      {
        name: "player",
        short: "p",
        value: "NAME",
        help: "Play in this player (default: mpv, vlc or ffplay)",
      },
      {
        name: "index",
        short: "i",
        value: "N",
        help: "Which file, counted from 0 (default: the largest that plays)",
      },
      {
        name: "format",
        short: "f",
        value: "raw|ts",
        help: "The file as it is, or remuxed to MPEG-TS (default: raw; streams are always ts)",
      },
    ],
    takesSettings: true,
    examples: [
      ["sluice play 'magnet:?xt=urn:btih:…'", "in the first of mpv, vlc and ffplay that is installed"],
      ["sluice play film.torrent --output film.mkv", "to a file, in playing order"],
      ["sluice play film.torrent --output - | ffprobe -", "to standard output"],
      ["sluice play film.torrent --format ts --player vlc", "remuxed to MPEG-TS, in VLC"],
      ["sluice play 'sluice:?magnet=…'", "a live stream: as it is broadcast, until Ctrl-C"],
    ],
  },
  BROADCAST_COMMAND,
  RELAY_COMMAND,
  {
    name: "doctor",
    summary: "Look what is well and what is not: ports, peers, clock, disk, and why it buffers",
    operands: "",
    maxOperands: 0,
    flags: [
      { name: "json", help: "Write it as JSON" },
      { name: "seen", help: "Ask the DHT nodes where they see us, past bind and proxy too: it shows them" },
    ],
    takesSettings: true,
    shownSettings: ["host", "http-port", "p2p-port", "bind", "proxy", "data-dir"],
    examples: [
      ["sluice doctor", "of the engine that runs; without one, of this machine, in some seconds"],
      ["sluice doctor --json", "the same as /api/diagnosis answers"],
    ],
  },
  {
    name: "token",
    summary: "Show or renew the access token that the control interface asks for",
    operands: "show | renew",
    maxOperands: 1,
    flags: [],
    takesSettings: true,
    shownSettings: ["access-token", ...RECORD_SETTINGS],
    examples: [
      ["sluice token show", "for whoever cannot ask get_api_access_token, which answers to this host alone"],
      ["sluice token renew", "the old one is good for nothing at once, in a running engine too"],
    ],
  },
  {
    name: "account",
    summary: "The accounts that can sign in",
    operands: "add EMAIL | password EMAIL | remove EMAIL | list",
    maxOperands: 2,
    flags: [],
    takesSettings: true,
    shownSettings: [...RECORD_SETTINGS],
    examples: [
      ["sluice account add me@example.org", "asks for the password"],
      ["sluice account password me@example.org < file", "takes the first line"],
    ],
  },
  {
    name: "backup",
    summary: "Write all records, logos and keys of broadcasts to one file, beside a running engine too",
    operands: "<file | ->",
    maxOperands: 1,
    flags: [],
    takesSettings: true,
    shownSettings: [...RECORD_SETTINGS],
    examples: [
      ["sluice backup sluice.backup", "to a file that only you can read: it holds access tokens and keys"],
      ["sluice backup - | gzip > sluice.backup.gz", "to standard output"],
    ],
  },
  {
    name: "restore",
    summary: "Put a backup in the place of all records, while no engine runs",
    operands: "<file>",
    maxOperands: 1,
    flags: [{ name: "force", help: "Replace records that are there; they are kept beside" }],
    takesSettings: true,
    shownSettings: [...RECORD_SETTINGS],
    examples: [
      ["sluice restore sluice.backup", "into a new data folder"],
      ["sluice restore sluice.backup --force", "instead of what is there"],
    ],
  },
  {
    name: "version",
    summary: "Show the version and what it runs on",
    operands: "",
    maxOperands: 0,
    flags: [],
    takesSettings: false,
    examples: [["sluice version", ""]],
  },
  {
    name: "help",
    summary: "Show help, of a command too",
    operands: "[command]",
    maxOperands: 1,
    flags: [],
    takesSettings: false,
    examples: [["sluice help play", ""]],
  },
];
