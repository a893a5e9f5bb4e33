import { toHex } from "../base/bytes.ts";
import { decodeUtf8, encodeUtf8 } from "../base/utf8.ts";
import type { Files, KeyValueStore } from "../runtime/contract.ts";

/** The engine that has the records without a prefix: those of the time before other engines used the store. */
const FIRST_KEY = "meta/first-engine";
const ID_BYTES = 8;
const MAX_FILE_BYTES = 1_024;

/** What {@link openScope} needs. */
export interface ScopeDependencies {
  readonly store: KeyValueStore;
  readonly files: Pick<Files, "read" | "replace">;
  /** The folder of this engine's library. */
  readonly folder: string;
  readonly randomBytes: (length: number) => Uint8Array;
}

/** The records of one engine in a store that several engines share. */
export interface EngineScope {
  /** 16 hexadecimal digits; the same after a restart. */
  readonly engineId: string;
  /** The records that belong to files of this machine: recordings, broadcasts, catch-up. */
  readonly store: KeyValueStore;
}

/** Opens the records of this engine. Its id is in a file of its data folder. */
export async function openScope({
  store,
  files,
  folder,
  randomBytes,
}: ScopeDependencies): Promise<EngineScope> {
  const path = `${folder}/engine-id`;
  const kept = decodeUtf8((await files.read(path, MAX_FILE_BYTES)) ?? new Uint8Array());
  let engineId = kept;
  if (!/^[0-9a-f]{16}$/.test(kept)) {
    engineId = toHex(randomBytes(ID_BYTES));
    await files.replace(path, encodeUtf8(engineId));
  }
  await store.commit({ check: [[FIRST_KEY, undefined]], set: [[FIRST_KEY, engineId]] });
  const isFirst = (await store.get(FIRST_KEY)) === engineId;
  return { engineId, store: isFirst ? store : prefixed(store, `engine/${engineId}/`) };
}

/** Returns the part of a store whose keys begin with a prefix; without `watch`, because only this engine writes there. */
function prefixed(store: KeyValueStore, prefix: string): KeyValueStore {
  const entry = ([key, value]: readonly [string, unknown]) => [prefix + key, value] as const;
  return {
    get: (key) => store.get(prefix + key),
    async *list(part) {
      for await (const [key, value] of store.list(prefix + part)) yield [key.slice(prefix.length), value];
    },
    commit: ({ check = [], set = [], delete: deleted = [] }) =>
      store.commit({
        check: check.map(entry),
        set: set.map(entry),
        delete: deleted.map((key) => prefix + key),
      }),
    ...(store.refuseChanges && { refuseChanges: () => store.refuseChanges!() }),
    close: () => store.close(),
  };
}
