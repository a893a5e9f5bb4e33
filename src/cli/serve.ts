import { isDeepStrictEqual } from "node:util";
import { LogRing } from "../activity/log-ring.ts";
import { deferred } from "../async/deferred.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { needsUdp } from "../net/confined/proxy.ts";
import { type ConfigSources, reachSettings } from "../settings/config.ts";
import type { Config, SettingsTable } from "../settings/settings.ts";
import { VERSION } from "../settings/version.ts";
import type { Arguments } from "./args.ts";
import { type BannerFacts, banner } from "./banner.ts";
import type { Context } from "./context.ts";
import { exposureWarnings, isInContainer } from "./exposure.ts";
import { configFrom } from "./load-config.ts";
import { lanAddresses } from "./own-addresses.ts";
import { RestoreDesk } from "./restore-desk.ts";
import { openService, type Service } from "./service.ts";
import { passedSocket, type ServiceManager, serviceManager } from "./service-manager.ts";
import { SettingsDesk } from "./settings-desk.ts";
import { aborted, onReloadSignal, stopSignals } from "./stop-signals.ts";

/** What `serve` needs to restart with changed settings. */
export interface SettingsAccess {
  readonly table: SettingsTable;
  /** Reads flags, variables and the config file again. Rejects with `bad_configuration`. */
  readonly sources: () => Promise<ConfigSources>;
  /** The config file, which may not exist; undefined if the user has no folder for it. */
  readonly path: string | undefined;
  /** Creates the log, whose level is that of the current settings; `ring` receives its lines. */
  readonly logOf: (current: () => Config, ring: LogRing) => Log;
}

/**
 * `sluice serve`: runs until SIGINT or SIGTERM. Resolves to the exit code. If the settings page asks for a restart, or SIGHUP
 * arrives after the settings were changed, the engine closes and opens again in this process; if it cannot start with the changed
 * settings, it starts with the previous ones.
 */
export async function serve(
  context: Context,
  config: Config,
  args: Arguments,
  settings: SettingsAccess,
): Promise<number> {
  let running = config;
  let started: Config | undefined;
  const logRing = new LogRing();
  const log = settings.logOf(() => running, logRing);
  const stop = stopSignals(log, () => running.drainTime);
  const manager = serviceManager(context.environment, log);
  let restarted = deferred();
  const reload = async () => {
    try {
      const changed = configFrom(settings.table, await settings.sources());
      if (isDeepStrictEqual(changed, running)) return log.info("the settings are unchanged");
      log.info("the settings have changed: restarting");
      restarted.resolve();
    } catch (error) {
      log.error("cannot read the changed settings; keeping the previous ones", { reason: messageOf(error) });
    }
  };
  const ignoreReloads = onReloadSignal(context.stdin.isTTY === true, () => void reload());
  /** Changes the settings of the running engine. */
  let apply: Service["apply"] = () => {};
  const desk = new SettingsDesk({
    ...settings,
    files: context.runtime.files,
    running: () => running,
    onApply(changed) {
      running = changed;
      apply(changed);
    },
    onRestart: () => restarted.resolve(),
  });
  const restores = new RestoreDesk({
    runtime: context.runtime,
    log: log.named("restore"),
    running: () => running,
    onRestart: () => restarted.resolve(),
  });
  try {
    // If the data folder cannot be written, the start of the engine says so.
    await restores.clear().catch(() => {});
    for (;;) {
      restarted = deferred();
      const end = Promise.race([aborted(stop.signal), restarted.promise]);
      try {
        const opened = (service: Service) => {
          apply = (changed) => service.apply(changed);
        };
        const facts = { context, config: running, log, logRing, args, desk, restores, manager, opened };
        await serveUntil(end, { ...facts, stop });
        started = running;
      } catch (error) {
        const isReverted = await desk.revert(messageOf(error));
        if (!isReverted && (started === undefined || started === running)) throw error;
        log.error("cannot start with the changed settings; starting with the previous ones", {
          reason: messageOf(error),
        });
        if (!isReverted && started !== undefined) {
          running = started;
          continue;
        }
      }
      if (stop.signal.aborted) break;
      await restores.apply();
      running = configFrom(settings.table, await settings.sources());
    }
    log.info("stopped");
    return 0;
  } finally {
    stop.release();
    ignoreReloads();
    manager.close();
  }
}

interface Run {
  readonly context: Context;
  readonly config: Config;
  readonly log: Log;
  readonly logRing: LogRing;
  readonly args: Arguments;
  readonly desk: SettingsDesk;
  readonly restores: RestoreDesk;
  readonly manager: ServiceManager;
  readonly stop: Pick<ReturnType<typeof stopSignals>, "signal" | "stop">;
  /** Called when the engine runs. */
  readonly opened: (service: Service) => void;
}

/** Runs the engine until `end` resolves. */
async function serveUntil(
  end: Promise<void>,
  { context, config, log, logRing, args, desk, restores, manager, opened, stop }: Run,
): Promise<void> {
  const { runtime, webAssets } = context;
  const service = await openService({
    ...{ runtime, webAssets, config, log, logRing, settings: desk, restore: restores },
    stop: () => stop.stop(),
  });
  try {
    const descriptor = passedSocket(context.environment);
    const listener = await service.listen({ host: config.host, port: config.httpPort, descriptor });
    const tcpApi = await service.listenForTcpClients(listener.address);
    desk.applied();
    opened(service);
    const facts: BannerFacts = {
      version: VERSION,
      runtime: `${runtime.name} ${runtime.version}`,
      http: listener.address,
      p2pPort: service.p2pPort,
      hasUdp: needsUdp(reachSettings(config)),
      dataDir: config.dataDir,
      cacheLimit: config.cacheLimit,
      lanAddresses: lanAddresses(),
      warnings: exposureWarnings(listener.address, runtime.surroundings.networks(), isInContainer()),
    };
    context.stdout.write(banner(facts, bannerForm(context, args)));
    manager.ready();
    await end;
    if (stop.signal.aborted && config.drainTime > 0) await service.drain(config.drainTime);
    log.info("stopping");
    await Promise.all([tcpApi?.close(), listener.close()]);
  } finally {
    await service.close();
  }
}

/** Terminals show a QR code, unless NO_COLOR is set: the code needs colors (https://no-color.org). */
function bannerForm({ stdout, environment }: Context, { flags }: Arguments): "text" | "terminal" | "json" {
  if (flags.has("json")) return "json";
  return stdout.isTTY === true && (environment.NO_COLOR ?? "") === "" ? "terminal" : "text";
}
