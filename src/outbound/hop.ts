import { addressScope } from "../base/address.ts";
import { latin1Text } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import { percentDecode } from "../base/percent.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import type { OpenOptions } from "./outbound.ts";

const MAX_URL_LENGTH = 8192;
/** Dropped when a redirect leaves the origin: they were meant for it alone. */
const CREDENTIALS: ReadonlySet<string> = new Set(["authorization", "cookie", "proxy-authorization"]);

/** One step of a fetch: where to go, what to send along, and what the steps before allow. */
export interface Hop {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly allowPrivate: boolean;
}

/** The first step; credentials within the URL become a header, so that no message and no redirect shows them. Throws
 * `url_refused` where this is no http or https URL. */
export function firstHop(text: string, options: OpenOptions): Hop {
  const url = readUrl(text, undefined);
  const { basic, range, decode = true } = options;
  const headers: Record<string, string> = {
    accept: "*/*",
    // Of a compressed body a range would be a range of the compressed bytes.
    "accept-encoding": decode && !range ? "gzip, deflate" : "identity",
    "user-agent": "Sluice",
    connection: "close",
  };
  for (const [name, value] of Object.entries(options.headers ?? {})) headers[name.toLowerCase()] = value;
  if (range) headers.range = `bytes=${range.start}-${range.end === undefined ? "" : range.end - 1}`;
  if (basic) headers.authorization = basicAuthorization(encodeUtf8(`${basic.login}:${basic.password}`));
  else if (url.username !== "" || url.password !== "")
    headers.authorization ??= basicAuthorization(percentDecode(`${url.username}:${url.password}`));
  return { url: bare(url), headers, allowPrivate: options.allowPrivate };
}

/** A public server must not lead us into the home network, whoever asked. */
export function mayLeadHome(hop: Hop, addresses: readonly string[]): boolean {
  return hop.allowPrivate && addresses.every((address) => addressScope(address) !== "global");
}

/** Where a redirect leads. */
export function nextHop(hop: Hop, location: string, addresses: readonly string[]): Hop {
  const url = bare(readUrl(location, hop.url));
  const kept = Object.entries(hop.headers).filter(([name]) => !CREDENTIALS.has(name));
  return {
    url,
    headers: url.origin === hop.url.origin ? hop.headers : Object.fromEntries(kept),
    allowPrivate: mayLeadHome(hop, addresses),
  };
}

function readUrl(text: string, base: URL | undefined): URL {
  if (text.length > MAX_URL_LENGTH) throw refused(`a URL longer than ${MAX_URL_LENGTH} characters`);
  if (!URL.canParse(text, base)) throw refused("not a URL");
  const url = new URL(text, base);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw refused(`expected an http or https URL, not ${url.protocol}${helpWith(url.protocol)}`);
  }
  url.hash = "";
  return url;
}

/** What to do instead, for what people paste most. */
function helpWith(protocol: string): string {
  if (protocol === "file:")
    return " (files are not read by URL: post the transport file as transport_file_data)";
  if (protocol === "magnet:") return " (it leads to a magnet link: give that as magnet=)";
  return "";
}

function basicAuthorization(pair: Uint8Array): string {
  return `Basic ${btoa(latin1Text(pair))}`;
}

function bare(url: URL): URL {
  const copy = new URL(url);
  copy.username = "";
  copy.password = "";
  return copy;
}

function refused(why: string): SluiceError {
  return new SluiceError("url_refused", why);
}
