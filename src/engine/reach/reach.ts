import type { Infohash } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { OwnNetwork, Runtime } from "../../runtime/contract.ts";
import type { EngineSettings } from "../contract.ts";
import type { DiagnosisRow } from "../diagnosis/contract.ts";
import { alsoListening, alsoUdp } from "./also-at.ts";
import type { Dht, PeerFinder, PeerNet, SharedUdp, TrackerDesk } from "./contract.ts";
import { type RunningDht, startDht } from "./dht.ts";
import { eitherWay } from "./either-way.ts";
import { encryptedNet } from "./encrypted-net.ts";
import { filteredNet, filteredUdp } from "./filtered-net.ts";
import { allFinders } from "./finders.ts";
import { type ForwardedPort, followForwardedPort } from "./forwarded-port.ts";
import { IncomingCount } from "./incoming.ts";
import { whatIsCarried } from "./inside/proxy.ts";
import { openIpFilter } from "./ip-filter.ts";
import { followSchedule } from "./limit-schedule.ts";
import { isLocalNetwork, startLocalFinder } from "./lsd.ts";
import { needsUdp } from "./needs-udp.ts";
import { PeerLimits } from "./peer-limits.ts";
import type { PortWish } from "./port-mapping/contract.ts";
import { type PortMapping, type PortMappingFigures, startPortMapping } from "./port-mapping/port-mapping.ts";
import { dhtRow, localRow, routerRow, unreachableRow } from "./reach-rows.ts";
import { bindSharedUdp } from "./shared-udp.ts";
import { openTrackerDesk } from "./tracker-desk.ts";
import { openUtp } from "./utp.ts";

/** How this engine reaches peers, and is reached. */
export interface Reach {
  /** For peers: called and let in as the settings say. */
  readonly peerNet: PeerNet;
  readonly finder: PeerFinder;
  /** What all swarms together send to peers and take from them at most. */
  readonly limits: PeerLimits;
  readonly dht: Dht | undefined;
  /** Our own tracker; undefined where it is off. */
  readonly tracker: TrackerDesk | undefined;
  /** The UDP port, which is the TCP port too; 0 where TCP may take any. */
  readonly port: number;
  /** Peers can call us at this TCP port from now on: to be called once. */
  opened(port: number): void;
  /** The TCP port at which others reach us, as far as is known: what trackers and the DHT are told. */
  externalPort(): number;
  /** How the router lets peers in; undefined where it is not asked. */
  portMapping(): PortMappingFigures | undefined;
  /** How all of it is doing, part by part. */
  rows(): Promise<readonly DiagnosisRow[]>;
  close(): Promise<void>;
}

/** What reach is made of. */
export interface ReachParts {
  /** Of which nothing leaves elsewhere than the settings allow (`inside.ts`). */
  readonly runtime: Runtime;
  readonly settings: EngineSettings;
  readonly log: Log;
  /** The swarms that we are in: whoever calls us encrypted wants one of them. */
  readonly infohashes: () => Iterable<Infohash>;
  /** Whether content is open here that is known not to be private. */
  readonly isShared: (infohash: Infohash) => boolean;
}

/**
 * Puts together how peers are found and reached, from the machine upwards: TCP and uTP, limits, encryption; then who finds
 * peers. Rejects with `port_busy` where the UDP port is taken.
 */
export async function openReach(parts: ReachParts): Promise<Reach> {
  const { runtime, settings, log, infohashes } = parts;
  const { p2pHost, p2pPort } = settings;
  const { net } = runtime;
  const filter = await openIpFilter(settings.reach.ipFilter, runtime, log);
  const bound = needsUdp(settings.reach)
    ? await bindSharedUdp(net, log, { host: p2pHost, port: p2pPort }).catch((error) => {
        filter.close();
        throw error;
      })
    : undefined;
  const forwarded = openForwarded(parts);
  const reached = bound && forwarded ? alsoUdp(net, bound, p2pHost, forwarded, log) : bound;
  const udp = reached && filteredUdp(reached, filter.mayTalkTo);
  const { limitLan, scheduled } = settings.reach;
  const { uploadLimit, downloadLimit } = settings;
  const limits = new PeerLimits({ uploadLimit, downloadLimit, limitLan });
  const plan = { uploadLimit, downloadLimit, scheduled };
  const stopSchedule = followSchedule(limits, plan, { clock: runtime.clock, log });
  const incoming = new IncomingCount();
  const utp = udp && settings.reach.utp ? openUtp({ ...runtime, udp }) : undefined;
  const tcp = forwarded ? { ...net, listen: alsoListening(net.listen, forwarded, log) } : net;
  const ways = utp ? eitherWay(tcp, utp, runtime.clock) : tcp;
  const watched: PeerNet = { connect: ways.connect, listen: incoming.watch(ways.listen) };
  const filtered = filteredNet(watched, filter.mayTalkTo);
  const peerNet = encryptedNet(filtered, { runtime, mode: settings.reach.encryption, log, infohashes });
  let tcpPort = 0;
  let mapping: PortMapping | undefined;
  const lsd = mayDiscover(settings)
    ? startLocalFinder({
        runtime,
        mayUse: (network) => isLocalNetwork(network, boundTo(settings)),
        random: Math.random,
        log,
      })
    : undefined;
  const tracker = udp && openTracker(parts, udp, { tcpPort: () => tcpPort, mapping: () => mapping });
  const externalPort = () => forwarded?.port ?? mapping?.externalPort("tcp") ?? tcpPort;
  const dht = udp && (await openDht(parts, udp, externalPort));
  const finders: PeerFinder[] = [...(lsd ? [lsd] : []), ...(dht ? [dht] : [])];
  return {
    peerNet,
    finder: allFinders(finders),
    limits,
    dht,
    tracker,
    port: udp?.port ?? p2pPort,
    opened(port) {
      tcpPort = port;
      lsd?.opened(port);
      mapping = openMapping(parts, port, udp);
    },
    externalPort,
    portMapping: () => mapping?.figures(),
    async rows() {
      return [
        whatIsCarried(settings.reach).incoming
          ? incoming.row(externalPort(), mapping?.figures().state === "mapped")
          : unreachableRow,
        routerRow(mapping?.figures()),
        dhtRow(dht?.figures()),
        localRow(lsd?.figures()),
      ];
    },
    async close() {
      lsd?.close();
      await dht?.close();
      forwarded?.close();
      await mapping?.close();
      utp?.close();
      udp?.close();
      filter.close();
      stopSchedule();
    },
  };
}

/** Through a proxy datagrams go out, and only answers come back. */
async function openDht(
  { runtime, settings, log }: ReachParts,
  udp: SharedUdp,
  port: () => number,
): Promise<RunningDht | undefined> {
  const { reach, dataDir } = settings;
  if (!reach.dht) return undefined;
  return startDht({
    runtime,
    udp,
    log: log.named("dht"),
    bootstrap: reach.dhtNodes,
    dataDir,
    port,
    // The port that a datagram comes from is not the one that is forwarded.
    isImpliedPort: reach.utp && !isForwarded(settings),
    isReadOnly: reach.proxy !== "",
  });
}

/** Where peers are called through something else, that is for them to tell, and not for us: we know of no address there. */
function openTracker(
  { runtime, settings, isShared }: ReachParts,
  udp: SharedUdp,
  now: { tcpPort(): number; mapping(): PortMapping | undefined },
): TrackerDesk | undefined {
  const { p2pHost, reach } = settings;
  if (reach.tracker === "off") return undefined;
  const isElsewhere = reach.bind !== "" || reach.proxy !== "";
  const listening = () => ({ host: p2pHost, port: isElsewhere ? 0 : now.tcpPort() });
  const outside = () => {
    const { externalAddress: host, externalPort: port } = now.mapping()?.figures() ?? {};
    return host !== undefined && port !== undefined ? { host, port } : undefined;
  };
  const mode = reach.tracker;
  return openTrackerDesk({ runtime, udp, mode, isShared, listening, outside, random: Math.random });
}

/** What comes through a proxy does not come through the router; a tunnel's end is not at the router either. */
function openMapping(
  { runtime, settings, log }: ReachParts,
  tcpPort: number,
  udp: SharedUdp | undefined,
): PortMapping | undefined {
  const { reach } = settings;
  if (!reach.portMapping || reach.proxy !== "" || isForwarded(settings)) return undefined;
  const wishes: PortWish[] = [{ protocol: "tcp", internalPort: tcpPort }];
  if (udp) wishes.push({ protocol: "udp", internalPort: udp.port });
  const mayUse = (network: OwnNetwork) => isLocalNetwork(network, boundTo(settings));
  return startPortMapping({ runtime, random: Math.random, log, wishes, mayUse });
}

/** A port that is opened elsewhere, for us to be told of. */
function openForwarded({ runtime, settings, log }: ReachParts): ForwardedPort | undefined {
  return isForwarded(settings) ? followForwardedPort(runtime, settings.reach, log) : undefined;
}

function isForwarded({ reach }: EngineSettings): boolean {
  return reach.portFile !== "" || reach.portCommand !== "";
}

/** A multicast cannot go through a proxy. */
function mayDiscover({ reach }: EngineSettings): boolean {
  return reach.lsd && whatIsCarried(reach).neighbours;
}

/** The one interface or address at which peers are spoken to; empty: all. */
function boundTo({ p2pHost, reach }: EngineSettings): string {
  return reach.bind !== "" || p2pHost === "::" || p2pHost === "0.0.0.0" ? reach.bind : p2pHost;
}
