/** What the number of an item depends on. */
interface Numbered {
  readonly id: number;
  /** Attributes of its list entry, such as `tvg-chno=7`. */
  readonly tvgExtra: readonly string[];
}

/** Numbers of items that their list does not number, if their id is taken. */
const FREE_STEP = 100_000;

/** Returns the number that the list of an item gives it (`tvg-chno`), such as `7` or `7.1`; undefined if it gives none. */
export function channelNumberOf({ tvgExtra }: Pick<Numbered, "tvgExtra">): string | undefined {
  const listed = tvgExtra.find((text) => text.startsWith("tvg-chno="))?.slice("tvg-chno=".length) ?? "";
  return /^\d{1,6}(\.\d{1,6})?$/.test(listed) ? listed : undefined;
}

/**
 * Numbers channels; each number is unique.
 *
 * CHOICE(channel-numbers): a channel has the number that its list names (`tvg-chno`) unless an earlier one has it, else its item id.
 */
export function numberChannels<T extends Numbered>(items: readonly T[]): ReadonlyMap<string, T> {
  const listed = new Map<string, T>();
  for (const item of items) {
    const number = channelNumberOf(item);
    if (number !== undefined && !listed.has(number)) listed.set(number, item);
  }
  const channels = new Map<string, T>();
  for (const item of items) {
    const own = channelNumberOf(item);
    let number = own !== undefined && listed.get(own) === item ? own : String(item.id);
    for (let free = item.id; number !== own && (listed.has(number) || channels.has(number)); ) {
      free += FREE_STEP;
      number = String(free);
    }
    channels.set(number, item);
  }
  return channels;
}
