import { channelRequest } from "../../routes/channel-list.ts";
import { connect } from "../../routes/session.ts";
import { onAbort } from "../async/abort.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Leases } from "../cluster/cluster-contract.ts";
import type { Engine } from "../engine/engine.ts";
import type { ProbeTarget } from "../health/health-contract.ts";
import { Prober } from "../health/prober.ts";
import type { Item } from "../library/contract.ts";
import { contentKey } from "../library/item-figures.ts";
import type { Library } from "../library/library.ts";
import type { Clock } from "../runtime/contract.ts";
import type { Config } from "../settings/settings.ts";

interface ProbeDependencies {
  readonly clock: Clock;
  readonly engine: Pick<Engine, "start" | "figures" | "onStart">;
  readonly library: Pick<Library, "items" | "health">;
  readonly leases: Leases;
  readonly log: Log;
}

/** At most this many channels are visited; more than one day has time for. */
const MAX_PROBED = 10_000;

const INTERVAL_SECONDS = { hourly: 3_600, daily: 86_400 } as const;

/** Starts to visit the channels, unless the setting `probe` is off. */
export function startProber(
  config: Pick<Config, "probe">,
  { engine, library, ...machine }: ProbeDependencies,
): Prober | undefined {
  if (config.probe === "off") return undefined;
  return new Prober({
    ...machine,
    records: library.health,
    intervalSeconds: INTERVAL_SECONDS[config.probe],
    targets: () => probeTargets(engine, library),
    players: () => engine.figures().players,
    onStart: (started) => engine.onStart(started),
  });
}

/** Lists the enabled items that are not films, each with a way to play its own content for a visit. */
async function* probeTargets(
  engine: ProbeDependencies["engine"],
  { items }: Pick<Library, "items">,
): AsyncGenerator<ProbeTarget, void> {
  const reader = items.read({ isEnabled: true, sort: "added" });
  let count = 0;
  for (let some = await reader.next(); some.length > 0; some = await reader.next())
    for (const item of some) {
      if (item.isLive === 0) continue;
      if (++count > MAX_PROBED) return;
      yield probeTarget(engine, item, contentKey(items.figures(item)));
    }
}

function probeTarget(engine: ProbeDependencies["engine"], item: Item, content: string): ProbeTarget {
  let received = () => 0;
  return {
    content,
    downloaded: () => received(),
    async open(signal) {
      // No user asked for this visit, and a list from the Internet may name addresses of this network.
      const session = await engine.start({ ...channelRequest(item, false), isVisit: true }, signal);
      received = receivedSince(engine, session.infohash);
      onAbort(signal, () => session.stop());
      return session.transportStream(connect, signal);
    },
  };
}

/** Returns a function that returns how much a transfer has received from now on. */
function receivedSince(engine: Pick<Engine, "figures">, infohash: Infohash): () => number {
  let last = 0;
  const total = () => {
    const found = engine.figures().transfers.find((transfer) => transfer.infohash === infohash);
    // A transfer that was closed received nothing more.
    last = found?.figures.downloaded ?? last;
    return last;
  };
  const before = total();
  return () => Math.max(0, total() - before);
}
