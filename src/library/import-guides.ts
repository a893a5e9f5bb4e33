import * as v from "valibot";
import { changeRecord, followRecords, isEqual } from "../async/records.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import { MAX_GUIDE_LENGTH, MAX_GUIDES } from "./external-record.ts";
import { boundedGuides } from "./guides.ts";

/** The program guides that imported lists name; exports name them too. */
export interface ImportGuides {
  all(): readonly string[];
  /** Adds guides at the front; beyond the limit the oldest are dropped. */
  add(guides: readonly string[]): Promise<void>;
}

const KEY = "meta/guides";
const schema = v.pipe(v.array(v.pipe(v.string(), v.maxLength(MAX_GUIDE_LENGTH))), v.maxLength(MAX_GUIDES));

/** Loads the stored guides. */
export async function openImportGuides(store: KeyValueStore): Promise<ImportGuides> {
  const read = (value: unknown): readonly string[] => {
    const saved = v.safeParse(schema, value);
    return saved.success ? saved.output : [];
  };
  let guides = read(await store.get(KEY));
  followRecords(store, KEY, (_key, value) => {
    guides = read(value);
  });
  return {
    all: () => guides,
    async add(more) {
      await changeRecord(store, KEY, (value) => {
        const before = read(value);
        guides = boundedGuides([...more, ...before]);
        return isEqual(guides, before) ? undefined : guides;
      });
    },
  };
}
