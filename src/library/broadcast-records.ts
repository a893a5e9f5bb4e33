import * as v from "valibot";
import type { Log } from "../base/log.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import type { BroadcastRecords, BroadcastWish } from "./contract.ts";

const PREFIX = "broadcast/";
/** No record is larger than a store takes (60 KiB): these are the words of one who is asked by nobody else. */
const MAX_TEXT = 4096;
const MAX_ENTRIES = 32;

const text = v.pipe(v.string(), v.maxLength(MAX_TEXT));
const texts = v.pipe(v.array(v.pipe(v.string(), v.maxLength(512))), v.maxLength(MAX_ENTRIES));
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(1));

const wishRecord: v.GenericSchema<unknown, BroadcastWish> = v.object({
  name: v.pipe(v.string(), v.minLength(1), v.maxLength(64)),
  source: v.nullable(text),
  isLooped: v.boolean(),
  isStandby: v.exactOptional(v.boolean()),
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
});

/** The records in the library's store: `broadcast/<name>`. */
export function createBroadcastRecords(store: KeyValueStore, log: Log): BroadcastRecords {
  return {
    async list() {
      const wishes: BroadcastWish[] = [];
      for await (const [key, value] of store.list(PREFIX)) {
        const parsed = v.safeParse(wishRecord, value);
        if (parsed.success && `${PREFIX}${parsed.output.name}` === key) wishes.push(parsed.output);
        else
          log.error(
            `the record ${key} cannot be read; that stream is not broadcast until it is started anew`,
          );
      }
      return wishes;
    },
    async keep(wish) {
      await store.commit({ set: [[`${PREFIX}${wish.name}`, v.parse(wishRecord, wish)]] });
    },
    async forget(name) {
      await store.commit({ delete: [`${PREFIX}${name}`] });
    },
  };
}
