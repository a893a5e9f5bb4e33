import * as v from "valibot";
import { configuredHost } from "../routes/access-host.ts";
import { type Network, parseNetwork } from "./base/network.ts";
import type { SettingKind } from "./setting-kinds.ts";
import { trackerUrlProblem } from "./wire/tracker-url.ts";

/** Names and addresses of this machine, separated by commas (or an array in the config file); may be empty. */
export function hostNames(): SettingKind<readonly string[]> {
  return {
    placeholder: "NAMES",
    expected:
      "host names or addresses separated by commas, each with or without a port, such as tv.lan,10.0.0.2:80",
    schema: v.pipe(
      parts,
      v.transform((hosts) => hosts.map((host) => host.toLowerCase())),
      v.check((hosts) => hosts.every((host) => configuredHost(host) !== undefined)),
    ),
  };
}

/** Networks, separated by commas (or an array in the config file); may be empty. */
export function networkList(): SettingKind<readonly Network[]> {
  return {
    placeholder: "NETWORKS",
    expected: "addresses or networks separated by commas, such as 10.0.0.2,192.168.0.0/16,fd00::/8",
    schema: v.pipe(
      parts,
      v.transform((texts) => texts.map(parseNetwork)),
      v.array(v.custom<Network>((network) => network !== undefined)),
    ),
  };
}

/** Origins of pages, separated by commas (or an array in the config file); may be empty. */
export function originList(): SettingKind<readonly string[]> {
  return {
    placeholder: "ORIGINS",
    expected: "origins separated by commas, such as https://tv.example,http://nas.lan:8080",
    schema: v.pipe(
      parts,
      v.transform((texts) => texts.map((text) => text.toLowerCase().replace(/\/$/, ""))),
      v.check((origins) => origins.every(isOrigin)),
    ),
  };
}

/** Announce URLs of trackers, separated by commas (or an array in the config file); may be empty. */
export function trackerList(): SettingKind<readonly string[]> {
  return {
    placeholder: "URLS",
    expected: "announce URLs separated by commas, such as udp://tracker.example:6969/announce",
    schema: v.pipe(
      parts,
      v.check((urls) => urls.every((url) => trackerUrlProblem(url) === undefined)),
    ),
  };
}

/** Any text, or none. */
export function anyText(placeholder: string): SettingKind<string> {
  return { placeholder, expected: "a text", schema: v.pipe(v.string(), v.trim()) };
}

/** A text that nobody else may know; no message repeats it. Empty: none. */
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

/** What browsers send (RFC 6454 6.2): no path, no usual port. */
function isOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

const parts = v.pipe(
  v.union([v.string(), v.array(v.string())]),
  v.transform((written) =>
    (typeof written === "string" ? written : written.join(","))
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== ""),
  ),
);
