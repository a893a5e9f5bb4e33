import * as v from "valibot";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import type { TaskRunner } from "./tasks.ts";

/** Which imports run, so that the next start can tell of those that the end of the engine cut off. */
export interface ImportMarks {
  /** Notes an import, named as its task is. */
  begin(title: string): Promise<ImportMark>;
}

/** One import that runs. */
export interface ImportMark {
  /** It came to its end, good or bad. */
  end(): Promise<void>;
}

const PREFIX = "meta/import/";
const title = v.pipe(v.string(), v.maxLength(100));

/** Reads what was noted, and tells of it as tasks that failed: their lists are gone, so nothing can go on by itself. */
export async function openImportMarks(
  store: KeyValueStore,
  tasks: Pick<TaskRunner, "start">,
  log: Log,
): Promise<ImportMarks> {
  for await (const [key, value] of store.list(PREFIX)) {
    await store.commit({ delete: [key] });
    const saved = v.safeParse(title, value);
    if (saved.success) tellInterrupted(saved.output, tasks, log);
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

function tellInterrupted(title: string, tasks: Pick<TaskRunner, "start">, log: Log): void {
  const problem = "cut off by the end of the engine; import it once more, what is there is not added again";
  log.warn(`an import was ${problem}`, { import: title });
  const run = () => Promise.reject(new SluiceError("cancelled", problem));
  tasks.start({ category: "content", title, actions: ["reload_playlist"], run });
}
