import { resolve } from "node:path";
import { canonicalAddress, type PeerAddress } from "../base/address.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import { parseHttpUrl } from "../base/http-url.ts";
import type { BroadcastRequest } from "../engine/live/broadcast-contract.ts";
import { broadcastNameFrom, checkedBroadcastName } from "../engine/live/broadcast-name.ts";
import { type LivePlace, readLivePlace } from "../engine/live/source-place.ts";
import type { ReachSettings } from "../engine/reach/contract.ts";
import type { BroadcastWish } from "../library/contract.ts";
import { MAX_BYTES_PER_SECOND, MAX_MANIFESTS, MAX_RELAYS } from "../wire/live-limits.ts";
import { ownTrackers } from "./own-trackers.ts";

/** More announce URLs than this only cost the viewers time. */
const MAX_TRACKERS = 16;
const MAX_ADDRESSES = 8;
/** What viewers are shown at most; longer texts would be cut by those who read them. */
const MAX_TEXT = 256;
const MAX_DESCRIPTION = 4096;
const MAX_WORDS = 32;
/** Less is nothing that can be watched, but a forgotten "M"; and what was said at the first start stays. */
const MIN_BYTES_PER_SECOND = 500;

/** What it takes to make a request of a wish. */
export interface RequestParts {
  /** The addresses of a name. */
  lookup(name: string): Promise<string[]>;
  /** Addresses of this machine at which its peers are told to call. */
  readonly ownAddresses: readonly PeerAddress[];
  /** Whom our own tracker answers: viewers are sent to it too. */
  readonly tracker: ReachSettings["tracker"];
}

/**
 * What the engine shall do, from what the user said; relative files are looked for in the working folder. Rejects with
 * `bad_parameter`, which names the word that cannot be.
 */
export async function broadcastRequest(wish: BroadcastWish, parts: RequestParts): Promise<BroadcastRequest> {
  const place = placeOf(wish.source);
  if (wish.isLooped && place.kind !== "file") throw bad("loop", "only a file ends and can begin again");
  if (wish.isPrivate && wish.relays.length === 0)
    throw bad("private", "a private source serves its relays alone: name one with relay");
  const addresses = await addressesOf("address", wish.addresses, MAX_ADDRESSES, parts);
  const bytesPerSecond = wish.bitsPerSecond === null ? undefined : Math.ceil(wish.bitsPerSecond / 8);
  if (bytesPerSecond !== undefined && bytesPerSecond > MAX_BYTES_PER_SECOND)
    throw bad("bitrate", `expected at most ${(8 * MAX_BYTES_PER_SECOND) / 1e6} Mbit/s`);
  if (bytesPerSecond !== undefined && bytesPerSecond < MIN_BYTES_PER_SECOND)
    throw bad(
      "bitrate",
      `expected bits a second, at least ${8 * MIN_BYTES_PER_SECOND}, such as 8Mbit or 8000000`,
    );
  // What the user says first: addresses of a home network are of no use elsewhere.
  const places = [...addresses, ...parts.ownAddresses].slice(0, MAX_ADDRESSES);
  // A private source is told of to nobody.
  const own = wish.isPrivate ? [] : ownTrackers(parts.tracker, places);
  return {
    name: checkedBroadcastName(wish.name),
    place,
    isLooped: wish.isLooped,
    ...(wish.isStandby && { isStandby: true }),
    meta: {
      title: textOf("title", wish.title, MAX_TEXT) ?? wish.name,
      ...present("description", textOf("description", wish.description, MAX_DESCRIPTION)),
      ...present("categories", wordsOf("category", wish.categories)),
      ...present("languages", wordsOf("language", wish.languages, LANGUAGE)),
      ...present("countries", wordsOf("country", wish.countries, COUNTRY)),
      ...present("logo", wish.logo === null ? undefined : webUrl("logo", wish.logo)),
    },
    trackers: [...atMost("tracker", wish.trackers, MAX_TRACKERS).map(trackerUrl), ...own],
    relays: await addressesOf("relay", wish.relays, MAX_RELAYS, parts),
    isPrivate: wish.isPrivate,
    uploadLimit: wish.uploadLimit ?? undefined,
    bytesPerSecond,
    manifests: atMost("hls", wish.manifests, MAX_MANIFESTS).map((url) => webUrl("hls", url)),
    addresses: places,
  };
}

/** What is broadcast where nobody has named it: told by its source, in letters that a name may have. */
export function defaultName(source: string | null): string {
  if (source === null) return "test-pattern";
  if (source === "-") return "piped-in";
  const url = /^[a-z][a-z0-9+.-]+:\/\//i.test(source) && URL.canParse(source) ? new URL(source) : undefined;
  const words = url ? `${url.hostname} ${url.port} ${url.pathname}` : (source.split(/[/\\]/).pop() ?? "");
  return broadcastNameFrom(words.replace(/\.(ts|m2ts|mts|mpegts|m3u8?)$/i, "").replaceAll("/", " "));
}

/** What a source is, told from its text; a file's path is made absolute. */
function placeOf(source: string | null): LivePlace {
  if (source === null) return { kind: "test-pattern" };
  const place = readLivePlace(source);
  return place.kind === "file" ? { kind: "file", path: resolve(place.path) } : place;
}

async function addressesOf(
  word: string,
  written: readonly string[],
  most: number,
  { lookup }: Pick<RequestParts, "lookup">,
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

async function addressOf(word: string, name: string, lookup: RequestParts["lookup"]): Promise<string> {
  const found = await lookup(name).catch((error): string[] => {
    // That it may not be asked for is said by whoever forbids it.
    if (error instanceof SluiceError) throw error;
    throw bad(word, `${name} has no address that can be found from here (${messageOf(error)})`);
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

/** How a word must look, and what to say where it does not. */
interface WordForm {
  readonly pattern: RegExp;
  readonly expected: string;
}

const ANY: WordForm = { pattern: /^.{1,64}$/s, expected: "1 to 64 characters" };
const LANGUAGE: WordForm = { pattern: /^[a-z]{2,3}$/i, expected: "two or three letters, such as eng" };
const COUNTRY: WordForm = { pattern: /^[a-z]{2}$/i, expected: "two letters, such as us" };

function wordsOf(word: string, words: readonly string[], form = ANY): readonly string[] | undefined {
  const wrong = atMost(word, words, MAX_WORDS).find((each) => !form.pattern.test(each));
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
