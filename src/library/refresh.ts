import { createYielder } from "../async/event-loop.ts";
import type { Fence } from "../async/records.ts";
import type { M3uEntry } from "../media/m3u.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Clock } from "../runtime/contract.ts";
import type { ItemDraft } from "./contract.ts";
import { type DraftDefaults, draftOf, identityOf } from "./draft.ts";
import type { LanguageReader } from "./draft-languages.ts";
import type { ExternalRecord } from "./external-record.ts";
import { boundedGuides } from "./guides.ts";
import { consume, type ListReadOptions, readEntries } from "./import-entries.ts";
import { type ItemSync, MAX_UPSERT_DRAFTS } from "./item-sync.ts";
import { fetchList, listProblem } from "./refresh-fetch.ts";
import { type EntryFingerprints, fingerprintOf } from "./refresh-match.ts";
import { planRefresh } from "./refresh-plan.ts";
import type { SourceRows } from "./source-rows.ts";
import { formatCount, type Progress } from "./tasks.ts";

/** Dependencies of {@link refreshList}. */
export interface RefreshDependencies {
  readonly outbound: Pick<Outbound, "open">;
  readonly clock: Clock;
  readonly items: ItemSync;
  readonly rows: SourceRows;
  readonly languages: LanguageReader;
}

interface RefreshOptions {
  /** Fetches the list even if it has not changed. */
  readonly isForced: boolean;
  /** Stores changes of the record; called before the first item changes. */
  begin(changes: Partial<ExternalRecord>): Promise<void>;
  /** Must hold until the end, unless undefined. */
  readonly fence: Fence | undefined;
}

/** The result of a refresh. */
export interface RefreshOutcome {
  /** Changes of the record. */
  readonly changes: Partial<ExternalRecord>;
  /** Why no item was changed; null on success. */
  readonly problem: string | null;
  readonly retryAfterSeconds: number;
  /** Summary for the user. */
  readonly message: string;
}

/**
 * Fetches a list and updates its items (docs/design/library.md). Reads the whole list before it changes the first item,
 * so an earlier failure changes nothing.
 */
export async function refreshList(
  dependencies: RefreshDependencies,
  record: ExternalRecord,
  { isForced, begin, fence }: RefreshOptions,
  progress: Progress,
): Promise<RefreshOutcome> {
  const { signal } = progress;
  const isConditional = !isForced && dependencies.items.countOf(record.id) > 0;
  const answer = await fetchList(dependencies, record, isConditional, signal);
  if (answer.kind === "unchanged") return outcome({}, "nothing has changed");
  if (answer.kind === "failed")
    return { ...outcome({}, ""), problem: answer.problem, retryAfterSeconds: answer.retryAfterSeconds };

  const yieldIfDue = createYielder(dependencies.clock);
  const defaults: DraftDefaults = {
    owner: record.owner,
    category: record.category,
    externalPlaylistId: record.id,
  };
  const { fingerprints, guides, leftOut } = await readFingerprints(answer.blocks, {
    make: fingerprintsOf,
    yieldIfDue,
    signal,
  });
  const doubt = listProblem(record, fingerprints.length, leftOut);
  if (doubt) return { ...outcome({ hasShrunk: fingerprints.length > 0 }, ""), problem: doubt.message };

  const before = await dependencies.rows.load(record.id);
  const today = Math.floor(dependencies.clock.unixSeconds() / 86_400);
  const plan = await planRefresh(before, fingerprints, record.nextKey, today, yieldIfDue);
  const entryCount = fingerprints.length;
  // From here on items change. Clears the validators, because an interrupted refresh leaves an incomplete version.
  await begin({ isPending: true, etag: "", lastModified: "", nextKey: plan.nextKey });
  await dependencies.rows.save(record.id, before, plan.rows, fence);
  const make = (entry: M3uEntry, header: ReadonlyMap<string, string>) =>
    draftOf(entry, defaults, dependencies.languages, header);
  const done = await updateItems(
    dependencies,
    record.id,
    answer.blocks,
    plan.keys,
    { make, yieldIfDue, signal, fence },
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
  const notPlayable = leftOut > 0 ? `; not playable: ${formatCount(leftOut)}` : "";
  return outcome(
    changes,
    `${formatCount(done.count)} items: ${done.added} new, ${done.changed} changed, ${done.removed} removed${notPlayable}`,
  );
}

function outcome(changes: Partial<ExternalRecord>, message: string): RefreshOutcome {
  return { changes, problem: null, retryAfterSeconds: 0, message };
}

/** First pass over the list: the fingerprints of its entries. */
async function readFingerprints(blocks: readonly Uint8Array[], reading: ListReadOptions<EntryFingerprints>) {
  const fingerprints: EntryFingerprints[] = [];
  const facts = await readEntries(blocks, reading, (some) => {
    for (const entry of some) fingerprints.push(entry);
  });
  return { fingerprints, ...facts };
}

function fingerprintsOf(entry: M3uEntry): EntryFingerprints | undefined {
  const essence = identityOf(entry);
  if (!essence) return undefined;
  const { content, title, tvgId } = essence;
  return {
    link: fingerprintOf(content),
    name: fingerprintOf(title.toLowerCase()),
    guide: tvgId ? fingerprintOf(tvgId.toLowerCase()) : 0,
  };
}

/** Second pass: updates the items from their entries and deletes items without an entry. */
async function updateItems(
  { items }: RefreshDependencies,
  playlistId: number,
  blocks: Uint8Array[],
  keys: readonly number[],
  options: ListReadOptions<ItemDraft> & { readonly fence: Fence | undefined },
  progress: Progress,
): Promise<{ count: number; added: number; changed: number; removed: number }> {
  const keep = new Set<number>();
  let entry = 0;
  let added = 0;
  let changed = 0;
  await readEntries(consume(blocks), options, async (drafts) => {
    const keyed = drafts
      .map((draft) => ({ ...draft, sourceKey: String(keys[entry++]!) }))
      .filter(({ sourceKey }) => sourceKey !== "0");
    for (let at = 0; at < keyed.length; at += MAX_UPSERT_DRAFTS) {
      const result = await items.upsert(keyed.slice(at, at + MAX_UPSERT_DRAFTS), options.fence);
      for (const id of result.ids) if (id !== undefined) keep.add(id);
      added += result.added;
      changed += result.changed;
    }
    progress.report(entry, keys.length, "entries");
  });
  const removed = await items.removeExcept(playlistId, keep, options.fence);
  return { count: keep.size, added, changed, removed };
}
