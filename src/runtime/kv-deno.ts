import { join } from "node:path";
import { SluiceError } from "../base/errors.ts";
import type { KeyValueChange, KeyValueStore } from "./contract.ts";
import { checkedChange, checkedKey, holds } from "./kv-values.ts";

/** As much of Deno KV as is used (https://docs.deno.com/deploy/kv/). Its values here are JSON as UTF-8: of text, its own
 * form can take twice the bytes. */
interface DenoKv {
  get(key: readonly string[]): Promise<DenoEntry>;
  list(
    selector: { start: readonly unknown[]; end: readonly unknown[] },
    options: { batchSize: number },
  ): AsyncIterable<DenoEntry>;
  atomic(): DenoAtomic;
  close(): void;
}
interface DenoEntry {
  readonly key: readonly string[];
  readonly value: unknown;
  readonly versionstamp: string | null;
}
interface DenoAtomic {
  check(entry: { key: readonly string[]; versionstamp: string | null }): DenoAtomic;
  set(key: readonly string[], value: unknown): DenoAtomic;
  delete(key: readonly string[]): DenoAtomic;
  commit(): Promise<{ readonly ok: boolean }>;
}

/** Changed by every commit, so that one check of Deno's covers all of ours (it takes at most 100). */
const GENERATION = ["generation"];
const RECORD = "record";
const BATCH_RECORDS = 100;
/** Tools beside the engine commit rarely: so often another is met only where something is wrong. */
const TRIES = 100;

/**
 * Opens the records in Deno KV. Rejects with `bad_configuration` where this is not Deno, or was started without
 * `--unstable-kv`. `release` is called when the store is closed.
 */
export async function openDenoKv(folder: string, release: () => void): Promise<KeyValueStore> {
  const open = (globalThis as { Deno?: { openKv?: (path: string) => Promise<DenoKv> } }).Deno?.openKv;
  if (open === undefined) {
    throw new SluiceError(
      "bad_configuration",
      "the store deno-kv needs Deno with the flag --unstable-kv; or use --store sqlite",
    );
  }
  return denoStore(await open(join(folder, "deno-kv.db")), release);
}

function denoStore(kv: DenoKv, release: () => void): KeyValueStore {
  let isClosed = false;
  const refuseClosed = () => {
    if (isClosed) throw new Error("the store is closed");
  };
  const json = async (key: string) => textOf((await kv.get([RECORD, key])).value);

  async function tryCommit(change: ReturnType<typeof checkedChange>): Promise<boolean | undefined> {
    const { versionstamp } = await kv.get(GENERATION);
    for (const [key, canonical] of change.check) if (!holds(await json(key), canonical)) return false;
    if (change.set.size + change.delete.size === 0) return true;
    const atomic = kv.atomic().check({ key: GENERATION, versionstamp }).set(GENERATION, 1);
    for (const key of change.delete) if (!change.set.has(key)) atomic.delete([RECORD, key]);
    for (const [key, text] of change.set) atomic.set([RECORD, key], new TextEncoder().encode(text));
    return (await atomic.commit()).ok ? true : undefined;
  }

  let last: Promise<unknown> = Promise.resolve();
  async function commit(change: ReturnType<typeof checkedChange>): Promise<boolean> {
    for (let left = TRIES; left > 0; left--) {
      const isDone = await tryCommit(change);
      if (isDone !== undefined) return isDone;
    }
    throw new Error(`others changed the store ${TRIES} times while this commit was tried`);
  }

  return {
    async get(key) {
      refuseClosed();
      const text = await json(checkedKey(key));
      return text === undefined ? undefined : JSON.parse(text);
    },
    async *list(prefix) {
      refuseClosed();
      // Numbers come after all text.
      const selector = { start: [RECORD, prefix], end: [RECORD, 0] };
      for await (const { key, value } of kv.list(selector, { batchSize: BATCH_RECORDS })) {
        const name = key[1] ?? "";
        if (!name.startsWith(prefix)) return;
        yield [name, JSON.parse(textOf(value) ?? "null")];
        refuseClosed();
      }
    },
    async commit(change: KeyValueChange) {
      refuseClosed();
      const checked = checkedChange(change);
      const done = last.then(() => commit(checked));
      // The next commit must not fail because this one did.
      last = done.catch(() => {});
      return done;
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      await last;
      kv.close();
      release();
    },
  };
}

function textOf(value: unknown): string | undefined {
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : undefined;
}
