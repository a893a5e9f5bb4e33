import { encodeUtf8 } from "../base/utf8.ts";
import { MAX_TUNER_TEXT } from "../wire/tuner/control.ts";

/** A channel of the tuner. */
export interface TunerChannel {
  /** Identifies it for {@link TunerControlDependencies.open}. */
  readonly id: number;
  /** Such as `5` or `5.1`. */
  readonly number: string;
  readonly name: string;
}

/** A channel with its place: the programme number is unique in the whole line-up. */
export interface TunerProgramme extends TunerChannel {
  readonly programme: number;
  /** In hertz. */
  readonly frequency: number;
}

/** The broadcast channels of the map `us-bcast` of libhdhomerun: first and last number, frequency of the first in hertz. */
const BANDS = [
  [14, 36, 473_000_000],
  [38, 51, 617_000_000],
  [7, 13, 177_000_000],
  [5, 6, 79_000_000],
  [2, 4, 57_000_000],
] as const;
const SPACING = 6_000_000;
/** Programmes on one frequency that libhdhomerun reads (HDHOMERUN_CHANNELSCAN_MAX_PROGRAM_COUNT). */
const MAX_PROGRAMMES = 64;
/** libhdhomerun keeps this many bytes of a name. */
const MAX_NAME_BYTES = 31;
/** Programme numbers have 16 bits. */
const MAX_PROGRAMME = 0xffff;
/** What precedes the programmes or follows them in a list. */
const LIST_TAIL = "tsid=0x0001\n";

/**
 * Channels, distributed over the frequencies that clients scan: as many on each as fit into the list that describes it, so that a scan
 * is short. Channels beyond the last frequency are found by their number only.
 *
 * CHOICE(tuner-frequencies): a programme number is the item id, so that a stored scan stays valid when channels are added or removed.
 */
export class TunerLineup {
  readonly #byNumber = new Map<string, TunerProgramme>();
  readonly #byProgramme = new Map<number, TunerProgramme>();
  readonly #byFrequency = new Map<number, TunerProgramme[]>();

  constructor(channels: readonly TunerChannel[]) {
    const frequencies = BANDS.flatMap(([first, last, hertz]) =>
      Array.from({ length: last - first + 1 }, (_, i) => hertz + i * SPACING),
    );
    const small = new Set(channels.map(({ id }) => id).filter((id) => id <= MAX_PROGRAMME));
    let [place, bytes, free] = [0, LIST_TAIL.length, 1];
    for (const channel of channels) {
      while (small.has(free)) free++;
      const programme = channel.id > 0 && channel.id <= MAX_PROGRAMME ? channel.id : free++;
      if (programme > MAX_PROGRAMME) break;
      const line = encodeUtf8(lineOf({ ...channel, programme })).length;
      const count = this.#byFrequency.get(frequencies[place]!)?.length ?? 0;
      if (count >= MAX_PROGRAMMES || bytes + line > MAX_TUNER_TEXT)
        [place, bytes] = [place + 1, LIST_TAIL.length];
      bytes += line;
      const frequency = frequencies[place] ?? 0;
      const placed = { ...channel, programme, frequency };
      this.#byNumber.set(channel.number, placed);
      this.#byProgramme.set(programme, placed);
      if (frequency > 0)
        this.#byFrequency.set(frequency, [...(this.#byFrequency.get(frequency) ?? []), placed]);
    }
  }

  get size(): number {
    return this.#byNumber.size;
  }

  /** The channel with this number. */
  numbered(number: string): TunerProgramme | undefined {
    return this.#byNumber.get(number);
  }

  /** The channel with this programme number, on any frequency. */
  programme(programme: number): TunerProgramme | undefined {
    return this.#byProgramme.get(programme);
  }

  /** The channels on a frequency. */
  at(frequency: number): readonly TunerProgramme[] {
    return this.#byFrequency.get(frequency) ?? [];
  }

  /** The list of the programmes on a frequency, as clients read it; `none` if there are none. */
  describe(frequency: number): string {
    const programmes = this.at(frequency);
    return programmes.length === 0 ? "none" : programmes.map(lineOf).join("") + LIST_TAIL;
  }
}

/** Returns the frequency that a client names in hertz or as a number of a broadcast channel; undefined for anything else. */
export function frequencyOf(number: number): number | undefined {
  if (number >= 1_000_000) return number;
  const band = BANDS.find(([first, last]) => number >= first && number <= last);
  return band && band[2] + (number - band[0]) * SPACING;
}

function lineOf({ programme, number, name }: Omit<TunerProgramme, "frequency">): string {
  // Clients read the name up to a parenthesis, which would state the kind of the programme.
  let text = name.replace(/[\p{Cc}()]+/gu, " ").trim();
  while (encodeUtf8(text).length > MAX_NAME_BYTES) text = [...text].slice(0, -1).join("");
  return `${programme}: ${number} ${text}\n`;
}
