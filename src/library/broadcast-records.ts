import * as v from "valibot";
import type { Log } from "../base/log.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import type { BroadcastOptions, BroadcastRecords } from "./contract.ts";

const PREFIX = "broadcast/";
/** Keeps records below the 60 KiB limit of the store. */
const MAX_TEXT = 4096;
const MAX_ENTRIES = 32;

const text = v.pipe(v.string(), v.maxLength(MAX_TEXT));
const texts = v.pipe(v.array(v.pipe(v.string(), v.maxLength(512))), v.maxLength(MAX_ENTRIES));
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(1));

/** `isRotated` counts for one start only. */
const optionsEntries = {
  name: v.pipe(v.string(), v.minLength(1), v.maxLength(64)),
  source: v.nullable(text),
  isLooped: v.boolean(),
  isStandby: v.exactOptional(v.boolean()),
  successorPath: v.exactOptional(text),
  title: v.nullable(text),
  description: v.nullable(text),
  categories: texts,
  languages: texts,
  countries: texts,
  logo: v.nullable(text),
  trackers: texts,
  relays: texts,
  isPrivate: v.boolean(),
  uploadLimit: v.nullable(count),
  bitsPerSecond: v.nullable(count),
  manifests: texts,
  addresses: texts,
  renditions: v.exactOptional(text),
  variants: v.exactOptional(texts),
  programmes: v.exactOptional(text),
  // No option may be left out of the record.
} satisfies Record<keyof Omit<BroadcastOptions, "isRotated">, unknown>;

const optionsRecord: v.GenericSchema<unknown, BroadcastOptions> = v.object(optionsEntries);

/** Creates the records in the library's store, with keys `broadcast/<name>`. */
export function createBroadcastRecords(store: KeyValueStore, log: Log): BroadcastRecords {
  return {
    async list() {
      const all: BroadcastOptions[] = [];
      for await (const [key, value] of store.list(PREFIX)) {
        const parsed = v.safeParse(optionsRecord, value);
        if (parsed.success && `${PREFIX}${parsed.output.name}` === key) all.push(parsed.output);
        else log.error(`the record ${key} cannot be read; start that broadcast again to replace it`);
      }
      return all;
    },
    async keep(options) {
      await store.commit({ set: [[`${PREFIX}${options.name}`, v.parse(optionsRecord, options)]] });
    },
    async forget(name) {
      await store.commit({ delete: [`${PREFIX}${name}`] });
    },
  };
}
