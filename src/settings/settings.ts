import {
  anyText,
  choice,
  duration,
  formatDuration,
  formatSize,
  hostNames,
  integer,
  ipAddress,
  networkList,
  nodeList,
  onOff,
  originList,
  proxyUrl,
  rate,
  type SettingKind,
  schedule,
  secretText,
  size,
  text,
  trackerList,
} from "./kinds.ts";

/** One setting. Its name is the flag (`--http-port`), the variable (`SLUICE_HTTP_PORT`) and the key in the config file. */
export interface Setting<T> {
  readonly name: string;
  readonly kind: SettingKind<T>;
  readonly default: T;
  /** The default as `--help` and the documentation show it. */
  readonly shownDefault: string;
  /** One line for `--help` and the documentation. */
  readonly help: string;
}

/** All settings, by the name that the code uses. Flags, variables, config keys, help and documentation derive from this table. */
export function settingsTable(folders: { readonly dataDir: string | undefined }) {
  return {
    host: setting(
      "host",
      text("ADDRESS", "an IP address or a name of this machine"),
      "::",
      "Address that the HTTP interface listens on; :: means all networks of this machine, 127.0.0.1 this machine only",
    ),
    httpPort: setting(
      "http-port",
      integer("PORT", 0, 65535),
      6878,
      "Port of the HTTP interface; 0 chooses a free port",
    ),
    tcpApiPort: setting(
      "tcp-api-port",
      integer("PORT", 0, 65535),
      0,
      "Port of the TCP API of older engines, for programs that need it (62062); 0 turns it off",
    ),
    allowedHosts: setting(
      "allowed-hosts",
      hostNames(),
      [],
      "More host names and addresses that requests may use for this engine, such as tv.lan or tv.lan:80",
      "none",
    ),
    intranetNetworks: setting(
      "intranet-networks",
      networkList(),
      [],
      "More networks that count as the local subnet, such as 192.168.0.0/16",
      "none",
    ),
    trustedProxies: setting(
      "trusted-proxies",
      networkList(),
      [],
      "Reverse proxies whose X-Forwarded-For, -Proto and -Host headers are trusted",
      "none",
    ),
    allowedOrigins: setting(
      "allowed-origins",
      originList(),
      [],
      "Other web origins that may call the interface with an access token, such as https://tv.example",
      "none",
    ),
    accessToken: setting(
      "access-token",
      secretText("TOKEN", 32),
      "",
      "Access token of the control interface; if empty, the engine generates one and keeps it",
      "none",
    ),
    googleIssuer: setting(
      "google-issuer",
      anyText("URL"),
      "https://accounts.google.com",
      "Issuer of the ID tokens that are accepted for sign-in",
    ),
    googleAudience: setting(
      "google-audience",
      anyText("CLIENT_ID"),
      "",
      "Required audience of ID tokens; if empty, sign-in with ID tokens is off",
      "none",
    ),
    googleKeysUrl: setting(
      "google-keys-url",
      anyText("URL"),
      "https://www.googleapis.com/oauth2/v3/certs",
      "URL of the public keys of that issuer",
    ),
    privateUrls: setting(
      "private-urls",
      choice("local", "intranet"),
      "local",
      "Which clients may request URLs, trackers and peers at private addresses: only this host, or its network too",
    ),
    maxHttpConnections: setting(
      "max-http-connections",
      integer("COUNT", 8, 65535),
      256,
      "Maximum number of HTTP connections; beyond it, idle and unread connections are closed",
    ),
    p2pHost: setting(
      "p2p-host",
      ipAddress(),
      "::",
      "Address that accepts peer connections; :: means IPv6 and IPv4, or only IPv4 if the system has no IPv6",
    ),
    p2pPort: setting(
      "p2p-port",
      integer("PORT", 0, 65535),
      8621,
      "Port that accepts peer connections (TCP and UDP); 0 chooses a free port",
    ),
    maxConnections: setting(
      "max-connections",
      integer("COUNT", 1, 2000),
      200,
      "Maximum number of peer connections",
    ),
    dataDir: setting(
      "data-dir",
      text("FOLDER", "a writable folder"),
      folders.dataDir ?? "",
      "Folder of the cache, the database and the keys",
      "$XDG_DATA_HOME/sluice",
    ),
    store: setting(
      "store",
      choice("sqlite", "memory"),
      "sqlite",
      "Database for playlists, tokens and accounts; memory keeps nothing after the engine exits",
    ),
    cacheLimit: setting(
      "cache-limit",
      size(),
      20e9,
      "Maximum size of the disk cache, transport files included; 0 turns the disk cache off",
    ),
    memoryLimit: setting(
      "memory-limit",
      size(16 * 2 ** 20),
      16 * 2 ** 20,
      "Memory for pieces that are being downloaded",
    ),
    uploadLimit: setting(
      "upload-limit",
      rate(),
      0,
      "Maximum upload to peers in bytes per second; 0 means no limit",
    ),
    downloadLimit: setting(
      "download-limit",
      rate(),
      0,
      "Maximum download from peers in bytes per second; 0 means no limit",
    ),
    maxSessions: setting(
      "max-sessions",
      integer("COUNT", 1, 10_000),
      256,
      "Maximum number of playback sessions; each player also uses a connection of --max-http-connections",
    ),
    sessionIdle: setting(
      "session-idle",
      duration(1000),
      60_000,
      "Time without player requests after which a session ends",
    ),
    transferIdle: setting(
      "transfer-idle",
      duration(0),
      300_000,
      "Time that content stays open (and is seeded) after its last session ends",
    ),
    peersTimeout: setting("peers-timeout", duration(1000), 60_000, "Maximum time to wait for the first peer"),
    metadataTimeout: setting(
      "metadata-timeout",
      duration(1000),
      60_000,
      "Maximum time to wait for the metadata after the first peer",
    ),
    startTimeout: setting(
      "start-timeout",
      duration(1000),
      60_000,
      "Maximum time to wait for the first data after the metadata",
    ),
    segmentSeconds: setting(
      "segment-seconds",
      integer("SECONDS", 1, 30),
      6,
      "Target duration of an HLS segment; segments start at keyframes",
    ),
    trackers: setting("trackers", trackerList(), [], "Trackers for content whose link names none", "none"),
    dht: setting("dht", onOff(), "on", "Find peers through the DHT, without a tracker"),
    dhtNodes: setting(
      "dht-nodes",
      nodeList(),
      ["router.bittorrent.com:6881", "dht.transmissionbt.com:6881", "dht.libtorrent.org:25401"],
      "DHT bootstrap nodes for the first start; later starts use the nodes they know",
    ),
    lsd: setting("lsd", onOff(), "on", "Find peers on the local network (local service discovery)"),
    utp: setting("utp", onOff(), "on", "Connect to peers over uTP (UDP) if TCP fails or is slower"),
    encryption: setting(
      "encryption",
      choice("allow", "prefer", "require", "off"),
      "allow",
      "Peer encryption: allow connects unencrypted first, prefer connects encrypted first, require and off allow one kind",
    ),
    portMapping: setting(
      "port-mapping",
      onOff(),
      "on",
      "Ask the router to forward the peer port (UPnP, NAT-PMP, PCP)",
    ),
    bind: setting(
      "bind",
      anyText("INTERFACE"),
      "",
      "Interface (such as wg0) or address that carries all peer, tracker and DHT traffic",
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
      "With a proxy, send nothing outside it: traffic that the proxy cannot carry is dropped",
    ),
    portFile: setting(
      "port-file",
      anyText("FILE"),
      "",
      "File with the port that peers must connect to, as VPN programs write it; changes are followed",
      "none",
    ),
    portCommand: setting(
      "port-command",
      anyText("COMMAND"),
      "",
      "Command that prints the port that peers must connect to; runs every minute",
      "none",
    ),
    limitLan: setting("limit-lan", onOff(), "on", "Apply the rate limits on the local network too"),
    schedule: setting(
      "schedule",
      schedule(),
      undefined,
      "Daily period with other rate limits, such as 22:00-06:30 up=0 down=2MB",
      "none",
    ),
    ipFilter: setting(
      "ip-filter",
      anyText("FILE"),
      "",
      "List of blocked addresses (P2P or CIDR format)",
      "none",
    ),
    tracker: setting(
      "tracker-server",
      choice("off", "own", "open"),
      "off",
      "Run a tracker at /announce and on the peer port: for broadcasts of this engine (own) or any content (open)",
    ),
    tuner: setting(
      "tuner",
      onOff(),
      "off",
      "Appear as a network tuner (HDHomeRun) to Plex, Emby, Jellyfin, Kodi and television apps of the local network",
    ),
    recordingsLimit: setting(
      "recordings-limit",
      size(),
      50e9,
      "Disk space of all recordings together; recording stops when it is used",
    ),
    xtream: setting(
      "xtream",
      onOff(),
      "off",
      "Serve the playlist to television apps by the Xtream Codes API, with the accounts of `sluice account`",
    ),
    probe: setting(
      "probe",
      choice("off", "hourly", "daily"),
      "off",
      "Visit each live channel for a few seconds while no player plays, to show which ones work; at most 2 Mbit/s on average",
    ),
    liveWindow: setting(
      "live-window",
      duration(10_000),
      1_800_000,
      "How far back viewers can seek in a live stream",
    ),
    liveLimit: setting(
      "live-limit",
      size(),
      4e9,
      "Maximum disk space for live streams; 0 keeps a shorter window in memory",
    ),
    liveLag: setting(
      "live-lag",
      choice("low", "normal", "safe"),
      "normal",
      "Time to wait for missing live data before skipping it: 2 s (low), 3 s (normal) or 8 s (safe)",
    ),
    lowLatency: setting(
      "low-latency",
      choice("off", "on"),
      "off",
      "Start MPEG-TS players of live streams at the live edge, instead of up to 7 s behind it",
    ),
    transcoder: setting(
      "transcoder",
      choice("builtin", "ffmpeg"),
      "builtin",
      "What converts audio to AAC: the codecs of the engine, or the program ffmpeg of this machine, which knows more codecs",
    ),
    compat: setting(
      "compat",
      choice("document", "deployed"),
      "document",
      "Status names: as documented (prefuf), or as existing players expect them (prebuf)",
    ),
    log: setting("log", choice("silent", "error", "warn", "info", "debug"), "info", "Log level"),
    logColors: setting("log-colors", choice("auto", "always", "never"), "auto", "Colors in the log"),
  } as const;
}

/** Type of {@link settingsTable}. */
export type SettingsTable = ReturnType<typeof settingsTable>;
export type SettingKey = keyof SettingsTable;

/** The values of all settings: sizes in bytes, times in milliseconds, rates in bytes per second. */
export type Config = {
  readonly [K in SettingKey]: SettingsTable[K] extends Setting<infer T> ? T : never;
};

/** Returns the environment variable of a setting: `SLUICE_HTTP_PORT` for `http-port`. */
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
