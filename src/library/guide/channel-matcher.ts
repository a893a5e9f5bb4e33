import { channelName, foldText, nameWords } from "../item-names.ts";
import type { GuideChannel, MatchReason } from "./guide-contract.ts";

/** What is compared with the channels of the guides. */
export interface Named {
  readonly title: string;
  readonly tvgId: string;
  readonly tvgName: string;
  /** Two-letter codes in lower case. */
  readonly countries: readonly string[] | null;
}

/** Names that are less similar are no match: the user decides. */
const MIN_SIMILARITY = 0.86;
/** The best match must exceed the second best by this, or the names do not tell which channel it is. */
const MIN_LEAD = 0.08;
/** Words that many channels have; a rare word decides. */
const COMMON = new Set(
  "tv channel network the de la le el los der die das kanal canal television tele".split(" "),
);
const COMMON_WEIGHT = 0.3;
/** Words that lists and guides write in two ways; a connective may be missing. */
const SAME: ReadonlyMap<string, string> = new Map([
  ..."one two three four five six seven eight nine ten"
    .split(" ")
    .map((word, i) => [word, String(i + 1)] as const),
  ...([
    ["jr", "junior"],
    ["and", ""],
    ["et", ""],
    ["und", ""],
  ] as const),
]);
/** Channels compared by words for one item; the rarest word of an item selects them. */
const MAX_COMPARED = 500;
/** Names of countries at the start of a title, such as `UK: BBC One`, `|FR| TF1`, `[ES] La 1`. */
const COUNTRY_PREFIX = /^\s*[[(|]?\s*([A-Za-z]{2,3})\s*(?:[\])|:]|\s-\s)\s*(?=\S)/;
const COUNTRIES: Readonly<Record<string, string>> = {
  uk: "gb",
  usa: "us",
  ger: "de",
  ita: "it",
  esp: "es",
  fra: "fr",
};

interface Entry {
  readonly channel: GuideChannel;
  readonly names: readonly Words[];
  readonly country: string;
}

/** A name as words: those that must be equal, and the others. */
interface Words {
  /** Numbers and `+1`, sorted: `Sport 1` is not `Sport 2`. */
  readonly numbers: string;
  readonly words: ReadonlySet<string>;
}

/**
 * Finds the guide's channel of a playlist item: by equal ids, then equal names, then similar names. It never guesses: if several
 * channels fit and the country does not decide, there is no match.
 */
export class ChannelMatcher {
  readonly #byId = new Map<string, Entry[]>();
  readonly #byName = new Map<string, Entry[]>();
  readonly #byWord = new Map<string, Entry[]>();

  /** `channels` in the order of priority of their sources. */
  constructor(channels: Iterable<GuideChannel>) {
    for (const channel of channels) {
      const names = namesOfChannel(channel);
      const entry = { channel, names: names.map(wordsOf), country: countryOf(channel.id, names[0]!) };
      push(this.#byId, channel.id.toLowerCase(), entry);
      for (const name of new Set(names.map(plainName))) push(this.#byName, name, entry);
      for (const word of new Set(entry.names.flatMap(({ words }) => [...words])))
        push(this.#byWord, word, entry);
    }
  }

  match(item: Named): { readonly channel: GuideChannel; readonly reason: MatchReason } | undefined {
    const id = item.tvgId.trim().toLowerCase();
    const sameId = id === "" ? undefined : this.#byId.get(id)?.[0];
    if (sameId) return { channel: sameId.channel, reason: "id" };
    const country = itemCountry(item);
    for (const name of namesOf(item)) {
      const equal = this.#byName.get(plainName(name)) ?? [];
      const found = only(equal, country) ?? only(oneOfQualities(equal, name, country), country);
      if (found) return { channel: found.channel, reason: "name" };
    }
    const ranked = this.#ranked(item, country).filter(({ score }) => score >= MIN_SIMILARITY);
    const [best, ...others] = ranked;
    if (best === undefined) return undefined;
    const rivals = others.filter(({ score }) => best.score - score < MIN_LEAD).map(({ entry }) => entry);
    const found = only([best.entry, ...rivals], country);
    return found && { channel: found.channel, reason: "similar" };
  }

  /** The channels that resemble an item most, best first. */
  candidates(item: Named, limit: number): GuideChannel[] {
    return this.#ranked(item, itemCountry(item))
      .slice(0, limit)
      .map(({ entry }) => entry.channel);
  }

  /** Compares with the channels that share the item's rarest words. */
  #ranked(item: Named, country: string): { readonly entry: Entry; readonly score: number }[] {
    const wanted = namesOf(item).map((name) => wordsOf(withoutCountry(name)));
    const words = [...new Set(wanted.flatMap((name) => [...name.words]))];
    const rarestFirst = words
      .map((word) => this.#byWord.get(word) ?? [])
      .filter((entries) => entries.length > 0)
      .sort((a, b) => a.length - b.length);
    const compared = new Set(rarestFirst.flat().slice(0, MAX_COMPARED));
    const scoreOf = (entry: Entry) =>
      Math.max(...entry.names.flatMap((name) => wanted.map((each) => similarity(each, name)))) -
      (country !== "" && entry.country !== "" && entry.country !== country ? 0.2 : 0);
    return [...compared].map((entry) => ({ entry, score: scoreOf(entry) })).sort((a, b) => b.score - a.score);
  }
}

function namesOfChannel({ names, id }: GuideChannel): readonly string[] {
  return names.length > 0 ? names : [id.replace(/\.[a-z]{2}$/i, "")];
}

function namesOf({ title, tvgName }: Named): string[] {
  return [...new Set([tvgName, title])].filter((name) => name.trim() !== "");
}

/** Returns the one entry that fits: all of one channel id, or the only one of the country. */
function only(entries: readonly Entry[], country: string): Entry | undefined {
  const near = entries.filter((entry) => entry.country === country || country === "" || entry.country === "");
  const pool = entries.filter((entry) => entry.country === country && country !== "");
  const chosen = pool.length > 0 ? pool : near;
  const ids = new Set(chosen.map(({ channel }) => channel.id.toLowerCase()));
  return ids.size === 1 ? chosen[0] : undefined;
}

/**
 * Many guides list a channel once for each picture quality. Returns the entry with the spelling of `name`, otherwise the first entry
 * that differs from it only in words of quality. The result is empty without such an entry, or if the entries have several countries.
 */
function oneOfQualities(entries: readonly Entry[], name: string, country: string): readonly Entry[] {
  const near = entries.filter((entry) => entry.country === country || country === "" || entry.country === "");
  const wanted = strictName(withoutCountry(name));
  const same = near.filter(({ channel }) =>
    namesOfChannel(channel).some((each) => strictName(each) === wanted),
  );
  if (new Set(same.map((entry) => entry.country)).size > 1) return [];
  const folded = foldText(name);
  const exact = same.find(({ channel }) => namesOfChannel(channel).some((each) => foldText(each) === folded));
  return [exact ?? same[0]].filter((entry) => entry !== undefined);
}

/** A name without words of quality, but with what is in brackets: `Arte (Deutsch)` is not `Arte`. */
function strictName(name: string): string {
  return channelName(written(name).replace(/[()[\]{}]/g, " "));
}

/** The weighted share of common words (Dice); 0 if the numbers differ. */
function similarity(a: Words, b: Words): number {
  if (a.numbers !== b.numbers) return 0;
  let shared = 0;
  for (const word of a.words) if (b.words.has(word)) shared += weightOf(word);
  const all = sum(a.words) + sum(b.words);
  return all === 0 ? 0 : (2 * shared) / all;
}

function sum(words: ReadonlySet<string>): number {
  let weight = 0;
  for (const word of words) weight += weightOf(word);
  return weight;
}

function weightOf(word: string): number {
  return COMMON.has(word) ? COMMON_WEIGHT : 1;
}

function wordsOf(name: string): Words {
  const plain = nameWords(written(name))
    .join(" ")
    .replace(/\bplus\s*1\b/g, "+1");
  const all = plain.match(/\p{L}+|\d+|\+\d+/gu) ?? [];
  return {
    numbers: all
      .filter((word) => /^\+?\d/.test(word))
      .sort()
      .join(" "),
    words: new Set(all.filter((word) => !/^\+?\d/.test(word))),
  };
}

/** Two names are equal if these are. */
function plainName(name: string): string {
  return channelName(written(withoutCountry(name)));
}

/** Folds a name and writes words of two forms in one. */
function written(name: string): string {
  return foldText(name).replace(/\p{L}+/gu, (word) => SAME.get(word) ?? word);
}

function withoutCountry(name: string): string {
  return name.replace(COUNTRY_PREFIX, "");
}

function itemCountry({ countries, title, tvgName, tvgId }: Named): string {
  if (countries?.length === 1) return countries[0]!;
  return countryOf(tvgId, title) || countryOf("", tvgName);
}

/** The country that an id (`bbc1.uk`) or the start of a name says; empty if unknown. */
function countryOf(id: string, name: string): string {
  const code = (/\.([a-z]{2})$/i.exec(id)?.[1] ?? COUNTRY_PREFIX.exec(name)?.[1] ?? "").toLowerCase();
  return COUNTRIES[code] ?? (code.length === 2 ? code : "");
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}
