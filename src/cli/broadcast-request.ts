import { resolve } from "node:path";
import { canonicalAddress, type PeerAddress } from "../base/address.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import { parseHttpUrl } from "../base/http-url.ts";
import type { BroadcastOptions } from "../library/contract.ts";
import type { BroadcastRequest } from "../live/broadcast/broadcast-contract.ts";
import { broadcastNameFrom, checkedBroadcastName } from "../live/broadcast/broadcast-name.ts";
import { type LivePlace, readLivePlace } from "../live/input/source-place.ts";
import type { ReachSettings } from "../net/contract.ts";
import { MAX_BYTES_PER_SECOND, MAX_MANIFESTS, MAX_RELAYS } from "../wire/live/limits.ts";
import { renditionsOf } from "./broadcast-renditions.ts";
import { ownTrackers } from "./own-addresses.ts";

/** Viewers ask every tracker, so more than this would delay them. */
const MAX_TRACKERS = 16;
const MAX_ADDRESSES = 8;
/** Maximum lengths of texts for viewers, in characters; players cut longer texts. */
const MAX_TEXT = 256;
const MAX_DESCRIPTION = 4096;
const MAX_ITEMS = 32;
/** A lower rate is probably a missing "M"; the rate of the first start cannot be changed later. */
const MIN_BYTES_PER_SECOND = 500;

/** What {@link broadcastRequest} needs. */
export interface RequestContext {
  /** Resolves a name to addresses. */
  lookup(name: string): Promise<string[]>;
  /** The peer addresses of this machine that links contain. */
  readonly ownAddresses: readonly PeerAddress[];
  /** Mode of the own tracker; if it is on, links name it. */
  readonly tracker: ReachSettings["tracker"];
}

/**
 * Validates what the user asked for and converts it to a request for the engine. Relative paths refer to the working folder.
 * Rejects with `bad_parameter`, which names the invalid parameter.
 */
export async function broadcastRequest(
  options: BroadcastOptions,
  parts: RequestContext,
): Promise<BroadcastRequest> {
  const place = placeOf(options.source);
  if (options.isLooped && place.kind !== "file") throw bad("loop", "only a file can be looped");
  if (options.isPrivate && options.relays.length === 0)
    throw bad("private", "a private source serves only relays: add one with relay");
  const addresses = await addressesOf("address", options.addresses, MAX_ADDRESSES, parts);
  const bytesPerSecond = options.bitsPerSecond === null ? undefined : Math.ceil(options.bitsPerSecond / 8);
  if (bytesPerSecond !== undefined && bytesPerSecond > MAX_BYTES_PER_SECOND)
    throw bad("bitrate", `expected at most ${(8 * MAX_BYTES_PER_SECOND) / 1e6} Mbit/s`);
  if (bytesPerSecond !== undefined && bytesPerSecond < MIN_BYTES_PER_SECOND)
    throw bad(
      "bitrate",
      `expected bits a second, at least ${8 * MIN_BYTES_PER_SECOND}, such as 8Mbit or 8000000`,
    );
  // Addresses from the user come first: those of a local network are useless elsewhere.
  const places = [...addresses, ...parts.ownAddresses].slice(0, MAX_ADDRESSES);
  // A private source is not announced to trackers.
  const own = options.isPrivate ? [] : ownTrackers(parts.tracker, places);
  return {
    name: checkedBroadcastName(options.name),
    place,
    isLooped: options.isLooped,
    ...(options.isStandby && { isStandby: true }),
    ...(options.isRotated && { isRotated: true }),
    ...(options.successorPath && { successorPath: resolve(options.successorPath) }),
    meta: {
      title: textOf("title", options.title, MAX_TEXT) ?? options.name,
      ...present("description", textOf("description", options.description, MAX_DESCRIPTION)),
      ...present("categories", wordsOf("category", options.categories)),
      ...present("languages", wordsOf("language", options.languages, LANGUAGE)),
      ...present("countries", wordsOf("country", options.countries, COUNTRY)),
      ...present("logo", options.logo === null ? undefined : webUrl("logo", options.logo)),
    },
    trackers: [...atMost("tracker", options.trackers, MAX_TRACKERS).map(trackerUrl), ...own],
    relays: await addressesOf("relay", options.relays, MAX_RELAYS, parts),
    isPrivate: options.isPrivate,
    uploadLimit: options.uploadLimit ?? undefined,
    bytesPerSecond,
    manifests: atMost("hls", options.manifests, MAX_MANIFESTS).map((url) => webUrl("hls", url)),
    addresses: places,
    ...renditionsOf(options),
  };
}

/** Returns the default name of a broadcast, derived from its source, with the characters that names allow. */
export function defaultName(source: string | null): string {
  if (source === null) return "test-pattern";
  if (source === "-") return "piped-in";
  const url = /^[a-z][a-z0-9+.-]+:\/\//i.test(source) && URL.canParse(source) ? new URL(source) : undefined;
  const words = url ? `${url.hostname} ${url.port} ${url.pathname}` : (source.split(/[/\\]/).pop() ?? "");
  return broadcastNameFrom(words.replace(/\.(ts|m2ts|mts|mpegts|m3u8?)$/i, "").replaceAll("/", " "));
}

/** Parses a source; file paths become absolute. */
function placeOf(source: string | null): LivePlace {
  if (source === null) return { kind: "test-pattern" };
  const place = readLivePlace(source);
  return place.kind === "file" ? { kind: "file", path: resolve(place.path) } : place;
}

async function addressesOf(
  word: string,
  written: readonly string[],
  most: number,
  { lookup }: Pick<RequestContext, "lookup">,
): Promise<PeerAddress[]> {
  return Promise.all(
    atMost(word, written, most).map(async (text) => {
      const match = /^(\[[0-9a-f:.]+\]|[^:[\]\s/]+):(\d{1,5})$/i.exec(text);
      const port = Number(match?.[2]);
      if (!match || port < 1 || port > 65_535)
        throw bad(
          word,
          `expected HOST:PORT, such as relay.example:8621 or 203.0.113.7:8621, got "${text.slice(0, 200)}"`,
        );
      const name = match[1]!.replace(/^\[(.*)\]$/, "$1");
      return { host: canonicalAddress(name) ?? (await addressOf(word, name, lookup)), port };
    }),
  );
}

async function addressOf(word: string, name: string, lookup: RequestContext["lookup"]): Promise<string> {
  const found = await lookup(name).catch((error): string[] => {
    // A lookup that the proxy settings forbid has its own message.
    if (error instanceof SluiceError) throw error;
    throw bad(word, `cannot resolve ${name} (${messageOf(error)})`);
  });
  if (found[0] === undefined) throw bad(word, `${name} has no address`);
  return found[0];
}

function trackerUrl(text: string): string {
  const isTracker = /^(?:https?|udp|wss?):\/\/[\x21-\x7e]{1,500}$/i.test(text) && URL.canParse(text);
  if (isTracker) return text;
  throw bad("tracker", `expected an announce URL (http, https, udp, ws or wss), got "${text.slice(0, 200)}"`);
}

function webUrl(word: string, text: string): string {
  const url = text.length <= 512 ? parseHttpUrl(text) : undefined;
  if (url) return url.href;
  throw bad(word, `expected an http or https URL, got "${text.slice(0, 200)}"`);
}

function textOf(word: string, text: string | null, most: number): string | undefined {
  if (text === null) return undefined;
  if (text.length <= most) return text;
  throw bad(word, `expected at most ${most} characters, got ${text.length}`);
}

/** The pattern of a word, and its description for errors. */
interface WordForm {
  readonly pattern: RegExp;
  readonly expected: string;
}

const ANY: WordForm = { pattern: /^.{1,64}$/s, expected: "1 to 64 characters" };
const LANGUAGE: WordForm = { pattern: /^[a-z]{2,3}$/i, expected: "two or three letters, such as eng" };
const COUNTRY: WordForm = { pattern: /^[a-z]{2}$/i, expected: "two letters, such as us" };

function wordsOf(word: string, words: readonly string[], form = ANY): readonly string[] | undefined {
  const wrong = atMost(word, words, MAX_ITEMS).find((each) => !form.pattern.test(each));
  if (wrong !== undefined) throw bad(word, `expected ${form.expected}, got "${wrong.slice(0, 200)}"`);
  return words.length > 0 ? words : undefined;
}

function atMost<T>(word: string, list: readonly T[], most: number): readonly T[] {
  if (list.length <= most) return list;
  throw bad(word, `expected at most ${most}, got ${list.length}`);
}

function bad(word: string, message: string): SluiceError {
  return new SluiceError("bad_parameter", `${word}: ${message}`);
}

function present<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: V };
}
