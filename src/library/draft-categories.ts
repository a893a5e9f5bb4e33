/** Media categories (interface: Playlist export) by the names that lists use. */
const MEDIA_CATEGORIES: Readonly<Record<string, string>> = {
  tv: "tv",
  movies: "movies",
  movie: "movies",
  films: "movies",
  vod: "movies",
  music_video: "music_video",
  "music video": "music_video",
  "music videos": "music_video",
  music: "music",
  other: "other",
};

/** Channel categories of the network by the names that lists use. */
const NETWORK_CATEGORIES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    (
      "informational entertaining educational movies documentaries sport fashion music regional ethnic religion " +
      "teleshop erotic_18_plus other_18_plus cyber_games amateur webcam kids series promotion"
    )
      .split(" ")
      .map((name) => [name, name]),
  ),
  news: "informational",
  info: "informational",
  entertainment: "entertaining",
  education: "educational",
  documentary: "documentaries",
  sports: "sport",
  religious: "religion",
  children: "kids",
};

/** Groups of an entry beyond this are ignored. */
const MAX_GROUPS = 20;

interface Categories {
  readonly category: string | null;
  readonly subcategory: string;
  /** The groups as written in the list. */
  readonly tags: readonly string[];
}

/**
 * CHOICE(import-groups): each group of an entry (`group-title`, separated by `;`) becomes a tag verbatim, so that an
 * export restores the groups. A group with the name of a media or network category also sets category or subcategory.
 */
export function categoriesOf(group: string): Categories {
  const tags = [...new Set(group.split(";", MAX_GROUPS).map((part) => part.trim()))].filter(Boolean);
  const words = tags.map((tag) => tag.toLowerCase());
  const known = (table: Readonly<Record<string, string>>) =>
    words.map((word) => (Object.hasOwn(table, word) ? table[word] : undefined)).find(Boolean);
  return { category: known(MEDIA_CATEGORIES) ?? null, subcategory: known(NETWORK_CATEGORIES) ?? "", tags };
}
