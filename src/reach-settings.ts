import * as v from "valibot";
import { anyText } from "./access-setting-kinds.ts";
import type { ReachSettings, ScheduledLimits } from "./engine/reach/contract.ts";
import { parseSize, type SettingKind } from "./setting-kinds.ts";
import type { Config } from "./settings.ts";

/** The part of the settings that says how peers are found and reached. */
export function reachSettings(config: Config): ReachSettings {
  return {
    dht: config.dht === "on",
    dhtNodes: config.dhtNodes,
    lsd: config.lsd === "on",
    encryption: config.encryption,
    utp: config.utp === "on",
    portMapping: config.portMapping === "on",
    bind: config.bind,
    proxy: config.proxy,
    proxyStrict: config.proxyStrict === "on",
    limitLan: config.limitLan === "on",
    scheduled: config.schedule,
    ipFilter: config.ipFilter,
    portFile: config.portFile,
    portCommand: config.portCommand,
    tracker: config.tracker,
  };
}

/** Where nodes are that others are found by, separated by commas (or an array in the config file); may be empty. */
export function nodeList(): SettingKind<readonly string[]> {
  const parts = v.union([
    v.pipe(
      v.string(),
      v.transform((text) => text.split(",")),
    ),
    v.array(v.string()),
  ]);
  return {
    placeholder: "NODES",
    expected: "host:port of each, separated by commas, such as router.bittorrent.com:6881",
    schema: v.pipe(
      parts,
      v.transform((texts) => texts.map((text) => text.trim()).filter((text) => text !== "")),
      v.check((nodes) => nodes.every(isHostAndPort)),
    ),
  };
}

/** A proxy that peers and trackers are reached through; a secret, as it may hold a password. */
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

/** When a second pair of limits holds: `22:00-06:30 up=500KB down=2MB`, local time; empty: never. */
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

/** Reads a schedule; undefined where it is none. */
export function parseSchedule(text: string): ScheduledLimits | undefined {
  const match = /^(\d\d?):(\d\d)-(\d\d?):(\d\d)((?: +(?:up|down)=\S+)+)$/.exec(text.trim());
  if (!match) return undefined;
  const fromMinute = minuteOf(match[1]!, match[2]!);
  const toMinute = minuteOf(match[3]!, match[4]!);
  const limits = new Map<string, number>();
  for (const word of match[5]!.trim().split(/ +/)) {
    const [name, written] = word.split("=") as [string, string];
    const bytes = parseSize(written.replace(/(\/s|ps)$/i, ""));
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
  // 80 is what `http:` means without a port, and is not written then.
  const hasPort = port !== "" || protocol === "http:";
  return isKnown && hostname !== "" && hasPort && pathname.replace("/", "") === "" && search === "";
}
