import * as v from "valibot";
import { SerialQueue } from "../async/serial-queue.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after, type UnixSeconds } from "../base/time.ts";
import type { Item, Items } from "../library/contract.ts";
import type { Guide, Programme } from "../library/guide/guide-contract.ts";
import type { FoundProgrammes } from "../library/guide/programme-search.ts";
import { foldText } from "../library/item-names.ts";
import type { Clock, KeyValueStore } from "../runtime/contract.ts";
import type {
  RecordedProgramme,
  Recording,
  Recordings,
  SeriesRule,
  SeriesRules,
} from "./recording-contract.ts";
import { MAX_TEXT, storedPadding } from "./recording-record.ts";

/** What the planner reads of the guide. */
export interface PlannerGuide {
  readonly guide: Pick<Guide, "programmes">;
  searchProgrammes(query: string): Promise<FoundProgrammes>;
}

/** Dependencies of {@link SeriesPlanner}. */
export interface PlannerDependencies extends PlannerGuide {
  readonly store: KeyValueStore;
  readonly clock: Clock;
  readonly items: Pick<Items, "get">;
  readonly recordings: Pick<Recordings, "list" | "add" | "change" | "stop">;
  readonly log: Log;
}

const PREFIX = "recording-series/";
const MAX_RULES = 200;
/** Episodes that a rule remembers, so that repeats are not recorded again when the user has deleted them. */
const MAX_SEEN = 500;
/** Guides change some times a day, and start times of programmes that are next a little more often. */
const PLAN_MS = 5 * 60_000;
const AHEAD_SECONDS = 14 * 86_400;
const MAX_PROGRAMMES = 1_000;
/** A programme that moved by more than this is another one. */
const MAX_MOVE_SECONDS = 4 * 3_600;

const storedRule = v.object({
  id: v.pipe(v.number(), v.safeInteger(), v.minValue(1)),
  title: v.pipe(v.string(), v.maxLength(MAX_TEXT)),
  itemId: v.nullable(v.pipe(v.number(), v.safeInteger())),
  padding: storedPadding,
  allowPrivateUrls: v.boolean(),
  seen: v.array(v.string()),
});
type StoredRule = Readonly<v.InferOutput<typeof storedRule>>;

/** Plans the recordings of the rules, and moves planned recordings when the guide changes the times of their programmes. */
export class SeriesPlanner implements SeriesRules {
  readonly #parts: PlannerDependencies;
  readonly #rules: Map<number, StoredRule>;
  readonly #queue = new SerialQueue();
  #cancel: () => void = () => {};
  #isClosed = false;

  private constructor(parts: PlannerDependencies, rules: Map<number, StoredRule>) {
    this.#parts = parts;
    this.#rules = rules;
    this.#schedule();
  }

  static async load(parts: PlannerDependencies): Promise<SeriesPlanner> {
    const rules = new Map<number, StoredRule>();
    for await (const [key, value] of parts.store.list(PREFIX)) {
      const read = v.safeParse(storedRule, value);
      if (read.success) rules.set(read.output.id, read.output);
      else parts.log.error("a rule for recordings cannot be read", { key });
    }
    return new SeriesPlanner(parts, rules);
  }

  list(): SeriesRule[] {
    return [...this.#rules.values()].map(presented);
  }

  async add(rule: Omit<SeriesRule, "id"> & { readonly allowPrivateUrls: boolean }): Promise<SeriesRule> {
    const title = rule.title.trim().slice(0, MAX_TEXT);
    if (foldText(title) === "") throw new SluiceError("bad_parameter", "expected the title of the series");
    const same = [...this.#rules.values()].find(
      (each) => foldText(each.title) === foldText(title) && each.itemId === rule.itemId,
    );
    if (same) return presented(same);
    if (this.#rules.size >= MAX_RULES)
      throw new SluiceError("too_many", `the limit of ${MAX_RULES} series is reached; delete some`);
    const id = Math.max(0, ...this.#rules.keys()) + 1;
    const stored = { ...rule, title, id, seen: [] };
    await this.#keep(stored);
    await this.plan();
    return presented(stored);
  }

  async remove(id: number): Promise<void> {
    if (!this.#rules.has(id)) throw new SluiceError("unknown_item", `there is no series ${id}`);
    await this.#parts.store.commit({ delete: [keyOf(id)] });
    this.#rules.delete(id);
    for (const { id: recording, seriesId, state } of this.#parts.recordings.list())
      if (seriesId === id && state === "planned") await this.#parts.recordings.stop(recording);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await this.#queue.run(async () => {});
  }

  /** Follows the guide now: moves recordings, then plans those of the rules. */
  plan(): Promise<void> {
    return this.#queue.run(async () => {
      for (const recording of this.#parts.recordings.list()) await this.#follow(recording);
      for (const rule of [...this.#rules.values()]) await this.#planRule(rule);
    });
  }

  #schedule(): void {
    const { clock, log } = this.#parts;
    this.#cancel = clock.at(after(clock.now(), PLAN_MS), () => {
      this.plan()
        .catch((error: unknown) => log.error("recordings cannot be planned", { reason: messageOf(error) }))
        .finally(() => {
          if (!this.#isClosed) this.#schedule();
        });
    });
  }

  /** Moves a recording to the new times of its programme. */
  async #follow({ id, itemId, state, programme }: Recording): Promise<void> {
    if ((state !== "planned" && state !== "recording") || programme === null) return;
    const item = await this.#parts.items.get(itemId);
    if (!item) return;
    const { start, stop, title } = programme;
    const found = await this.#parts.guide.programmes(
      item,
      (start - MAX_MOVE_SECONDS) as UnixSeconds,
      (stop + MAX_MOVE_SECONDS) as UnixSeconds,
      MAX_PROGRAMMES,
    );
    const same = found.filter(
      (each) => foldText(each.title) === foldText(title) && isSameEpisode(each, programme),
    );
    const [nearest] = same.sort((a, b) => Math.abs(a.start - start) - Math.abs(b.start - start));
    if (!nearest || (nearest.start === start && nearest.stop === stop)) return;
    this.#parts.log.info("the guide has moved a programme that is recorded", { id, title });
    await this.#parts.recordings.change(id, nearest);
  }

  async #planRule(rule: StoredRule): Promise<void> {
    const { recordings, clock, log } = this.#parts;
    const now = clock.unixSeconds();
    const seen = new Set(rule.seen);
    for (const { item, programme } of await this.#programmesOf(rule)) {
      const episode = episodeKey(programme, item);
      const isPlanned = recordings
        .list()
        .some(({ itemId, programme: other }) => itemId === item.id && other?.start === programme.start);
      if (programme.stop <= now || seen.has(episode) || isPlanned) continue;
      try {
        const { title, start, stop } = programme;
        const { padding, id: seriesId, allowPrivateUrls } = rule;
        const channel = item.displayTitle || item.title;
        const about = { itemId: item.id, title, channel, start, stop };
        await recordings.add({ ...about, programme, padding, seriesId, allowPrivateUrls });
        seen.add(episode);
      } catch (error) {
        log.warn("a programme of a series is not recorded", { title: rule.title, reason: messageOf(error) });
      }
    }
    if (seen.size === rule.seen.length || !this.#rules.has(rule.id)) return;
    await this.#keep({ ...rule, seen: [...seen].slice(-MAX_SEEN) });
  }

  /** The present and later programmes of a rule, the earliest first. */
  async #programmesOf({ title, itemId }: StoredRule): Promise<{ item: Item; programme: Programme }[]> {
    const { items, guide, clock, searchProgrammes } = this.#parts;
    const folded = foldText(title);
    const fits = (programme: Programme) => foldText(programme.title) === folded;
    if (itemId === null)
      return (await searchProgrammes(title)).found.filter(({ programme }) => fits(programme));
    const item = await items.get(itemId);
    if (!item || item.deletedAt !== null) return [];
    const now = clock.unixSeconds();
    const until = (now + AHEAD_SECONDS) as UnixSeconds;
    const found = await guide.programmes(item, now, until, MAX_PROGRAMMES);
    return found.filter(fits).map((programme) => ({ item, programme }));
  }

  async #keep(rule: StoredRule): Promise<void> {
    await this.#parts.store.commit({ set: [[keyOf(rule.id), rule]] });
    this.#rules.set(rule.id, rule);
  }
}

function presented({ id, title, itemId, padding }: StoredRule): SeriesRule {
  return { id, title, itemId, padding };
}

function keyOf(id: number): string {
  return `${PREFIX}${id}`;
}

/**
 * Identifies an episode, so that a repeat has the same key: its number, else its subtitle, else its description. Without any of them
 * each showing is an episode of its own.
 */
function episodeKey({ start, subtitle, description, episode }: RecordedProgramme, item: Item): string {
  const text = foldText(episode) || foldText(subtitle) || foldText(description).slice(0, 100);
  return text || `${item.id} ${start}`;
}

/** Whether two programmes of one title can be the same showing: nothing that both say differs. */
function isSameEpisode(a: RecordedProgramme, b: RecordedProgramme): boolean {
  const differs = (one: string, other: string) =>
    one !== "" && other !== "" && foldText(one) !== foldText(other);
  return !differs(a.episode, b.episode) && !differs(a.subtitle, b.subtitle);
}
