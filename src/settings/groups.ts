/** Settings that belong together, as the settings page shows them. */
export interface SettingGroup {
  readonly title: string;
  /** Names of settings. */
  readonly names: readonly string[];
  /**
   * Only a client on the engine's own computer may change these: they decide who may use the engine, run programs, or name files
   * of that computer.
   */
  readonly isHostOnly?: boolean;
}

/**
 * Settings that a running engine changes: at once for limits and the log, for what starts later otherwise. All others need a
 * restart, because they are ports, addresses, or parts that open with the engine.
 */
const LIVE_NAMES: ReadonlySet<string> = new Set([
  ...["download-limit", "upload-limit", "limit-lan", "schedule", "log", "cache-limit"],
  ...[
    "max-sessions",
    "max-transfers",
    "session-idle",
    "transfer-idle",
    "start-timeout",
    "peers-timeout",
    "metadata-timeout",
  ],
  ...["segment-seconds", "live-window", "live-lag", "low-latency", "compat", "trackers"],
]);

/**
 * Returns whether a running engine can change a setting from one value to another. The disk cache can change its size, but only
 * a restart turns it on or off.
 */
export function isLive(name: string, before: unknown, after: unknown): boolean {
  return LIVE_NAMES.has(name) && (name !== "cache-limit" || (before !== 0 && after !== 0));
}

/** The last group holds every setting that no other group names. */
const REST = "More";

const GROUPS: readonly SettingGroup[] = [
  {
    title: "Speed and storage",
    names: [
      "download-limit",
      "upload-limit",
      "limit-lan",
      "schedule",
      "cache-limit",
      "recordings-limit",
      "catch-up",
      "catch-up-limit",
      "memory-limit",
      "live-window",
      "live-limit",
    ],
  },
  {
    title: "Playback",
    names: [
      "segment-seconds",
      "probe",
      "live-lag",
      "transcoder",
      "compat",
      "session-idle",
      "transfer-idle",
      "start-timeout",
    ],
  },
  {
    title: "Peers",
    names: [
      "p2p-port",
      "p2p-host",
      "max-connections",
      "port-mapping",
      "encryption",
      "utp",
      "webrtc",
      "ice-servers",
      "dht",
      "dht-nodes",
      "lsd",
      "trackers",
      "tracker-server",
      "viewer-sharing",
      "turn-servers",
      "peers-timeout",
      "metadata-timeout",
    ],
  },
  {
    title: "Access",
    isHostOnly: true,
    names: [
      "host",
      "http-port",
      "max-http-connections",
      "allowed-hosts",
      "intranet-networks",
      "trusted-proxies",
      "allowed-origins",
      "access-token",
      "private-urls",
      "tuner",
      "xtream",
      "casting",
      "dlna",
      "device-interfaces",
      "local-players",
      "google-issuer",
      "google-audience",
      "google-keys-url",
    ],
  },
  {
    title: "VPN, proxy and files",
    isHostOnly: true,
    names: ["bind", "proxy", "proxy-strict", "port-file", "port-command", "ip-filter", "data-dir", "store"],
  },
  {
    title: "Several engines",
    isHostOnly: true,
    names: ["cluster-address", "cluster-proxy", "cache", "link-key", "drain-time"],
  },
  { title: "Log", names: ["log", "log-format", "log-colors"] },
];

/** Groups the names of all settings, in the order of the page. */
export function settingGroups(names: readonly string[]): SettingGroup[] {
  const grouped = new Set(GROUPS.flatMap((group) => group.names));
  const rest = names.filter((name) => !grouped.has(name));
  // A setting without a group is host-only: a new one is safe until its group is chosen.
  return rest.length === 0 ? [...GROUPS] : [...GROUPS, { title: REST, names: rest, isHostOnly: true }];
}
