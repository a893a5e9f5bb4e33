import type { M3uEntry } from "../media/m3u.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Clock } from "../runtime/contract.ts";
import { createBreathe } from "./breathe.ts";
import type { ItemDraft } from "./contract.ts";
import { type DraftDefaults, draftOf, essenceOf } from "./draft.ts";
import type { LanguageReader } from "./draft-languages.ts";
import type { ExternalRecord } from "./external-record.ts";
import { boundedGuides } from "./guides.ts";
import { type ListReading, readEntries, taken } from "./import-entries.ts";
import { type ItemSync, MAX_UPSERT_DRAFTS } from "./item-sync.ts";
import { fetchList, suspicion } from "./refresh-fetch.ts";
import { type EntryMarks, textMark } from "./refresh-match.ts";
import { planRefresh } from "./refresh-plan.ts";
import type { SourceRows } from "./source-rows.ts";
import { counted, type Progress } from "./tasks.ts";

/** What a refresh works with. */
export interface RefreshParts {
  readonly outbound: Pick<Outbound, "open">;
  readonly clock: Clock;
  readonly items: ItemSync;
  readonly rows: SourceRows;
  readonly languages: LanguageReader;
}

/** How one refresh goes about it. */
export interface RefreshWay {
  /** Asks for the list even where it has not changed. */
  readonly isForced: boolean;
  /** Keeps these changes before the first item is touched. */
  begin(changes: Partial<ExternalRecord>): Promise<void>;
}

/** What a refresh came to. */
export interface RefreshOutcome {
  /** What is to be kept of it. */
  readonly changes: Partial<ExternalRecord>;
  /** Why nothing was taken over; null where all went well. */
  readonly problem: string | null;
  readonly retryAfterSeconds: number;
  /** What was done, for people. */
  readonly message: string;
}

/**
 * Fetches a list and makes its items what it says (docs/design/library.md). The whole list is here and has been read to
 * its end before the first item is touched; what fails before leaves everything as it was.
 */
export async function refreshList(
  parts: RefreshParts,
  record: ExternalRecord,
  way: RefreshWay,
  progress: Progress,
): Promise<RefreshOutcome> {
  const { signal } = progress;
  const isConditional = !way.isForced && parts.items.countOf(record.id) > 0;
  const answer = await fetchList(parts, record, isConditional, signal);
  if (answer.kind === "unchanged") return outcome({}, "nothing has changed");
  if (answer.kind === "failed")
    return { ...outcome({}, ""), problem: answer.problem, retryAfterSeconds: answer.retryAfterSeconds };

  const breathe = createBreathe(parts.clock);
  const defaults: DraftDefaults = {
    owner: record.owner,
    category: record.category,
    externalPlaylistId: record.id,
  };
  const { marks, guides, leftOut } = await readMarks(answer.blocks, { make: marksOf, breathe, signal });
  const doubt = suspicion(record, marks.length, leftOut);
  if (doubt) return { ...outcome({ hasShrunk: marks.length > 0 }, ""), problem: doubt.message };

  const before = await parts.rows.load(record.id);
  const today = Math.floor(parts.clock.unixSeconds() / 86_400);
  const plan = await planRefresh(before, marks, record.nextKey, today, breathe);
  const entryCount = marks.length;
  // From here on items change: a version that we do not have whole must not be taken for the one we have.
  await way.begin({ isPending: true, etag: "", lastModified: "", nextKey: plan.nextKey });
  await parts.rows.save(record.id, before, plan.rows);
  const make = (entry: M3uEntry) => draftOf(entry, defaults, parts.languages);
  const done = await takeOver(
    parts,
    record.id,
    answer.blocks,
    plan.keys,
    { make, breathe, signal },
    progress,
  );
  const { etag, lastModified } = answer;
  const changes = {
    etag,
    lastModified,
    guides: boundedGuides(guides),
    entryCount,
    hasShrunk: false,
    isPending: false,
  };
  const left = leftOut > 0 ? `; cannot be played: ${counted(leftOut)}` : "";
  return outcome(
    changes,
    `${counted(done.count)} items: ${done.added} new, ${done.changed} changed, ${done.removed} gone${left}`,
  );
}

function outcome(changes: Partial<ExternalRecord>, message: string): RefreshOutcome {
  return { changes, problem: null, retryAfterSeconds: 0, message };
}

/** First time through the list: what its entries are recognised by. */
async function readMarks(blocks: readonly Uint8Array[], reading: ListReading<EntryMarks>) {
  const marks: EntryMarks[] = [];
  const facts = await readEntries(blocks, reading, (some) => {
    for (const entry of some) marks.push(entry);
  });
  return { marks, ...facts };
}

function marksOf(entry: M3uEntry): EntryMarks | undefined {
  const essence = essenceOf(entry);
  if (!essence) return undefined;
  const { content, title, tvgId } = essence;
  return {
    link: textMark(content),
    name: textMark(title.toLowerCase()),
    guide: tvgId ? textMark(tvgId.toLowerCase()) : 0,
  };
}

/** Second time: the items become what their entries say; those without an entry go. */
async function takeOver(
  { items }: RefreshParts,
  playlistId: number,
  blocks: Uint8Array[],
  keys: readonly number[],
  reading: ListReading<ItemDraft>,
  progress: Progress,
): Promise<{ count: number; added: number; changed: number; removed: number }> {
  const keep = new Set<number>();
  let entry = 0;
  let added = 0;
  let changed = 0;
  await readEntries(taken(blocks), reading, async (drafts) => {
    const keyed = drafts
      .map((draft) => ({ ...draft, sourceKey: String(keys[entry++]!) }))
      .filter(({ sourceKey }) => sourceKey !== "0");
    for (let at = 0; at < keyed.length; at += MAX_UPSERT_DRAFTS) {
      const result = await items.upsert(keyed.slice(at, at + MAX_UPSERT_DRAFTS));
      for (const id of result.ids) if (id !== undefined) keep.add(id);
      added += result.added;
      changed += result.changed;
    }
    progress.report(entry, keys.length, "entries");
  });
  const removed = await items.removeExcept(playlistId, keep);
  return { count: keep.size, added, changed, removed };
}
