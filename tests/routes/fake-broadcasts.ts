import type { BroadcastEntry, BroadcastService } from "../../routes/http/dependencies.ts";
import { SluiceError } from "../../src/base/errors.ts";
import type { ContentId, Infohash } from "../../src/base/ids.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import type { BroadcastOptions } from "../../src/library/contract.ts";
import type { Broadcast } from "../../src/live/broadcast/broadcast-contract.ts";

/** Options for a broadcast of the test pattern, with default values. */
export function fakeBroadcastOptions(name: string): BroadcastOptions {
  return {
    name,
    source: null,
    isLooped: false,
    title: null,
    description: null,
    categories: [],
    languages: [],
    countries: [],
    logo: null,
    trackers: [],
    relays: [],
    isPrivate: false,
    uploadLimit: null,
    bitsPerSecond: null,
    manifests: [],
    addresses: [],
  };
}

/** A fake broadcast that sends nothing. */
export function fakeBroadcast(name: string): Broadcast {
  return {
    request: {
      name,
      place: { kind: "test-pattern" },
      isLooped: false,
      meta: { title: `About ${name}` },
      trackers: [],
      relays: [],
      isPrivate: false,
      uploadLimit: undefined,
      bytesPerSecond: undefined,
      manifests: [],
      addresses: [{ host: "192.168.1.5", port: 20_001 }],
    },
    infohash: "1".repeat(40) as Infohash,
    contentId: "2".repeat(40) as ContentId,
    transportFile: new Uint8Array(1),
    transportFilePath: `/data/broadcasts/${name}/${name}.sluice`,
    magnet: `magnet:?xt=urn:btih:${"1".repeat(40)}`,
    link: `sluice:?magnet=magnet%3A%3Fxt%3Durn%3Abtih%3A${"1".repeat(40)}`,
    startedAt: 1_780_000_000 as UnixSeconds,
    async offer() {},
    figures: () => ({
      health: "good",
      remark: "1.0 MB/s to 3 peers",
      peers: 12,
      children: 3,
      seq: 14_283,
      pieceAtMs: 1_780_000_000_125,
      bytesPerSecond: 27_125.4,
      uploadBytesPerSecond: 81_375.3,
      uploaded: 1_000_000,
    }),
    ended: new Promise(() => {}),
    stop: async () => {},
  };
}

/** A broadcast service in memory; a broadcast named `away` is never on air. */
export function fakeBroadcastService(): BroadcastService & {
  readonly records: Map<string, BroadcastOptions>;
} {
  const records = new Map<string, BroadcastOptions>();
  const entryOf = (options: BroadcastOptions): BroadcastEntry => ({
    name: options.name,
    options,
    broadcast: options.name === "away" ? undefined : fakeBroadcast(options.name),
    problem: options.name === "away" ? "nothing answers at http://x/" : undefined,
  });
  return {
    records,
    async start(requested) {
      const options = { ...requested, name: requested.name || "test-pattern" };
      records.set(options.name, options);
      return entryOf(options);
    },
    async stop(name) {
      if (!records.delete(name)) throw new SluiceError("unknown_broadcast", name);
    },
    list: () => [...records.values()].map(entryOf),
    relayPass: async (name) => `pass of ${name}`,
  };
}
