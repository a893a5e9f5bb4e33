import { isDeepStrictEqual } from "node:util";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { MAX_COMMIT_BYTES } from "../base/store-limits.ts";
import { hasEngines } from "../cluster/engine-cluster.ts";
import type { KeyValueChange, KeyValueStore } from "../runtime/contract.ts";
import type { Config } from "../settings/settings.ts";
import { type Arguments, usageError } from "./args.ts";
import type { Context } from "./context.ts";
import { statusLineOf } from "./status-line.ts";
import { MIGRATION_KEY, storeOptions } from "./store.ts";

/** Records of one commit; with their bytes below, the commit stays within its limits. */
const BATCH_RECORDS = 250;
const BATCH_BYTES = MAX_COMMIT_BYTES / 4;
/** Interval of progress lines if standard error is not a terminal. */
const PLAIN_LINE_MS = 5_000;

type Entry = readonly [key: string, value: unknown];

/**
 * `sluice migrate --from STORE --to STORE`: copies all records, and compares both stores at the end. If it is interrupted, the same command
 * continues. Resolves to the exit code.
 */
export async function migrate(context: Context, config: Config, log: Log, args: Arguments): Promise<number> {
  const [from, to] = [placeOf(args, "from"), placeOf(args, "to")];
  if (from === to) throw usageError("migrate: --from and --to name the same store");
  const { runtime, stdout, stderr } = context;
  const line = statusLineOf(stderr, PLAIN_LINE_MS);
  const show = (text: string) => line.show(`migrate: ${text}`, performance.now(), text.split(" ")[0]);
  const source = await runtime.openStore(storeOptions({ ...config, store: from }, log, false));
  try {
    const target = await runtime.openStore(storeOptions({ ...config, store: to }, log, false));
    try {
      if ((await source.get(MIGRATION_KEY)) !== undefined)
        throw new SluiceError(
          "bad_configuration",
          "--from is the target of a migration that is not complete",
        );
      await begin(target, args.flags.has("force"));
      for (const store of [source, target]) await refuseEngines(store, context);
      const total = await countOf(source);
      const changed = await copy(source, target, (done) => show(`copying ${done} of ${total} records`));
      await verify(source, target, (done) => show(`comparing ${done} of ${total} records`));
      await target.commit({ delete: [MIGRATION_KEY] });
      line.end();
      if (args.flags.has("json")) stdout.write(`${JSON.stringify({ records: total, changed })}\n`);
      else stderr.write(`migrate: ${total} records are equal in both stores; ${changed} were written\n`);
      return 0;
    } finally {
      await target.close();
    }
  } finally {
    line.end();
    await source.close();
  }
}

function placeOf(args: Arguments, flag: "from" | "to"): string {
  const store = args.flags.get(flag);
  if (typeof store !== "string" || store === "memory")
    throw usageError(`migrate: --${flag}: expected sqlite, or the URL of a Redis or Valkey server`);
  return store;
}

/** Marks the target, which no engine opens before the migration is complete. Refuses one with other records unless `force`. */
async function begin(target: KeyValueStore, force: boolean): Promise<void> {
  if ((await target.get(MIGRATION_KEY)) !== undefined) return;
  for await (const _ of target.list("")) {
    if (force) break;
    throw new SluiceError("bad_configuration", "--to already has records; --force replaces them");
  }
  await target.commit({ set: [[MIGRATION_KEY, true]] });
}

/** Refuses a store that engines use: they write while they run. */
async function refuseEngines(store: KeyValueStore, { runtime }: Context): Promise<void> {
  if (store.watch && (await hasEngines(store, runtime.clock)))
    throw new SluiceError("bad_configuration", "an engine uses this store; stop all of its engines first");
}

async function countOf(store: KeyValueStore): Promise<number> {
  let count = 0;
  for await (const _ of store.list("")) count++;
  return count;
}

/** Writes what differs and removes what the source does not have. Returns how many records were written or removed. */
async function copy(
  source: KeyValueStore,
  target: KeyValueStore,
  progress: (done: number) => void,
): Promise<number> {
  let changed = 0;
  let done = 0;
  let bytes = 0;
  let set: Entry[] = [];
  let removed: string[] = [];
  const flush = async () => {
    const change: KeyValueChange = { set, delete: removed };
    if (set.length + removed.length > 0) await target.commit(change);
    changed += set.length + removed.length;
    [set, removed, bytes] = [[], [], 0];
  };
  for await (const [ours, theirs] of pairs(source, target)) {
    if (ours && !equalJson(ours, theirs)) {
      set.push(ours);
      bytes += JSON.stringify(ours).length;
    } else if (!ours && theirs) removed.push(theirs[0]);
    if (ours) progress(++done);
    if (set.length + removed.length >= BATCH_RECORDS || bytes >= BATCH_BYTES) await flush();
  }
  await flush();
  return changed;
}

/** Throws if the stores differ. */
async function verify(
  source: KeyValueStore,
  target: KeyValueStore,
  progress: (done: number) => void,
): Promise<void> {
  let done = 0;
  for await (const [ours, theirs] of pairs(source, target)) {
    if (!ours || !equalJson(ours, theirs))
      throw new SluiceError(
        "bad_configuration",
        `the stores differ at ${JSON.stringify((ours ?? theirs)![0])}: run the same command again`,
      );
    progress(++done);
  }
}

/** Yields the records of both stores side by side, in the order of their keys, without the mark of the migration. */
async function* pairs(
  source: KeyValueStore,
  target: KeyValueStore,
): AsyncGenerator<readonly [ours: Entry | undefined, theirs: Entry | undefined]> {
  const one = source.list("")[Symbol.asyncIterator]();
  const two = target.list("")[Symbol.asyncIterator]();
  const nextOf = async (list: AsyncIterator<Entry>): Promise<Entry | undefined> => {
    const { value, done } = await list.next();
    if (done) return undefined;
    return value[0] === MIGRATION_KEY ? nextOf(list) : value;
  };
  let [ours, theirs] = [await nextOf(one), await nextOf(two)];
  while (ours || theirs) {
    const order =
      ours && theirs ? Buffer.compare(Buffer.from(ours[0]), Buffer.from(theirs[0])) : ours ? -1 : 1;
    yield [order <= 0 ? ours : undefined, order >= 0 ? theirs : undefined];
    if (order <= 0) ours = await nextOf(one);
    if (order >= 0) theirs = await nextOf(two);
  }
}

/** Compares values as JSON; the order of members does not count. */
function equalJson([, ours]: Entry, theirs: Entry | undefined): boolean {
  return theirs !== undefined && isDeepStrictEqual(ours, theirs[1]);
}
