import { createYielder } from "../async/event-loop.ts";
import { SluiceError } from "../base/errors.ts";
import type { Clock } from "../runtime/contract.ts";
import type { ItemDraft, Items } from "./contract.ts";
import { draftOf } from "./draft.ts";
import type { LanguageReader } from "./draft-languages.ts";
import { FingerprintSet } from "./fingerprint-set.ts";
import { checkHead, consume, type ListReadOptions, readEntries } from "./import-entries.ts";
import type { ImportGuides } from "./import-guides.ts";
import type { ImportJournal } from "./import-journal.ts";
import { contentName } from "./item-figures.ts";
import { type ItemSync, MAX_UPSERT_DRAFTS } from "./item-sync.ts";
import { readListBody } from "./playlist-body.ts";
import { fingerprintOf } from "./refresh-match.ts";
import { formatCount, type Progress, type TaskRunner } from "./tasks.ts";

interface ImportDependencies {
  readonly items: Pick<Items, "read"> & Pick<ItemSync, "upsert">;
  readonly tasks: TaskRunner;
  readonly clock: Clock;
  readonly languages: LanguageReader;
  readonly guides: ImportGuides;
  readonly journal: ImportJournal;
}

/** Concurrent imports; each may hold a list of 64 MiB. */
const MAX_CONCURRENT = 3;
const MAX_SHOWN_NAME = 60;
/** Stored titles may be cut; this prefix never is. */
const COMPARED_LENGTH = 100;

/** Options of a playlist import. */
export interface ImportOptions {
  readonly name: string;
  readonly owner: string;
  readonly category: string | null;
}

type Importer = (body: ReadableStream<Uint8Array>, options: ImportOptions) => Promise<number>;

/**
 * Creates an importer. It reads the whole body, then resolves to the id of the task that adds the items. Rejects with
 * `not_a_playlist` or `too_large`, and with `too_many` if too many imports run.
 *
 * Entries whose link and title the owner already has are not added, so an interrupted import can be repeated. Items that
 * a task added before it failed stay.
 */
export function createImporter(dependencies: ImportDependencies): Importer {
  let running = 0;
  return async (body, options) => {
    if (running >= MAX_CONCURRENT) {
      const error = new SluiceError("too_many", `${running} imports are running; wait until one ends`);
      await body.cancel(error).catch(() => {}); // The body is not used.
      throw error;
    }
    running++;
    let isStarted = false;
    try {
      const blocks = await readListBody(body, new AbortController().signal);
      checkHead(blocks[0] ?? new Uint8Array(), blocks.length <= 1);
      const title = `Importing "${options.name.slice(0, MAX_SHOWN_NAME)}"`;
      const run = async (progress: Progress) => {
        try {
          const entry = await dependencies.journal.begin(title);
          try {
            return await importBlocks(dependencies, blocks, options, progress);
          } finally {
            // The entry of an interrupted import stays, and the next start reports it.
            if (!progress.signal.aborted) await entry.end();
          }
        } finally {
          running--;
        }
      };
      const id = dependencies.tasks.start({ category: "content", title, actions: ["reload_playlist"], run });
      isStarted = true;
      return id;
    } finally {
      if (!isStarted) running--;
    }
  };
}

async function importBlocks(
  dependencies: ImportDependencies,
  blocks: Uint8Array[],
  { name, owner, category }: ImportOptions,
  { report, signal }: Progress,
): Promise<string> {
  const yieldIfDue = createYielder(dependencies.clock);
  const existing = new FingerprintSet();
  const reader = dependencies.items.read({ owner, externalPlaylistId: -1, sort: "added" });
  for (let items = await reader.next(); items.length > 0; items = await reader.next()) {
    for (const item of items) existing.add(fingerprintOfItem(item));
    await yieldIfDue();
  }
  const defaults = { owner, category, externalPlaylistId: -1 };
  const readOptions: ListReadOptions<ItemDraft> = {
    make: (entry, header) => draftOf(entry, defaults, dependencies.languages, header),
    yieldIfDue,
    signal,
  };
  let added = 0;
  let repeated = 0;
  let tooLong = 0;
  const facts = await readEntries(consume(blocks), readOptions, async (drafts) => {
    const fresh = drafts.filter((draft) => existing.add(fingerprintOfItem(draft)));
    repeated += drafts.length - fresh.length;
    for (let at = 0; at < fresh.length; at += MAX_UPSERT_DRAFTS) {
      signal.throwIfAborted();
      const outcome = await dependencies.items.upsert(fresh.slice(at, at + MAX_UPSERT_DRAFTS));
      added += outcome.added;
      tooLong += outcome.ids.filter((id) => id === undefined).length;
    }
    report(added, null, "items");
  });
  if (facts.count === 0) throw new SluiceError("not_a_playlist", emptyText(facts.leftOut));
  await dependencies.guides.add(facts.guides);
  const leftOut = facts.leftOut + tooLong;
  const notes = [
    `Imported "${name.slice(0, MAX_SHOWN_NAME)}": ${formatCount(added)} items`,
    repeated > 0 ? `already present: ${formatCount(repeated)}` : "",
    leftOut > 0 ? `not playable: ${formatCount(leftOut)}` : "",
  ];
  return notes.filter((note) => note !== "").join("; ");
}

function emptyText(leftOut: number): string {
  const others = leftOut > 0 ? `; ${formatCount(leftOut)} have unsupported links` : "";
  return `the list has no playable entry${others}`;
}

/** The fingerprint of link and title. */
function fingerprintOfItem({ title, content }: Pick<ItemDraft, "title" | "content">): number {
  return fingerprintOf(contentName(content)) + fingerprintOf(title.slice(0, COMPARED_LENGTH).toLowerCase());
}
