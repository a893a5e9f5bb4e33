import {
  anyText,
  hostNames,
  networkList,
  originList,
  secretText,
  trackerList,
} from "./access-setting-kinds.ts";
import { nodeList, proxyUrl, schedule } from "./reach-settings.ts";
import {
  choice,
  duration,
  formatDuration,
  formatSize,
  integer,
  onOff,
  rate,
  type SettingKind,
  size,
  text,
} from "./setting-kinds.ts";

/** One setting: the same name as a flag (`--http-port`), a variable (`SLUICE_HTTP_PORT`) and a key of the config file. */
export interface Setting<T> {
  readonly name: string;
  readonly kind: SettingKind<T>;
  readonly default: T;
  /** How the default is written in `--help` and the README. */
  readonly shownDefault: string;
  /** One line for `--help` and the README. */
  readonly help: string;
}

/** Every setting of the program, by the name the code uses. Flags, variables, file keys and help all come from here. */
export function settingsTable(folders: { readonly dataDir: string }) {
  return {
    host: setting(
      "host",
      text("ADDRESS", "an IP address or a name of this machine"),
      "127.0.0.1",
      "Address the HTTP interface listens on; 0.0.0.0 lets the whole network in",
    ),
    httpPort: setting(
      "http-port",
      integer("PORT", 0, 65535),
      6878,
      "Port of the HTTP interface; 0 takes any free one",
    ),
    allowedHosts: setting(
      "allowed-hosts",
      hostNames(),
      [],
      "Further names and addresses by which the interface may be addressed, such as tv.lan or tv.lan:80",
      "none",
    ),
    intranetNetworks: setting(
      "intranet-networks",
      networkList(),
      [],
      "Further networks that count as the same subnet, such as 192.168.0.0/16",
      "none",
    ),
    trustedProxies: setting(
      "trusted-proxies",
      networkList(),
      [],
      "Proxies whose X-Forwarded-For, -Proto and -Host are believed",
      "none",
    ),
    allowedOrigins: setting(
      "allowed-origins",
      originList(),
      [],
      "Pages elsewhere that may call with an access token, such as https://tv.example",
      "none",
    ),
    accessToken: setting(
      "access-token",
      secretText("TOKEN", 32),
      "",
      "The access token; without it one is made and kept",
      "none",
    ),
    googleIssuer: setting(
      "google-issuer",
      anyText("URL"),
      "https://accounts.google.com",
      "Whose ID tokens sign in",
    ),
    googleAudience: setting(
      "google-audience",
      anyText("CLIENT_ID"),
      "",
      "For whom ID tokens must be made; without it nobody signs in by one",
      "none",
    ),
    googleKeysUrl: setting(
      "google-keys-url",
      anyText("URL"),
      "https://www.googleapis.com/oauth2/v3/certs",
      "Where the public keys of that issuer are",
    ),
    privateUrls: setting(
      "private-urls",
      choice("local", "intranet"),
      "local",
      "Who may name URLs, trackers and peers at private addresses: this host alone, or its network too",
    ),
    maxHttpConnections: setting(
      "max-http-connections",
      integer("COUNT", 8, 65535),
      256,
      "HTTP connections at once; of more, idle ones go",
    ),
    p2pHost: setting(
      "p2p-host",
      text("ADDRESS", "an IP address of this machine"),
      "::",
      "Address on which other peers reach us; :: is IPv6 and IPv4, or IPv4 alone where there is no IPv6",
    ),
    p2pPort: setting(
      "p2p-port",
      integer("PORT", 0, 65535),
      8621,
      "Port on which other peers reach us; 0 takes any free one",
    ),
    maxConnections: setting("max-connections", integer("COUNT", 1, 2000), 200, "Peer connections at once"),
    dataDir: setting(
      "data-dir",
      text("FOLDER", "a folder that can be written to"),
      folders.dataDir,
      "Where the cache and the records are kept",
      "$XDG_DATA_HOME/sluice",
    ),
    store: setting(
      "store",
      choice("sqlite", "deno-kv", "memory"),
      "sqlite",
      "Where playlists, tokens and accounts are kept; memory forgets them at the end",
    ),
    cacheLimit: setting("cache-limit", size(), 20e9, "Disk the cache may take; 0 keeps nothing on disk"),
    memoryLimit: setting("memory-limit", size(16 * 2 ** 20), 16 * 2 ** 20, "Memory for pieces on their way"),
    uploadLimit: setting("upload-limit", rate(), 0, "Upload to peers, bytes a second; 0 for no limit"),
    downloadLimit: setting(
      "download-limit",
      rate(),
      0,
      "Download from peers, bytes a second; 0 for no limit",
    ),
    sessionIdle: setting(
      "session-idle",
      duration(1000),
      60_000,
      "A session that no player reads for so long ends",
    ),
    transferIdle: setting(
      "transfer-idle",
      duration(0),
      300_000,
      "Content without sessions is kept open so long, to seed and for those who come back",
    ),
    peersTimeout: setting("peers-timeout", duration(1000), 60_000, "How long a start waits for a first peer"),
    metadataTimeout: setting(
      "metadata-timeout",
      duration(1000),
      60_000,
      "How long a start then waits for the description of the content",
    ),
    startTimeout: setting("start-timeout", duration(1000), 60_000, "How long a start then waits for data"),
    segmentSeconds: setting(
      "segment-seconds",
      integer("SECONDS", 1, 30),
      6,
      "Wished length of an HLS segment; cuts are made at keyframes",
    ),
    trackers: setting(
      "trackers",
      trackerList(),
      [],
      "Trackers to ask for content whose link names none",
      "none",
    ),
    dht: setting("dht", onOff(), "on", "Finds peers by the DHT, without any tracker"),
    dhtNodes: setting(
      "dht-nodes",
      nodeList(),
      ["router.bittorrent.com:6881", "dht.transmissionbt.com:6881", "dht.libtorrent.org:25401"],
      "Nodes by which a first start finds the DHT; later ones know others",
    ),
    lsd: setting("lsd", onOff(), "on", "Finds peers in the same network, without any server"),
    utp: setting("utp", onOff(), "on", "Reaches peers over uTP (UDP) where TCP does not, or later"),
    encryption: setting(
      "encryption",
      choice("allow", "prefer", "require", "off"),
      "allow",
      "How peers are called: allow begins in the clear, prefer encrypted, require knows nothing else",
    ),
    portMapping: setting(
      "port-mapping",
      onOff(),
      "on",
      "Asks the router to let peers in (UPnP, NAT-PMP, PCP)",
    ),
    bind: setting(
      "bind",
      anyText("INTERFACE"),
      "",
      "Interface (such as wg0) or address that all peer, tracker and DHT traffic stays on",
      "any",
    ),
    proxy: setting(
      "proxy",
      proxyUrl(),
      "",
      "Proxy for peers and trackers: socks5://[user:password@]host:port or http://…",
      "none",
    ),
    proxyStrict: setting(
      "proxy-strict",
      onOff(),
      "on",
      "With a proxy, nothing goes around it: what it cannot carry is not sent",
    ),
    portFile: setting(
      "port-file",
      anyText("FILE"),
      "",
      "File that holds the port others reach us at, as VPN programs write it; followed while it changes",
      "none",
    ),
    portCommand: setting(
      "port-command",
      anyText("COMMAND"),
      "",
      "Command that prints that port, asked again each minute",
      "none",
    ),
    limitLan: setting("limit-lan", onOff(), "on", "Whether rate limits hold in the own network too"),
    schedule: setting(
      "schedule",
      schedule(),
      undefined,
      "Other rate limits at other times, such as 22:00-06:30 up=0 down=2MB",
      "none",
    ),
    ipFilter: setting(
      "ip-filter",
      anyText("FILE"),
      "",
      "List of addresses that are never talked to (P2P or CIDR form)",
      "none",
    ),
    tracker: setting(
      "tracker-server",
      choice("off", "own", "open"),
      "off",
      "Answers announces at /announce and on the P2P port: for our own broadcasts, or for everything",
    ),
    liveWindow: setting(
      "live-window",
      duration(10_000),
      1_800_000,
      "How much of a live stream is kept to go back to",
    ),
    liveLimit: setting(
      "live-limit",
      size(),
      4e9,
      "Disk that the kept parts of live streams may take; 0 keeps them in memory, and less of them",
    ),
    liveLag: setting(
      "live-lag",
      choice("low", "normal", "safe"),
      "normal",
      "What is missing of a live stream is waited for 2, 3 or 8 s before it is skipped",
    ),
    compat: setting(
      "compat",
      choice("document", "deployed"),
      "document",
      "Words of the status: as documented (prefuf), or as deployed players know them (prebuf)",
    ),
    log: setting("log", choice("silent", "error", "warn", "info", "debug"), "info", "How much is said"),
    logColors: setting("log-colors", choice("auto", "always", "never"), "auto", "Colours in the log"),
  } as const;
}

/** The table as a type: the code's names, and the type of each value. */
export type SettingsTable = ReturnType<typeof settingsTable>;
export type SettingKey = keyof SettingsTable;

/** The values of all settings: sizes in bytes, times in milliseconds, rates in bytes a second. */
export type Config = {
  readonly [K in SettingKey]: SettingsTable[K] extends Setting<infer T> ? T : never;
};

/** The variable of a setting: `http-port` is `SLUICE_HTTP_PORT`. */
export function variableOf(setting: { readonly name: string }): string {
  return `SLUICE_${setting.name.toUpperCase().replaceAll("-", "_")}`;
}

function setting<T>(
  name: string,
  kind: SettingKind<T>,
  defaultValue: NoInfer<T>,
  help: string,
  shownDefault = show(kind, defaultValue),
): Setting<T> {
  return { name, kind, default: defaultValue, shownDefault, help };
}

function show(kind: SettingKind<unknown>, value: unknown): string {
  if (kind.placeholder === "SIZE" && typeof value === "number") return formatSize(value);
  if (kind.placeholder === "TIME" && typeof value === "number") return formatDuration(value);
  return String(value);
}
