import * as v from "valibot";
import { configuredHost } from "../../routes/http/access-host.ts";
import { canonicalAddress } from "../base/address.ts";
import { type Network, parseNetwork } from "../base/network.ts";
import { vettedAddress } from "../cluster/engine-address.ts";
import type { ScheduledLimits } from "../net/contract.ts";
import { trackerUrlProblem } from "../wire/tracker/url.ts";

/** How one kind of setting is written: the schema that reads it, and its texts for help and errors. */
export interface SettingKind<T> {
  readonly schema: v.GenericSchema<unknown, T>;
  /** The placeholder in `--help`, such as `SIZE`. */
  readonly placeholder: string;
  /** Completes "expected …" in an error. */
  readonly expected: string;
  /** Errors never repeat the value. */
  readonly isSecret?: boolean;
  /** All accepted values, if they are few; shell completions offer them. */
  readonly values?: readonly string[];
}

const BYTE_UNITS: Readonly<Record<string, number>> = {
  "": 1,
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KIB: 2 ** 10,
  MIB: 2 ** 20,
  GIB: 2 ** 30,
  TIB: 2 ** 40,
};

const DURATION_UNITS: Readonly<Record<string, number>> = { "": 1e3, ms: 1, s: 1e3, m: 60e3, h: 3600e3 };

/** Reads `20GB`, `64MiB`, `1.5 GB` or a bare number of bytes. Returns undefined for anything else. */
export function parseSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?) ?([KMGT]?i?B?)$/i.exec(text.trim());
  if (match === null) return undefined;
  const letters = match[2]!.toUpperCase();
  const unit = BYTE_UNITS[letters === "" || letters.endsWith("B") ? letters : `${letters}B`];
  const bytes = Math.round(Number(match[1]) * (unit ?? Number.NaN));
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Reads `250ms`, `30s`, `5m`, `2h` or a bare number of seconds, as milliseconds. Returns undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?) ?(ms|s|m|h|)$/.exec(text.trim());
  if (match === null) return undefined;
  const ms = Math.round(Number(match[1]) * DURATION_UNITS[match[2]!]!);
  // Timers cannot wait longer than 2^31 ms (24 days).
  return ms < 2 ** 31 ? ms : undefined;
}

/** Any text that is not empty. */
export function text(placeholder: string, expected: string): SettingKind<string> {
  return { placeholder, expected, schema: v.pipe(v.string(), v.trim(), v.nonEmpty()) };
}

/** Any text; may be empty. */
export function anyText(placeholder: string): SettingKind<string> {
  return { placeholder, expected: "a text", schema: v.pipe(v.string(), v.trim()) };
}

/** A text that errors never repeat; may be empty. */
export function secretText(placeholder: string, minCharacters: number): SettingKind<string> {
  return {
    placeholder,
    isSecret: true,
    expected: `at least ${minCharacters} printable characters without spaces`,
    schema: v.pipe(
      v.string(),
      v.trim(),
      v.check((text) => text === "" || (text.length >= minCharacters && /^[\x21-\x7e]{1,512}$/.test(text))),
    ),
  };
}

/** A whole number from `min` to `max`. */
export function integer(placeholder: string, min: number, max: number): SettingKind<number> {
  return {
    placeholder,
    expected: `a whole number from ${min} to ${max}`,
    schema: v.pipe(
      v.union([v.number(), v.pipe(v.string(), v.trim(), v.regex(/^\d+$/), v.transform(Number))]),
      v.integer(),
      v.minValue(min),
      v.maxValue(max),
    ),
  };
}

/** Bytes, written as a size. */
export function size(min = 0): SettingKind<number> {
  const least = min > 0 ? `, at least ${formatSize(min)}` : "";
  return {
    placeholder: "SIZE",
    expected: `a size such as 20GB or 512MiB${least}`,
    schema: v.pipe(amount(parseSize), v.minValue(min)),
  };
}

/** Bytes per second, written as a size; 0 means no limit. */
export function rate(): SettingKind<number> {
  return {
    placeholder: "RATE",
    expected: "bytes per second such as 2MB or 500KB, or 0 for no limit",
    schema: amount(parseRate),
  };
}

/** Milliseconds, written as a duration. */
export function duration(minMs: number): SettingKind<number> {
  return {
    placeholder: "TIME",
    expected: `a time such as 30s or 5m (a bare number is seconds), at least ${formatDuration(minMs)}`,
    schema: v.pipe(amount(parseDuration), v.minValue(minMs)),
  };
}

/** One of a few words. */
export function choice<const T extends string>(...words: readonly T[]): SettingKind<T> {
  return {
    placeholder: words.join("|"),
    expected: `one of ${words.join(", ")}`,
    schema: v.pipe(v.string(), v.trim(), v.toLowerCase(), v.picklist(words)),
    values: words,
  };
}

/** A switch. */
export function onOff(): SettingKind<"on" | "off"> {
  return choice("on", "off");
}

/** An IP address literal. */
export function ipAddress(): SettingKind<string> {
  return {
    placeholder: "ADDRESS",
    expected: "an IP address of this machine, such as ::, 0.0.0.0 or 10.0.0.2",
    schema: v.pipe(
      v.string(),
      v.trim(),
      v.check((text) => canonicalAddress(text) !== undefined),
    ),
  };
}

/** Host names and addresses of this machine, each with or without a port. */
export function hostNames(): SettingKind<readonly string[]> {
  return {
    placeholder: "NAMES",
    expected:
      "host names or addresses separated by commas, each with or without a port, such as tv.lan,10.0.0.2:80",
    schema: v.pipe(
      list,
      v.transform((hosts) => hosts.map((host) => host.toLowerCase())),
      v.check((hosts) => hosts.every((host) => configuredHost(host) !== undefined)),
    ),
  };
}

/** IP addresses and networks. */
export function networkList(): SettingKind<readonly Network[]> {
  return {
    placeholder: "NETWORKS",
    expected: "addresses or networks separated by commas, such as 10.0.0.2,192.168.0.0/16,fd00::/8",
    schema: v.pipe(
      list,
      v.transform((texts) => texts.map(parseNetwork)),
      v.array(v.custom<Network>((network) => network !== undefined)),
    ),
  };
}

/** Web origins (RFC 6454), in lower case. */
export function originList(): SettingKind<readonly string[]> {
  return {
    placeholder: "ORIGINS",
    expected: "origins separated by commas, such as https://tv.example,http://nas.lan:8080",
    schema: v.pipe(
      list,
      v.transform((texts) => texts.map((text) => text.toLowerCase().replace(/\/$/, ""))),
      v.check((origins) => origins.every(isOrigin)),
    ),
  };
}

/** Announce URLs of trackers. */
export function trackerList(): SettingKind<readonly string[]> {
  return {
    placeholder: "URLS",
    expected: "announce URLs separated by commas, such as udp://tracker.example:6969/announce",
    schema: v.pipe(
      list,
      v.check((urls) => urls.every((url) => trackerUrlProblem(url) === undefined)),
    ),
  };
}

/** TURN servers (RFC 7065) with their user and password. */
export function turnServerList(): SettingKind<readonly string[]> {
  const url = /^turns?:[^\s:@,]+:[^\s@,]+@[\w.[\]:-]+(?:\?transport=(?:udp|tcp))?$/;
  return {
    placeholder: "URLS",
    expected: "turn:user:password@host:port of each, separated by commas",
    schema: v.pipe(
      list,
      v.check((urls) => urls.every((each) => url.test(each))),
    ),
  };
}

/** DHT bootstrap nodes as `host:port`. */
export function nodeList(): SettingKind<readonly string[]> {
  return {
    placeholder: "NODES",
    expected: "host:port of each, separated by commas, such as router.bittorrent.com:6881",
    schema: v.pipe(
      list,
      v.check((nodes) => nodes.every(isHostAndPort)),
    ),
  };
}

/** `stun:host:port` of STUN servers, without the scheme in the value. TURN servers are refused, because they are not supported. */
export function iceServerList(): SettingKind<readonly string[]> {
  return {
    placeholder: "SERVERS",
    expected: "stun:host:port of each, separated by commas; TURN is not supported",
    schema: v.pipe(
      list,
      v.check((servers) =>
        servers.every((server) => server.startsWith("stun:") && isHostAndPort(server.slice(5))),
      ),
      v.transform((servers) => servers.map((server) => server.slice(5))),
    ),
  };
}

/** URL of a proxy; a secret because it may hold a password. May be empty. */
export function proxyUrl(): SettingKind<string> {
  return {
    ...anyText("URL"),
    isSecret: true,
    expected: "socks5://[user:password@]host:port or http://[user:password@]host:port",
    schema: v.pipe(
      v.string(),
      v.trim(),
      v.check((text) => text === "" || isProxy(text)),
    ),
  };
}

/** The URL of an engine: a scheme, a host and a port. */
export function engineAddress(): SettingKind<string> {
  return {
    placeholder: "URL",
    expected: "a URL such as http://10.0.0.5:6878",
    schema: v.pipe(
      v.string(),
      v.trim(),
      v.check((text) => text === "" || vettedAddress(text, text) !== undefined),
    ),
  };
}

/** `sqlite`, `memory`, or the URL of a Redis or Valkey server; a secret because that may hold a password. */
export function storeUrl(): SettingKind<string> {
  return {
    placeholder: "STORE",
    isSecret: true,
    expected: "sqlite, memory or redis://[user:password@]host[:port]",
    schema: v.pipe(
      v.string(),
      v.trim(),
      v.check((text) => /^(sqlite|memory|(rediss?|valkeys?)(\+(sentinel|cluster))?:\/\/.+)$/.test(text)),
    ),
  };
}

/** A daily period with its own rate limits: `22:00-06:30 up=500KB down=2MB`, local time. An empty text means never. */
export function schedule(): SettingKind<ScheduledLimits | undefined> {
  return {
    placeholder: "SCHEDULE",
    expected: "times and limits such as 22:00-06:30 up=500KB down=0",
    schema: v.pipe(
      v.string(),
      v.transform((text) => (text.trim() === "" ? undefined : (parseSchedule(text) ?? null))),
      v.custom<ScheduledLimits | undefined>((value) => value !== null),
    ),
  };
}

/** Reads a schedule. Returns undefined if it is malformed. */
function parseSchedule(text: string): ScheduledLimits | undefined {
  const match = /^(\d\d?):(\d\d)-(\d\d?):(\d\d)((?: +(?:up|down)=\S+)+)$/.exec(text.trim());
  if (!match) return undefined;
  const fromMinute = minuteOf(match[1]!, match[2]!);
  const toMinute = minuteOf(match[3]!, match[4]!);
  const limits = new Map<string, number>();
  for (const word of match[5]!.trim().split(/ +/)) {
    const [name, written] = word.split("=") as [string, string];
    const bytes = parseRate(written);
    if (bytes === undefined || limits.has(name)) return undefined;
    limits.set(name, bytes);
  }
  if (fromMinute === undefined || toMinute === undefined || fromMinute === toMinute) return undefined;
  return {
    fromMinute,
    toMinute,
    uploadLimit: limits.get("up") ?? 0,
    downloadLimit: limits.get("down") ?? 0,
  };
}

/** Writes bytes in the form that {@link parseSize} reads, in the largest unit that divides them. */
export function formatSize(bytes: number): string {
  for (const unit of ["TiB", "TB", "GiB", "GB", "MiB", "MB", "KiB", "KB"]) {
    const per = BYTE_UNITS[unit.toUpperCase()]!;
    if (bytes >= per && bytes % per === 0) return `${bytes / per}${unit}`;
  }
  return String(bytes);
}

/** Writes milliseconds in the form that {@link parseDuration} reads, in the largest unit that divides them. */
export function formatDuration(ms: number): string {
  for (const unit of ["h", "m", "s"]) {
    const per = DURATION_UNITS[unit]!;
    if (ms >= per && ms % per === 0) return `${ms / per}${unit}`;
  }
  return `${ms}ms`;
}

/** A list separated by commas, or an array in the config file; may be empty. */
const list = v.pipe(
  v.union([v.string(), v.array(v.string())]),
  v.transform((written) =>
    (typeof written === "string" ? written : written.join(","))
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== ""),
  ),
);

/** A number that `parse` reads from a text. A JSON number is converted to text first. */
function amount(parse: (text: string) => number | undefined): v.GenericSchema<unknown, number> {
  return v.pipe(
    v.union([v.string(), v.pipe(v.number(), v.minValue(0), v.transform(String))]),
    v.transform((written) => parse(written)),
    v.number(),
  );
}

function parseRate(text: string): number | undefined {
  return parseSize(text.trim().replace(/(\/s|ps)$/i, ""));
}

/** RFC 6454 6.2: an origin has no path and no default port. */
function isOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

function minuteOf(hour: string, minute: string): number | undefined {
  const [h, m] = [Number(hour), Number(minute)];
  return h < 24 && m < 60 ? 60 * h + m : undefined;
}

function isHostAndPort(text: string): boolean {
  const match = /^(?:\[[0-9a-f:.]+\]|[^\s:[\]]+):(\d{1,5})$/i.exec(text);
  return match !== null && Number(match[1]) > 0 && Number(match[1]) < 65_536;
}

function isProxy(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, port, pathname, search } = new URL(text);
  const isKnown = protocol === "socks5:" || protocol === "http:";
  // URL removes port 80 from http: URLs because it is the default.
  const hasPort = port !== "" || protocol === "http:";
  return isKnown && hostname !== "" && hasPort && pathname.replace("/", "") === "" && search === "";
}
