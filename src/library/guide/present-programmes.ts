import type { UnixSeconds } from "../../base/time.ts";
import type { ListedProgramme, Programme } from "./guide-contract.ts";

/** A next programme that starts later is not shown. */
const NEXT_SECONDS = 24 * 3_600;
/** If a channel has no next programme yet, it is looked for again after this time. */
const INCOMPLETE_SECONDS = 300;
/** Texts that are kept, in UTF-16 units: those of 10,000 channels with descriptions of 300 characters. */
const MAX_UNITS = 8 * 1024 * 1024;
/** Memory of an entry besides its texts, counted in the same unit. */
const ENTRY_UNITS = 200;

/** Reads at most `limit` programmes of a channel that overlap `[from, to)`, in order. */
type ReadProgrammes = (from: UnixSeconds, to: UnixSeconds, limit: number) => Promise<readonly Programme[]>;

interface Entry {
  readonly from: UnixSeconds;
  readonly until: number;
  readonly units: number;
  readonly programmes: readonly ListedProgramme[];
}

/** The present programme of each channel and the next one, kept until one of them begins or ends. */
export class PresentProgrammes {
  readonly #entries = new Map<string, Entry>();
  #units = 0;

  /** Returns both for the channel with this key; `read` is called if they are not known. */
  async of(key: string, now: UnixSeconds, read: ReadProgrammes): Promise<readonly ListedProgramme[]> {
    const known = this.#entries.get(key);
    // The wall clock may be set back.
    if (known && known.from <= now && now < known.until) return known.programmes;
    const found = await read(now, (now + NEXT_SECONDS) as UnixSeconds, 2);
    const programmes = found.map(({ start, stop, title, description }) => ({
      start,
      stop,
      title,
      description,
    }));
    this.#keep(key, { from: now, until: endOf(programmes, now), units: unitsOf(programmes), programmes });
    return programmes;
  }

  #keep(key: string, entry: Entry): void {
    this.#drop(key);
    this.#entries.set(key, entry);
    this.#units += entry.units;
    for (const oldest of this.#entries.keys()) {
      if (this.#units <= MAX_UNITS) return;
      this.#drop(oldest);
    }
  }

  #drop(key: string): void {
    this.#units -= this.#entries.get(key)?.units ?? 0;
    this.#entries.delete(key);
  }
}

/** Returns the time at which others follow. The programmes of a careless guide overlap. */
function endOf([present, next]: readonly ListedProgramme[], now: UnixSeconds): number {
  if (present === undefined || next === undefined)
    return Math.min(present?.stop ?? Number.POSITIVE_INFINITY, now + INCOMPLETE_SECONDS);
  return next.start > now ? Math.min(present.stop, next.start) : present.stop;
}

function unitsOf(programmes: readonly ListedProgramme[]): number {
  return programmes.reduce(
    (sum, { title, description }) => sum + title.length + description.length,
    ENTRY_UNITS,
  );
}
