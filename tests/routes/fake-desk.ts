import type { BroadcastDesk, OnAir } from "../../routes/house.ts";
import { SluiceError } from "../../src/base/errors.ts";
import type { ContentId, Infohash } from "../../src/base/ids.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import type { Broadcast } from "../../src/engine/live/broadcast-contract.ts";
import type { BroadcastWish } from "../../src/library/contract.ts";

/** A wish for the test pattern, without anything said. */
export function fakeWish(name: string): BroadcastWish {
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

/** A broadcast as it is told of; nothing is sent. */
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

/** A desk in memory; what is named `bad` cannot be started. */
export function fakeDesk(): BroadcastDesk & { readonly wishes: Map<string, BroadcastWish> } {
  const wishes = new Map<string, BroadcastWish>();
  const onAir = (wish: BroadcastWish): OnAir => ({
    name: wish.name,
    wish,
    broadcast: wish.name === "away" ? undefined : fakeBroadcast(wish.name),
    problem: wish.name === "away" ? "nothing answers at http://x/" : undefined,
  });
  return {
    wishes,
    async start(asked) {
      const wish = { ...asked, name: asked.name || "test-pattern" };
      wishes.set(wish.name, wish);
      return onAir(wish);
    },
    async stop(name) {
      if (!wishes.delete(name)) throw new SluiceError("unknown_broadcast", name);
    },
    list: () => [...wishes.values()].map(onAir),
  };
}
