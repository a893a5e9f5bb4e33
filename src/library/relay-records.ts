import * as v from "valibot";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { KeyValueStore } from "../runtime/contract.ts";

const PREFIX = "relay/";

/** A stream that the engine relays whenever it runs. */
export interface RelayRecord {
  readonly infohash: Infohash;
  readonly link: string;
  /** The content of a relay pass, which is secret. */
  readonly pass: string | null;
}

/** The records of the relays. */
export interface RelayRecords {
  /** Logs and skips records that cannot be read. */
  list(): Promise<RelayRecord[]>;
  /** Durable when it resolves. Throws if the link or the pass is too long. */
  keep(record: RelayRecord): Promise<void>;
  forget(infohash: Infohash): Promise<void>;
}

/** Characters. Links with all trackers are shorter; a pass has about 400. Both are below the 60 KiB limit of the store. */
export const MAX_RELAY_LINK = 16_384;
export const MAX_RELAY_PASS = 4_096;

const relayRecord = v.object({
  link: v.pipe(v.string(), v.maxLength(MAX_RELAY_LINK)),
  pass: v.nullable(v.pipe(v.string(), v.maxLength(MAX_RELAY_PASS))),
});

/** Creates the records in the library's store, with keys `relay/<infohash>`. */
export function createRelayRecords(
  store: Pick<KeyValueStore, "list" | "commit">,
  log: Pick<Log, "error">,
): RelayRecords {
  return {
    async list() {
      const all: RelayRecord[] = [];
      for await (const [key, value] of store.list(PREFIX)) {
        const parsed = v.safeParse(relayRecord, value);
        if (parsed.success) all.push({ infohash: key.slice(PREFIX.length) as Infohash, ...parsed.output });
        else log.error(`the record ${key} cannot be read; start that relay again to replace it`);
      }
      return all;
    },
    async keep({ infohash, link, pass }) {
      await store.commit({ set: [[PREFIX + infohash, v.parse(relayRecord, { link, pass })]] });
    },
    async forget(infohash) {
      await store.commit({ delete: [PREFIX + infohash] });
    },
  };
}
