import { parseHttpUrl } from "../../base/http-url.ts";
import type { UnixSeconds } from "../../base/time.ts";
import { decodeUtf8, encodeUtf8 } from "../../base/utf8.ts";
import { type BencodeInput, bencodeDict } from "../bencode-encode.ts";
import type { BencodeView } from "../bencode-view.ts";
import { MAX_MANIFESTS } from "./limits.ts";
import { displayText } from "./text.ts";

/** Descriptive metadata of a stream. It does not affect playback. */
export interface LiveMeta {
  readonly title?: string;
  readonly description?: string;
  readonly categories?: readonly string[];
  readonly tags?: readonly string[];
  readonly languages?: readonly string[];
  readonly countries?: readonly string[];
  /** An http or https URL. */
  readonly logo?: string;
  readonly quality?: string;
  readonly provider?: string;
  /** The stream is always on air. */
  readonly isPermanent?: boolean;
  readonly startsAt?: UnixSeconds;
  readonly endsAt?: UnixSeconds;
  /** How far back players should allow seeking. */
  readonly timeShiftSeconds?: number;
}

/** Longer texts are cut and further list entries ignored; invalid metadata never makes a stream unplayable. */
const MAX_TEXT_LENGTH = 256;
const MAX_DESCRIPTION_LENGTH = 4096;
const MAX_ENTRIES = 32;

/** Encodes the `meta` dictionary. */
export function liveMetaDict(meta: LiveMeta): ReadonlyMap<string, BencodeInput> {
  return bencodeDict({
    categories: texts(meta.categories),
    country: texts(meta.countries),
    "date-end": meta.endsAt,
    "date-start": meta.startsAt,
    description: text(meta.description),
    lang: texts(meta.languages),
    logo: text(meta.logo),
    permanent: meta.isPermanent ? 1 : undefined,
    provider: text(meta.provider),
    quality: text(meta.quality),
    tags: texts(meta.tags),
    timeshift: meta.timeShiftSeconds,
    title: text(meta.title),
  });
}

/** Reads a `meta` dictionary. A member of the wrong type or range counts as absent. */
export function readLiveMeta(dict: BencodeView | undefined): LiveMeta {
  if (!dict) return {};
  const logo = linkIn(dict.get("logo"));
  return {
    ...optional("title", textOf(dict.get("title"))),
    ...optional("description", textOf(dict.get("description"), MAX_DESCRIPTION_LENGTH)),
    ...optional("categories", textsOf(dict.get("categories"))),
    ...optional("tags", textsOf(dict.get("tags"))),
    ...optional("languages", textsOf(dict.get("lang"))),
    ...optional("countries", textsOf(dict.get("country"))),
    ...optional("logo", logo),
    ...optional("quality", textOf(dict.get("quality"))),
    ...optional("provider", textOf(dict.get("provider"))),
    ...(dict.get("permanent")?.integer() === 1 && { isPermanent: true }),
    ...optional("startsAt", numberOf(dict.get("date-start")) as UnixSeconds | undefined),
    ...optional("endsAt", numberOf(dict.get("date-end")) as UnixSeconds | undefined),
    ...optional("timeShiftSeconds", numberOf(dict.get("timeshift"))),
  };
}

/** Reads at most eight http and https URLs from a list; other entries are skipped. */
export function readManifests(list: BencodeView | undefined): string[] {
  const urls: string[] = [];
  for (const item of list?.items() ?? []) {
    const url = linkIn(item);
    if (url !== undefined && urls.length < MAX_MANIFESTS && !urls.includes(url)) urls.push(url);
  }
  return urls;
}

function linkIn(value: BencodeView | undefined): string | undefined {
  const bytes = value?.bytes();
  return bytes && bytes.length <= 2048 ? parseHttpUrl(decodeUtf8(bytes))?.href : undefined;
}

function textOf(value: BencodeView | undefined, maxLength = MAX_TEXT_LENGTH): string | undefined {
  const bytes = value?.bytes();
  return (bytes && displayText(bytes, maxLength)) || undefined;
}

function textsOf(value: BencodeView | undefined): readonly string[] | undefined {
  const found: string[] = [];
  for (const item of value?.items() ?? []) {
    const shown = textOf(item);
    if (shown !== undefined) found.push(shown);
    if (found.length === MAX_ENTRIES) break;
  }
  return found.length === 0 ? undefined : found;
}

function numberOf(value: BencodeView | undefined): number | undefined {
  const number = value?.integer();
  return number !== undefined && number >= 0 ? number : undefined;
}

function text(value: string | undefined): Uint8Array | undefined {
  return value === undefined ? undefined : encodeUtf8(value);
}

function texts(values: readonly string[] | undefined): Uint8Array[] | undefined {
  return values === undefined || values.length === 0 ? undefined : values.map(encodeUtf8);
}

function optional<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: V };
}
