import { addressScope } from "../base/address.ts";
import { latin1Text } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import { percentDecode } from "../base/percent.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import type { OpenOptions } from "./request.ts";

const MAX_URL_LENGTH = 8192;
/** Headers that a redirect to another origin drops. */
const CREDENTIALS: ReadonlySet<string> = new Set(["authorization", "cookie", "proxy-authorization"]);

/** One request of a redirect chain. */
export interface Hop {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Names of headers that a redirect to another origin drops, besides {@link CREDENTIALS}. */
  readonly originOnly: readonly string[];
  readonly allowPrivate: boolean;
}

/** Builds the first hop. Credentials in the URL become a header, so that no message or redirect reveals them. Throws
 * `url_refused` unless `text` is an http or https URL. */
export function firstHop(text: string, options: OpenOptions): Hop {
  const url = readUrl(text, undefined);
  const { basic, range, decode = true } = options;
  const headers: Record<string, string> = {
    accept: "*/*",
    // A range of a compressed body would count compressed bytes.
    "accept-encoding": decode && !range ? "gzip, deflate" : "identity",
    "user-agent": "Sluice",
    connection: "close",
  };
  const originHeaders = Object.entries(options.originHeaders ?? {});
  for (const [name, value] of [...Object.entries(options.headers ?? {}), ...originHeaders])
    headers[name.toLowerCase()] = value;
  if (range) headers.range = `bytes=${range.start}-${range.end === undefined ? "" : range.end - 1}`;
  if (basic) headers.authorization = basicAuthorization(encodeUtf8(`${basic.login}:${basic.password}`));
  else if (url.username !== "" || url.password !== "")
    headers.authorization ??= basicAuthorization(percentDecode(`${url.username}:${url.password}`));
  const originOnly = originHeaders.map(([name]) => name.toLowerCase());
  return { url: bare(url), headers, originOnly, allowPrivate: options.allowPrivate };
}

/** Returns true if the response of `hop` may lead to private addresses. A response from a public address may not, even
 * if the request was allowed to use private addresses. */
export function mayStayPrivate(hop: Hop, addresses: readonly string[]): boolean {
  return hop.allowPrivate && addresses.every((address) => addressScope(address) !== "global");
}

/** Builds the hop that a redirect to `location` leads to. Throws `url_refused` like {@link firstHop}. */
export function nextHop(hop: Hop, location: string, addresses: readonly string[]): Hop {
  const url = bare(readUrl(location, hop.url));
  const { originOnly } = hop;
  const kept = Object.entries(hop.headers).filter(
    ([name]) => !CREDENTIALS.has(name) && !originOnly.includes(name),
  );
  return {
    url,
    originOnly,
    headers: url.origin === hop.url.origin ? hop.headers : Object.fromEntries(kept),
    allowPrivate: mayStayPrivate(hop, addresses),
  };
}

function readUrl(text: string, base: URL | undefined): URL {
  if (text.length > MAX_URL_LENGTH) throw refused(`the URL is longer than ${MAX_URL_LENGTH} characters`);
  if (!URL.canParse(text, base)) throw refused("not a URL");
  const url = new URL(text, base);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw refused(`expected an http or https URL, got ${url.protocol}${helpWith(url.protocol)}`);
  }
  url.hash = "";
  return url;
}

/** What to do instead, for the schemes that users paste most often. */
function helpWith(protocol: string): string {
  if (protocol === "file:")
    return " (file URLs are not supported: post the transport file as transport_file_data)";
  if (protocol === "magnet:") return " (the URL leads to a magnet link: pass that link as magnet=)";
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
