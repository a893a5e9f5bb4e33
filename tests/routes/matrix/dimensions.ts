import { canonicalAddress } from "../../../src/base/address.ts";
import type { RequestOrigin } from "../../../src/runtime/contract.ts";
import { INTERFACE_METHODS } from "../interface-methods.ts";

/** The target of a request. `kind` is its row in the oracle. */
export interface Target {
  readonly name: string;
  readonly path: string;
  readonly isMethod: boolean;
  readonly kind: TargetKind;
}

/**
 * `key`: returns the token; `private`: needs the token; `switch`: needs the token and a client of this host; `closed`: a public
 * method for same-origin pages only; `open`: a public method for all pages; `media`: a route for all pages; `own`: a route for
 * same-origin pages only; `static`: the same response for all users.
 */
export type TargetKind = "key" | "switch" | "private" | "closed" | "open" | "media" | "own" | "static";

/** Public methods without user data in their responses, which pages of other sites may call. */
const OPEN_METHODS: ReadonlySet<string> = new Set([
  "get_media_files",
  "get_content_id",
  "analyze_content",
  "analyze_content_multi",
  "get_status",
  "get_network_connection_status",
]);

const CONTENT = "a".repeat(40);
const SESSION = `${CONTENT}/${"b".repeat(32)}`;

const ROUTES: readonly (readonly [kind: TargetKind, path: string])[] = [
  ["media", "/ace/getstream"],
  ["media", "/ace/manifest.m3u8"],
  ["media", "/hls/manifest.m3u8"],
  ["media", `/ace/m/${SESSION}.m3u8`],
  ["media", `/ace/r/${SESSION}`],
  ["media", `/content/${SESSION}`],
  ["media", `/ace/c/${CONTENT}/0.ts`],
  ["media", `/live/${CONTENT}/x`],
  ["media", `/vod/${CONTENT}/0/x`],
  ["media", `/ace/stat/${SESSION}`],
  ["media", `/ace/cmd/${SESSION}?method=stop`],
  ["media", `/ace/event/${SESSION}`],
  ["media", `/files/${CONTENT}/x`],
  ["media", "/play/infohash/x"],
  ["open", "/webui/api/service?method=get_version"],
  ["own", "/webui/api/service?method=get_public_user_key"],
  ["open", "/server/api/get_status?api_version=1"],
  ["private", "/server/api/playlist_get?api_version=1"],
  ["key", "/server/api/get_api_access_token?api_version=1"],
  ["own", "/play/1/1"],
  ["own", "/playlist/get"],
  ["own", "/playlist/1.m3u"],
  ["own", "/search?query=a"],
  ["own", `/image/${CONTENT}`],
  ["own", "/openapi.json"],
  ["own", "/app/content/x"],
  ["own", "/nothing"],
  // For televisions: exports and the guide, the tuner, Xtream Codes, catch-up, recordings, DLNA.
  ["own", "/tv"],
  ["own", "/tv/kodi"],
  ["own", "/epg.xml"],
  ["own", "/epg.xml.gz"],
  ["own", "/guide/1-1700000000.ics"],
  ["own", "/discover.json"],
  ["own", "/lineup.json"],
  ["own", "/lineup_status.json"],
  ["own", "/lineup.post?scan=start"],
  ["own", "/auto/v1"],
  ["own", "/player_api.php?username=a@b.example&password=c"],
  ["own", "/get.php?username=a@b.example&password=c"],
  ["own", "/xmltv.php?username=a@b.example&password=c"],
  ["own", "/live/a@b.example/c/1.ts"],
  ["own", "/movie/a@b.example/c/1.mp4"],
  ["own", "/a@b.example/c/1"],
  ["own", "/timeshift/a@b.example/c/60/2026-11-23:20-15/1.ts"],
  ["own", "/streaming/timeshift.php?username=a@b.example&password=c&stream=1"],
  ["own", "/catch-up/1.ts?utc=1700000000&duration=60"],
  ["own", "/catch-up/1.m3u8?utc=1700000000&duration=60"],
  ["own", "/catch-up/1/1/0-188.ts"],
  ["own", "/recordings/1.ts"],
  ["own", "/recordings/1.mkv"],
  ["own", "/recordings/1.m3u8"],
  ["own", "/recordings/1/188/0.ts"],
  ["own", "/dlna/description.xml"],
  ["own", "/dlna/control/ContentDirectory"],
  ["own", "/dlna/media/item-1.ts"],
  ["static", "/docs"],
  ["static", "/"],
];

const METHODS_FOR_TELEVISIONS = [
  ...["epg_source_get_list", "epg_source_add", "epg_source_update", "epg_source_delete"],
  ...["get_epg_match", "get_epg_review", "set_epg_match", "search_epg"],
  ...["get_channel_sources", "set_channel_sources", "catch_up_list", "catch_up_set"],
  ...["recording_list", "recording_add", "recording_stop", "recording_convert", "recording_delete"],
  ...["recording_series_list", "recording_series_add", "recording_series_delete"],
];

/** Methods that extend the interface. */
const OWN_METHODS: readonly (readonly [name: string, kind: TargetKind])[] = [
  ["get_server_settings", "private"],
  ["broadcast_start", "switch"],
  ["broadcast_stop", "switch"],
  ["broadcast_list", "private"],
  ["broadcast_get_status", "private"],
  ...METHODS_FOR_TELEVISIONS.map((name) => [name, "private"] as const),
];

/** All 38 methods of the interface, extensions, and every family of routes, also those that are off by default. */
export const TARGETS: readonly Target[] = [
  ...INTERFACE_METHODS.map(({ name, isPublic, isRemote }): Target => {
    const open = OPEN_METHODS.has(name) ? "open" : "closed";
    const kind = isPublic ? (isRemote ? open : "key") : isRemote ? "private" : "switch";
    return { name, path: `/server/api?method=${name}`, isMethod: true, kind };
  }),
  ...OWN_METHODS.map(
    ([name, kind]): Target => ({ name, path: `/server/api?method=${name}`, isMethod: true, kind }),
  ),
  ...ROUTES.map(
    ([kind, path]): Target => ({ name: path, path, isMethod: /^\/(webui|server)/.test(path), kind }),
  ),
];

export type Where = "local" | "intranet" | "internet";

/** A client: its address, the local address that it connects to, and the network class that the interface assigns to it. */
export interface AddressClass {
  readonly name: string;
  readonly where: Where;
  readonly origin: RequestOrigin;
  /** The local address as it is written in a URL. */
  readonly written: string;
}

const NETWORKS = [
  { host: "127.0.0.1", bits: 8 },
  { host: "::1", bits: 128 },
  { host: "192.168.1.2", bits: 24 },
  { host: "2001:db8:1:2::2", bits: 64 },
  { host: "fd00:1::2", bits: 64 },
  { host: "fe80::2", bits: 64 },
  { host: "10.0.0.2", bits: 30 },
];

const ADDRESSES: readonly (readonly [name: string, where: Where, remote: string, local: string])[] = [
  ["loopback v4", "local", "127.0.0.1", "127.0.0.1"],
  ["loopback v4, another", "local", "127.200.3.4", "127.0.0.1"],
  ["loopback v6", "local", "::1", "::1"],
  ["loopback, mapped", "local", "::ffff:127.0.0.1", "::ffff:127.0.0.1"],
  ["this host by its address", "local", "192.168.1.2", "192.168.1.2"],
  ["same subnet v4", "intranet", "192.168.1.77", "192.168.1.2"],
  ["same subnet, mapped", "intranet", "::ffff:192.168.1.77", "::ffff:192.168.1.2"],
  ["same subnet v6", "intranet", "2001:db8:1:2::77", "2001:db8:1:2::2"],
  ["same subnet, unique local", "intranet", "fd00:1::77", "fd00:1::2"],
  ["link-local v4", "intranet", "169.254.7.8", "192.168.1.2"],
  ["link-local v6", "intranet", "fe80::77%eth0", "fe80::2%eth0"],
  ["other private v4", "internet", "192.168.2.77", "192.168.1.2"],
  ["other private v4, beyond a short subnet", "internet", "10.0.0.9", "10.0.0.2"],
  ["other private v6", "internet", "fd00:2::77", "fd00:1::2"],
  ["public v4", "internet", "8.8.8.8", "192.168.1.2"],
  ["public v6", "internet", "2606:4700::1111", "2001:db8:1:2::2"],
];

const PORT = 6878;

export const ADDRESS_CLASSES: readonly AddressClass[] = ADDRESSES.map(([name, where, remote, local]) => {
  const [theirs, ours] = [canonicalAddress(remote)!, canonicalAddress(local)!];
  const origin = {
    remote: { host: theirs, port: 50_000 },
    local: { host: ours, port: PORT },
    networks: NETWORKS,
  };
  return { name, where, origin, written: ours.includes(":") ? `[${ours}]` : ours };
});

/** A form of the Host header. `isOwn` is true if it names the engine; `written` is the local address. */
export interface HostForm {
  readonly name: string;
  readonly isOwn: boolean;
  readonly text: (written: string) => string;
}

/** Host names that the settings of the engine allow; `HOSTS` contains requests with them. */
export const ALLOWED_HOSTS = ["tv.example", "radio.example:80"];
export const OWN_NAMES = ["nas", "nas.local"];

export const HOSTS: readonly HostForm[] = [
  { name: "own address", isOwn: true, text: (written) => `${written}:${PORT}` },
  { name: "localhost", isOwn: true, text: () => `LocalHost:${PORT}` },
  { name: "own name", isOwn: true, text: () => `nas.local:${PORT}` },
  { name: "a configured name", isOwn: true, text: () => "tv.example:8443" },
  { name: "a configured name with its port", isOwn: true, text: () => "radio.example" },
  { name: "a name of the Internet", isOwn: false, text: () => `evil.example:${PORT}` },
  { name: "another address", isOwn: false, text: () => `10.99.0.1:${PORT}` },
  { name: "own address, another port", isOwn: false, text: (written) => `${written}:80` },
  { name: "own address without a port", isOwn: false, text: (written) => written },
  { name: "a configured name, another port", isOwn: false, text: () => `radio.example:${PORT}` },
  { name: "two hosts", isOwn: false, text: (written) => `${written}:${PORT}, evil.example` },
  { name: "a user before a host", isOwn: false, text: (written) => `${written}:${PORT}@evil.example` },
  { name: "nothing", isOwn: false, text: () => "" },
];

export type TokenForm = "none" | "wrong" | "revoked" | "good";
export const TOKENS: readonly TokenForm[] = ["none", "wrong", "revoked", "good"];

export const LISTED_ORIGIN = "https://listed.example";

/** The Origin header of a browser for a request to `host`. */
export const ORIGINS = {
  none: () => undefined,
  own: (host: string) => `http://${host.toLowerCase()}`,
  "own, another port": (host: string) => `http://${host.toLowerCase().replace(/:\d+$/, "")}:81`,
  foreign: () => "https://evil.example",
  null: () => "null",
  listed: () => LISTED_ORIGIN,
  two: (host: string) => `http://${host}, https://evil.example`,
} as const satisfies Record<string, (host: string) => string | undefined>;
export type OriginForm = keyof typeof ORIGINS;

export const SITES = ["absent", "none", "same-origin", "same-site", "cross-site"] as const;

export const SWITCHES = [
  { allowsIntranet: false, allowsRemote: false },
  { allowsIntranet: false, allowsRemote: true },
  { allowsIntranet: true, allowsRemote: false },
  { allowsIntranet: true, allowsRemote: true },
] as const;

/** `FORM` is a POST that names method and token in its body. */
export const VERBS = ["GET", "POST", "FORM", "HEAD"] as const;
export type Verb = (typeof VERBS)[number];
