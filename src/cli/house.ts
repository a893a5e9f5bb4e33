import { hostname } from "node:os";
import { createApp } from "../../routes/app.ts";
import { createPage } from "../../routes/page.ts";
import { createScreenRoutes } from "../../routes/screens.ts";
import type { PeerAddress } from "../base/address.ts";
import { toHex } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import { engineSettings } from "../config.ts";
import { createEngine, type Engine } from "../engine/engine.ts";
import { createBroadcastLists } from "../engine/live/broadcast-lists.ts";
import { createBroadcasts } from "../engine/live/broadcasts.ts";
import { tellInside } from "../engine/reach/inside/self-test.ts";
import { stayInside, withOwnNetworks } from "../engine/reach/inside.ts";
import { createTransfers } from "../engine/transfers.ts";
import { createOutbound } from "../outbound/outbound.ts";
import { openMedia } from "../remux/open-media.ts";
import type { HttpListener, Runtime } from "../runtime/contract.ts";
import { openToRead } from "../runtime/read-file.ts";
import type { Config } from "../settings.ts";
import { VERSION } from "../version.ts";
import type { WebAsset } from "../web/assets.ts";
import { Switchboard } from "../web/switchboard.ts";
import { accessSettings } from "./access-settings.ts";
import { KeptBroadcasts } from "./broadcast-desk.ts";
import { broadcastRequest } from "./broadcast-request.ts";
import { diagnose } from "./diagnose.ts";
import { lanAddresses, ownLookup, toldAddresses } from "./lan-addresses.ts";
import { LateLists } from "./late-lists.ts";
import { createLocalPlayers } from "./local-players.ts";
import { networkUrls } from "./network-urls.ts";
import { openLibrary } from "./open-library.ts";
import { ownTrackers } from "./own-trackers.ts";

/** What the program is made of on this machine. */
export interface HouseParts {
  readonly runtime: Runtime;
  readonly webAssets: Readonly<Record<string, WebAsset>>;
  readonly config: Config;
  readonly log: Log;
  /** Standard input, for the one command that broadcasts it. */
  readonly pipe?: () => ReadableStream<Uint8Array>;
}

/** The engine and what stands on it. */
export interface House {
  readonly engine: Engine;
  readonly p2pPort: number;
  /** Opens the HTTP interface; rejects with `port_busy`. */
  listen(at: { host: string; port: number }): Promise<HttpListener>;
  /** Ends sessions, says goodbye to the swarm, makes the records safe. */
  close(): Promise<void>;
}

/**
 * Puts the floors together, lowest first. Rejects with `port_busy` where the P2P port is taken, with `bad_configuration`
 * where another engine has the records.
 */
export async function openHouse(parts: HouseParts): Promise<House> {
  const { config, log } = parts;
  const settings = engineSettings(config);
  const runtime = stayInside(parts.runtime, settings.reach, log.named("p2p"));
  void tellInside(parts.runtime, settings.reach, log.named("p2p"));
  const outbound = createOutbound(withOwnNetworks(runtime, parts.runtime), log);
  const lists = new LateLists();
  const { library, deviceId, broadcastRecords } = await openLibrary(runtime, config, outbound, log, lists);
  const transfers = await createTransfers(runtime, settings, log, openMedia).catch(async (error) => {
    await library.close();
    return advise("--p2p-port")(error);
  });
  const engine = createEngine({
    runtime,
    settings,
    log,
    transfers,
    outbound,
    proxyProblem: runtime.proxyProblem,
    createBroadcasts: (open) =>
      createBroadcasts({
        // Where a stream of ours comes from is this house's own affair: nothing of it goes to peers by that way.
        runtime: { ...runtime, net: parts.runtime.net },
        settings,
        log,
        outbound,
        unixMs: Date.now,
        openFile: openToRead,
        pipe: () => parts.pipe?.() ?? nothingPiped(),
        lock: runtime.lock,
        open,
      }),
  });
  const addresses = () => toldAddresses(config, transfers.p2pPort);
  lists.bind(
    createBroadcastLists({
      broadcasts: engine.broadcasts,
      outbound,
      log: log.named("broadcast"),
      defaults: () => ({
        trackers: [...settings.trackers, ...ownTrackers(config.tracker, addresses())],
        addresses: addresses(),
      }),
    }),
  );
  const broadcasts = new KeptBroadcasts({
    broadcasts: engine.broadcasts,
    records: broadcastRecords,
    clock: runtime.clock,
    log: log.named("broadcast"),
    requestOf: (wish) =>
      broadcastRequest(wish, {
        lookup: ownLookup(parts.runtime, config),
        ownAddresses: addresses(),
        tracker: config.tracker,
      }),
  });
  await broadcasts.restore().catch(async (error) => {
    await Promise.all([engine.stop(), library.close()]);
    throw error;
  });
  const players = createLocalPlayers(process.env, process.platform, log);
  const { allowedHosts, privateUrls } = config;
  let listening: PeerAddress | undefined;
  const app = createApp({
    engine,
    library,
    players,
    broadcasts,
    ...(transfers.tracker && { tracker: transfers.tracker }),
    deviceId,
    diagnose: () => diagnose(parts.runtime, config, engine),
    hasNetwork: () => lanAddresses().length > 0,
    networkUrls: () => (listening === undefined ? [] : networkUrls(listening, lanAddresses())),
    version: VERSION,
    allowedHosts,
    privateUrls,
    access: accessSettings(config, hostname()),
    platform: platformName(process.platform),
  });
  const digest = (text: string) => toHex(runtime.sha1(encodeUtf8(text)));
  app.route("/", createPage({ engine, assets: parts.webAssets, digest }));
  app.route("/", createScreenRoutes(new Switchboard(runtime.randomBytes)));
  return {
    engine,
    p2pPort: transfers.p2pPort,
    async listen({ host, port }) {
      const listener = await runtime
        .serve((request, origin, acceptWebSocket) => app.fetch(request, { origin, acceptWebSocket }), {
          host,
          port,
          maxConnections: config.maxHttpConnections,
        })
        .catch(advise("--http-port"));
      listening = listener.address;
      return listener;
    },
    async close() {
      players.close();
      broadcasts.close();
      await Promise.all([engine.stop(), library.close()]);
    },
  };
}

function nothingPiped(): never {
  throw new SluiceError("bad_parameter", "-: nothing is piped in here; name a URL, an address or a file");
}

/** The interface knows three systems; whatever else runs us is closest to Linux. */
export function platformName(system: string): "linux" | "win32" | "android" {
  return system === "win32" || system === "android" ? system : "linux";
}

/** Says what to do about a busy port. */
function advise(flag: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof SluiceError) || error.code !== "port_busy") throw error;
    const message = `${error.message}; stop it, or choose another port with ${flag}`;
    throw new SluiceError("port_busy", message, { cause: error });
  };
}
