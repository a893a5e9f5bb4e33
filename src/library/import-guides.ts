import * as v from "valibot";
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
  const saved = v.safeParse(schema, await store.get(KEY));
  let guides: readonly string[] = saved.success ? saved.output : [];
  return {
    all: () => guides,
    async add(more) {
      const next = boundedGuides([...more, ...guides]);
      if (next.length === guides.length && next.every((guide, i) => guide === guides[i])) return;
      guides = next;
      await store.commit({ set: [[KEY, next]] });
    },
  };
}
