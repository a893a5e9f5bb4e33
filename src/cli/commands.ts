/** A flag of a command. Most commands also take every setting as a flag. */
export interface CommandFlag {
  readonly name: string;
  readonly short?: string;
  /** Placeholder of its value; absent for a flag without a value. */
  readonly value?: string;
  /** All accepted values, for completion. */
  readonly values?: readonly string[];
  readonly help: string;
  /** May be given more than once. */
  readonly isRepeated?: boolean;
}

/** A subcommand, as the parser, the help, the man page and the shell completions use it. */
export interface Command {
  readonly name: CommandName;
  readonly summary: string;
  /** The operands in the usage line. */
  readonly operands: string;
  readonly maxOperands: number;
  /** Completion of the first operand: `files`, or these words. */
  readonly completes?: "files" | readonly string[];
  readonly flags: readonly CommandFlag[];
  readonly takesSettings: boolean;
  /** The settings that its help lists; `sluice settings` lists all. */
  readonly shownSettings?: readonly string[];
  readonly examples: readonly (readonly [line: string, meaning: string])[];
}

export type CommandName =
  | "serve"
  | "play"
  | "broadcast"
  | "relay"
  | "doctor"
  | "settings"
  | "token"
  | "account"
  | "backup"
  | "restore"
  | "completions"
  | "man"
  | "version"
  | "help";

/** Flags of every command. */
export const GLOBAL_FLAGS: readonly CommandFlag[] = [
  { name: "help", short: "h", help: "Show the help of the program or of a command" },
  { name: "version", short: "V", help: "Show the version" },
  { name: "config", value: "FILE", help: "Read this config file" },
];

const JSON_FLAG: CommandFlag = { name: "json", help: "Write the result as JSON" };

/** Settings that matter to commands that only use the database. */
const DATABASE_SETTINGS = ["data-dir", "store", "log"];
/** Settings that matter to broadcasts and relays. */
const LIVE_SETTINGS = ["upload-limit", "p2p-host", "p2p-port", "max-connections", "data-dir", "log"];

const CONTENT = "<link | magnet | infohash | transport file | url>";

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
  {
    name: "play",
    summary: "Play content in a player, or write it to a file or standard output",
    operands: CONTENT,
    maxOperands: 1,
    completes: "files",
    flags: [
      {
        name: "output",
        short: "o",
        value: "FILE",
        help: "Write to this file, or to standard output if it is -",
      },
      {
        name: "player",
        short: "p",
        value: "NAME",
        values: ["mpv", "vlc", "ffplay"],
        help: "Play in this player (default: the first of mpv, vlc and ffplay that is installed)",
      },
      {
        name: "index",
        short: "i",
        value: "N",
        help: "Play the file with this index, counted from 0 (default: the largest playable file, or all parts of a series)",
      },
      {
        name: "format",
        short: "f",
        value: "raw|ts",
        values: ["raw", "ts"],
        help: "The file as it is, or remuxed to MPEG-TS (default: raw; live streams are always ts)",
      },
      { name: "list", help: "List the files of the content instead of playing it" },
      { name: "json", help: "Write the list, or the progress on standard error, as lines of JSON" },
    ],
    takesSettings: true,
    shownSettings: ["peers-timeout", "p2p-port", "upload-limit", "download-limit", "bind", "proxy", "log"],
    examples: [
      ["sluice play 'magnet:?xt=urn:btih:…'", "in the first installed player"],
      ["sluice play film.torrent --output film.mkv", "to a file, in playback order"],
      ["sluice play film.torrent --output - | ffprobe -", "to standard output"],
      ["sluice play film.torrent --format ts --player vlc", "remuxed to MPEG-TS, in VLC"],
      ["sluice play 'sluice:?magnet=…'", "a live stream, until Ctrl-C"],
    ],
  },
  {
    name: "broadcast",
    summary: "Broadcast a live stream to all viewers that have its link",
    operands: "<file | url | udp://… | rtmp://… | ->",
    maxOperands: 1,
    completes: "files",
    flags: [
      { name: "test-pattern", help: "Broadcast a generated test pattern with a clock" },
      {
        name: "name",
        value: "NAME",
        help: "Name of the stream; the same name keeps its key, link and port at every start",
      },
      { name: "title", value: "TEXT", help: "Title that viewers see (default: the name)" },
      { name: "description", value: "TEXT", help: "Description that viewers see" },
      { name: "category", value: "WORD", isRepeated: true, help: "Category, such as sport; repeatable" },
      {
        name: "language",
        value: "CODE",
        isRepeated: true,
        help: "Language as three letters, such as eng; repeatable",
      },
      {
        name: "country",
        value: "CODE",
        isRepeated: true,
        help: "Country as two letters, such as us; repeatable",
      },
      { name: "logo", value: "URL", help: "Logo for channel lists" },
      {
        name: "tracker",
        value: "URL",
        isRepeated: true,
        help: "Tracker through which viewers find each other; repeatable",
      },
      {
        name: "address",
        value: "HOST:PORT",
        isRepeated: true,
        help: "Public address of this machine's peer port, added to the link; repeatable",
      },
      {
        name: "relay",
        value: "HOST:PORT",
        isRepeated: true,
        help: "Relay of this stream that viewers can use (see sluice relay); repeatable",
      },
      {
        name: "relay-pass",
        value: "FILE",
        help: "Write a pass for a relay of the stream --name, and end: with it, the relay proves its role",
      },
      { name: "private", help: "Serve only the relays; viewers receive the stream from them" },
      {
        name: "hls",
        value: "URL",
        isRepeated: true,
        help: "HLS copy of the stream: viewers load from it what peers deliver too late; repeatable",
      },
      {
        name: "bitrate",
        value: "RATE",
        help: "Maximum bit rate of the stream, such as 8Mbit (default: measured for 3 s)",
      },
      { name: "loop", help: "Start a file again when it ends" },
      {
        name: "standby",
        help: "Go on air only while no other machine with the same key is on air",
      },
      {
        name: "rotate",
        help: "Replace the key: a new link; viewers of the old one are sent there for 30 days while this runs",
      },
      {
        name: "successor",
        value: "FILE",
        help: "Transport file of the stream that replaces this one: tells viewers, and revokes the key of this one",
      },
      { name: "json", help: "Write the names of the stream, or the list, as one line of JSON" },
      { name: "list", help: "List the broadcasts in the data folder" },
    ],
    takesSettings: true,
    shownSettings: ["host", "http-port", "tracker-server", ...LIVE_SETTINGS],
    examples: [
      ["sluice broadcast --test-pattern", "try it: watch the link that it prints on any machine"],
      ["ffmpeg … -f mpegts - | sluice broadcast - --name news", "anything that ffmpeg can read"],
      ["sluice broadcast film.ts --loop --title 'All day'", "an MPEG-TS file, in a loop"],
      ["sluice broadcast udp://@239.1.1.1:1234", "a multicast group of this network"],
      [
        "sluice broadcast rtmp://0.0.0.0:1935/live --name show",
        "receives from OBS; prints server and stream key",
      ],
      [
        "sluice broadcast udp://@:1234 --name news --standby",
        "the second of two machines: takes over in 3 s",
      ],
      ["sluice broadcast --list", "names and infohashes of the broadcasts in the data folder"],
    ],
  },
  {
    name: "relay",
    summary: "Relay a live stream to its viewers",
    operands: CONTENT,
    maxOperands: 1,
    completes: "files",
    flags: [
      {
        name: "pass",
        value: "FILE",
        help: "Pass of the broadcaster (see sluice broadcast --relay-pass): viewers prefer the relay without being told its address",
      },
      { name: "json", help: "Write the addresses of the relay as one line of JSON" },
    ],
    takesSettings: true,
    shownSettings: ["live-window", "live-limit", ...LIVE_SETTINGS],
    examples: [
      ["sluice relay 'sluice:?magnet=…'", "until Ctrl-C; prints the address to give to the source"],
      ["sluice relay news.sluice --upload-limit 20MB --live-window 2h", "viewers can seek back two hours"],
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
