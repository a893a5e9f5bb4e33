import * as v from "valibot";
import type { KeyValueStore } from "../runtime/contract.ts";
import { MAX_GUIDE_LENGTH, MAX_GUIDES } from "./external-record.ts";
import { boundedGuides } from "./guides.ts";

/** The programme guides that imported lists named: an export names them again. */
export interface ImportGuides {
  all(): readonly string[];
  /** Keeps these too, the newest first; the oldest go where there are too many. */
  add(guides: readonly string[]): Promise<void>;
}

const KEY = "meta/guides";
const schema = v.pipe(v.array(v.pipe(v.string(), v.maxLength(MAX_GUIDE_LENGTH))), v.maxLength(MAX_GUIDES));

/** What is kept of them. */
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
