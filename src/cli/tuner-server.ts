import { createChannelOpener, numberedChannels } from "../../routes/channel-list.ts";
import { TUNER_COUNT, TUNER_MODEL } from "../../routes/tuner.ts";
import { addressScope } from "../base/address.ts";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { startTunerControl } from "../devices/tuner-control.ts";
import type { Engine } from "../engine/engine.ts";
import type { Library } from "../library/library.ts";
import { PacedFeed } from "../live/input/source-paced.ts";
import { startTunerDiscovery } from "../net/tuner-discovery.ts";
import type { Runtime } from "../runtime/contract.ts";
import { VERSION } from "../settings/version.ts";

/** Dependencies of {@link startTuner}. */
export interface TunerServerDependencies {
  readonly runtime: Pick<Runtime, "net" | "clock" | "surroundings">;
  readonly tunerId: string;
  readonly httpPort: number;
  readonly engine: Pick<Engine, "playChannel">;
  readonly library: Library;
  /** Whether clients of the local network may play URLs of it. */
  readonly privateUrls: "local" | "intranet";
  readonly log: Log;
}

/** Datagrams leave at the rate of the stream's clock: receivers have small buffers. A source's clock may be slightly fast. */
const DATAGRAM_PACE = { earlyMs: 0, speed: 1.001 };

/** Makes the engine appear as a network tuner: answers searches and serves the control protocol. Returns a function that stops both. */
export function startTuner(dependencies: TunerServerDependencies): () => void {
  const { runtime, privateUrls, engine, library } = dependencies;
  const play = createChannelOpener(engine, library, { isPlayer: true });
  const about = { tunerCount: TUNER_COUNT, model: TUNER_MODEL, version: VERSION };
  const isAllowed = () => library.access.allowsIntranet;
  const stops = [
    startTunerDiscovery({ ...dependencies, ...about, isAllowed }),
    startTunerControl({
      ...{ ...dependencies, ...about, isAllowed },
      channels: async () =>
        [...(await numberedChannels(library))].map(([number, item]) => ({
          ...{ number, id: item.id, name: item.displayTitle || item.title },
        })),
      async open({ id }, host, signal) {
        const allowPrivateUrls = privateUrls === "intranet" || addressScope(host) === "loopback";
        const item = await library.items.get(id);
        if (!item || item.deletedAt !== null) throw new SluiceError("unknown_item", `there is no item ${id}`);
        const reader = (await play(item, { allowPrivateUrls }, signal)).getReader();
        const feed = {
          next: async () => (await reader.read()).value,
          close: () => void reader.cancel().catch(() => {}),
        };
        return new PacedFeed(feed, runtime.clock, DATAGRAM_PACE);
      },
    }),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}
