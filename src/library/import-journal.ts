import * as v from "valibot";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import type { TaskRunner } from "./tasks.ts";

/** Records running imports, so that the next start can report those that were interrupted. */
export interface ImportJournal {
  /** Records an import under the title of its task; `end` removes the record. */
  begin(title: string): Promise<{ end(): Promise<void> }>;
}

const PREFIX = "meta/import/";
const title = v.pipe(v.string(), v.maxLength(100));

/** Loads the journal and reports interrupted imports as failed tasks; they cannot continue without the uploaded list. */
export async function openImportJournal(
  store: KeyValueStore,
  tasks: Pick<TaskRunner, "start">,
  log: Log,
): Promise<ImportJournal> {
  for await (const [key, value] of store.list(PREFIX)) {
    await store.commit({ delete: [key] });
    const saved = v.safeParse(title, value);
    if (saved.success) reportInterrupted(saved.output, tasks, log);
  }
  let last = 0;
  return {
    async begin(title) {
      const key = `${PREFIX}${++last}`;
      await store.commit({ set: [[key, title]] });
      return { end: () => store.commit({ delete: [key] }).then(() => {}) };
    },
  };
}

function reportInterrupted(title: string, tasks: Pick<TaskRunner, "start">, log: Log): void {
  const problem = "interrupted because the engine stopped; repeat it, existing items are not added twice";
  log.warn(`an import was ${problem}`, { import: title });
  const run = () => Promise.reject(new SluiceError("cancelled", problem));
  tasks.start({ category: "content", title, actions: ["reload_playlist"], run });
}
