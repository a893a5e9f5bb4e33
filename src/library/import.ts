import { SluiceError } from "../base/errors.ts";
import type { Clock } from "../runtime/contract.ts";
import { createBreathe } from "./breathe.ts";
import type { ImportOptions, ItemDraft, Items } from "./contract.ts";
import { contentText, draftOf } from "./draft.ts";
import type { LanguageReader } from "./draft-languages.ts";
import { checkHead, type ListReading, readEntries, taken } from "./import-entries.ts";
import type { ImportGuides } from "./import-guides.ts";
import type { ImportMarks } from "./import-marks.ts";
import { type ItemSync, MAX_UPSERT_DRAFTS } from "./item-sync.ts";
import { MarkSet } from "./mark-set.ts";
import { readListBody } from "./playlist-body.ts";
import { textMark } from "./refresh-match.ts";
import { counted, type Progress, type TaskRunner } from "./tasks.ts";

/** What an import works with. */
export interface ImportParts {
  readonly items: Pick<Items, "each"> & Pick<ItemSync, "upsert">;
  readonly tasks: TaskRunner;
  readonly clock: Clock;
  readonly languages: LanguageReader;
  readonly guides: ImportGuides;
  readonly marks: ImportMarks;
}

/** Each may hold a list of 64 MiB until its task has gone through it. */
const MAX_AT_ONCE = 3;
const MAX_SHOWN_NAME = 60;
/** What is kept of a title is cut: only what is never cut can be compared with it. */
const COMPARED_LENGTH = 100;

/** Imports playlists, each in a task of its own. */
export type Importer = (body: ReadableStream<Uint8Array>, options: ImportOptions) => Promise<number>;

/**
 * An importer. It reads the body to its end and then resolves to the task that adds the items; rejects with
 * `not_a_playlist` or `too_large` before that, and with `too_many` where others are being imported.
 *
 * What the owner has already, the same link under the same title, is not added again: so an import that was interrupted can
 * simply be done once more. What a task brought before it failed stays.
 */
export function createImporter(parts: ImportParts): Importer {
  let running = 0;
  return async (body, options) => {
    if (running >= MAX_AT_ONCE) {
      const error = new SluiceError(
        "too_many",
        `${running} playlists are being imported; wait for one to end`,
      );
      await body.cancel(error).catch(() => {}); // Nobody reads it.
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
          const mark = await parts.marks.begin(title);
          try {
            return await importBlocks(parts, blocks, options, progress);
          } finally {
            // One that the end of the engine cuts off is told of at the next start.
            if (!progress.signal.aborted) await mark.end();
          }
        } finally {
          running--;
        }
      };
      const id = parts.tasks.start({ category: "content", title, actions: ["reload_playlist"], run });
      isStarted = true;
      return id;
    } finally {
      if (!isStarted) running--;
    }
  };
}

async function importBlocks(
  parts: ImportParts,
  blocks: Uint8Array[],
  { name, owner, category }: ImportOptions,
  { report, signal }: Progress,
): Promise<string> {
  const breathe = createBreathe(parts.clock);
  const there = new MarkSet();
  for await (const { title, content } of parts.items.each({ owner, externalPlaylistId: -1, sort: "added" })) {
    there.add(mark({ title, content }));
    await breathe();
  }
  const defaults = { owner, category, externalPlaylistId: -1 };
  const reading: ListReading<ItemDraft> = {
    make: (entry) => draftOf(entry, defaults, parts.languages),
    breathe,
    signal,
  };
  let added = 0;
  let repeated = 0;
  let tooLong = 0;
  const facts = await readEntries(taken(blocks), reading, async (drafts) => {
    const fresh = drafts.filter((draft) => there.add(mark(draft)));
    repeated += drafts.length - fresh.length;
    for (let at = 0; at < fresh.length; at += MAX_UPSERT_DRAFTS) {
      signal.throwIfAborted();
      const outcome = await parts.items.upsert(fresh.slice(at, at + MAX_UPSERT_DRAFTS));
      added += outcome.added;
      tooLong += outcome.ids.filter((id) => id === undefined).length;
    }
    report(added, null, "items");
  });
  if (facts.count === 0) throw new SluiceError("not_a_playlist", emptyText(facts.leftOut));
  await parts.guides.add(facts.guides);
  const leftOut = facts.leftOut + tooLong;
  const notes = [
    `Imported "${name.slice(0, MAX_SHOWN_NAME)}": ${counted(added)} items`,
    repeated > 0 ? `already there: ${counted(repeated)}` : "",
    leftOut > 0 ? `cannot be played: ${counted(leftOut)}` : "",
  ];
  return notes.filter((note) => note !== "").join("; ");
}

function emptyText(leftOut: number): string {
  const others = leftOut > 0 ? `; ${counted(leftOut)} with links of another kind` : "";
  return `the list has no entry that can be played${others}`;
}

/** The same link under the same title. */
function mark({ title, content }: Pick<ItemDraft, "title" | "content">): number {
  return textMark(contentText(content)) + textMark(title.slice(0, COMPARED_LENGTH).toLowerCase());
}
