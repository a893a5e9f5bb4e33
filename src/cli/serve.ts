import type { Log } from "../base/log.ts";
import { needsUdp } from "../engine/reach/needs-udp.ts";
import { reachSettings } from "../reach-settings.ts";
import type { Config } from "../settings.ts";
import { VERSION } from "../version.ts";
import { banner } from "./banner.ts";
import type { Context } from "./context.ts";
import { openHouse } from "./house.ts";
import { lanAddresses } from "./lan-addresses.ts";
import { aborted, stopSignals } from "./stop-signals.ts";

/** `sluice serve`: runs until SIGINT or SIGTERM. Resolves to the exit code. */
export async function serve(context: Context, config: Config, log: Log): Promise<number> {
  const { runtime } = context;
  const stop = stopSignals(log);
  try {
    const house = await openHouse({ runtime, webAssets: context.webAssets, config, log });
    try {
      const listener = await house.listen({ host: config.host, port: config.httpPort });
      context.stdout.write(
        banner({
          version: VERSION,
          runtime: `${runtime.name} ${runtime.version}`,
          http: listener.address,
          p2pPort: house.p2pPort,
          hasUdp: needsUdp(reachSettings(config)),
          dataDir: config.dataDir,
          cacheLimit: config.cacheLimit,
          lanAddresses: lanAddresses(),
        }),
      );
      await aborted(stop.signal);
      log.info("stopping");
      await listener.close();
    } finally {
      await house.close();
    }
    log.info("stopped");
    return 0;
  } finally {
    stop.release();
  }
}
