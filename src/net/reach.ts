import type { PeerAddress } from "../base/address.ts";
import type { DiagnosisRow } from "../base/diagnosis.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { OwnNetwork, Runtime, TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import { needsUdp, proxyCapabilities, usesWebRtc } from "./confined/proxy.ts";
import type {
  Dht,
  NetSettings,
  PeerFinder,
  PeerNet,
  SharedUdp,
  TrackerServer,
  WebRtcSignaling,
} from "./contract.ts";
import { type RunningDht, startDht } from "./dht.ts";
import { encryptedNet } from "./encrypted-net.ts";
import { listenAtForwardedPort, udpAtForwardedPort } from "./forwarded-listeners.ts";
import { type ForwardedPort, followForwardedPort } from "./forwarded-port.ts";
import { IncomingCount, limitAccepted } from "./incoming.ts";
import { filteredNet, filteredUdp, openIpFilter } from "./ip-filter.ts";
import { followSchedule } from "./limit-schedule.ts";
import { isLocalNetwork, startLocalFinder } from "./lsd.ts";
import { PeerLimits } from "./peer-limits.ts";
import type { PortRequest } from "./port-mapping/contract.ts";
import { type PortMapping, type PortMappingFigures, startPortMapping } from "./port-mapping/port-mapping.ts";
import { dhtRow, localRow, routerRow, unreachableRow } from "./reach-rows.ts";
import { bindSharedUdp } from "./shared-udp.ts";
import { tcpAndUtp } from "./tcp-utp-race.ts";
import { openTrackerServer } from "./tracker-server.ts";
import { openUtp } from "./utp.ts";
import type { WebRtc } from "./webrtc/contract.ts";
import { webRtcAddresses } from "./webrtc/own-addresses.ts";

/** The assembled peer network: how this engine connects to peers, finds them and accepts connections. */
export interface Reach {
  readonly peerNet: PeerNet;
  /** Returns false if the address filter blocks `host`, a canonical address. */
  isAllowed(host: string): boolean;
  readonly finder: PeerFinder;
  /** Rate limits of all swarms together. */
  readonly limits: PeerLimits;
  readonly dht: Dht | undefined;
  /** The built-in tracker; undefined if it is off. */
  readonly tracker: TrackerServer | undefined;
  /** Introduces WebRTC peers; undefined if it is off. */
  readonly webrtc: WebRtcSignaling | undefined;
  /** The UDP port, which TCP must use as well; 0 if TCP may use any. */
  readonly port: number;
  /** Reports the TCP port that now accepts peers. Call it once. */
  opened(port: number): void;
  /** Applies the present rate limits of the settings. */
  limitsChanged(): void;
  /** Returns the external TCP port, as far as known. Trackers and the DHT announce it. */
  externalPort(): number;
  /** State of port mapping; undefined if it is off. */
  portMapping(): PortMappingFigures | undefined;
  /** Returns the diagnosis, one row for each part. */
  rows(): Promise<readonly DiagnosisRow[]>;
  close(): Promise<void>;
}

export interface ReachDependencies {
  /** Confined to the permitted interface and proxy (`confined.ts`). */
  readonly runtime: Runtime;
  readonly settings: NetSettings;
  readonly log: Log;
  /** The open content, which encrypted handshakes identify. */
  readonly infohashes: () => Iterable<Infohash>;
  /** Returns true if the content is open here and known not to be private (BEP 27). */
  readonly isShared: (infohash: Infohash) => boolean;
  /** Takes over a WebRTC connection that this engine offered for open content; undefined if the content is closed. */
  readonly adopt: (infohash: Infohash, socket: TcpSocket) => TcpHandlers | undefined;
}

/**
 * Assembles the peer network, from the socket upwards: TCP and uTP, address filter, encryption; then DHT and local discovery.
 * Rejects with `port_busy` if the UDP port is in use.
 */
export async function openReach(dependencies: ReachDependencies): Promise<Reach> {
  const { runtime, settings, log, infohashes } = dependencies;
  const { p2pHost, p2pPort } = settings;
  const { net } = runtime;
  const filter = await openIpFilter(settings.reach.ipFilter, runtime, log);
  const bound = needsUdp(settings.reach)
    ? await bindSharedUdp(net, log, { host: p2pHost, port: p2pPort }).catch((error) => {
        filter.close();
        throw error;
      })
    : undefined;
  const forwarded = openForwarded(dependencies);
  const shared = bound && forwarded ? udpAtForwardedPort(net, bound, p2pHost, forwarded, log) : bound;
  const udp = shared && filteredUdp(shared, filter.isAllowed);
  const { uploadLimit, downloadLimit } = settings;
  const limits = new PeerLimits({ uploadLimit, downloadLimit, limitLan: settings.reach.limitLan });
  const follow = () => {
    const { scheduled } = settings.reach;
    const plan = { uploadLimit: settings.uploadLimit, downloadLimit: settings.downloadLimit, scheduled };
    return followSchedule(limits, plan, { clock: runtime.clock, log });
  };
  let stopSchedule = follow();
  const incoming = new IncomingCount(() => runtime.surroundings.networks());
  const utp = udp && settings.reach.utp ? openUtp({ ...runtime, udp }) : undefined;
  const listen = limitAccepted(net.listen, runtime.clock);
  const tcp = { ...net, listen: forwarded ? listenAtForwardedPort(listen, forwarded, log) : listen };
  const transports = utp ? tcpAndUtp(tcp, utp, runtime.clock) : tcp;
  const counted: PeerNet = { connect: transports.connect, listen: incoming.watch(transports.listen) };
  const filtered = filteredNet(counted, filter.isAllowed);
  const encrypted = encryptedNet(filtered, { runtime, mode: settings.reach.encryption, log, infohashes });
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
  const tracker = udp && openTracker(dependencies, udp, { tcpPort: () => tcpPort, mapping: () => mapping });
  const externalPort = () => forwarded?.port ?? mapping?.externalPort("tcp") ?? tcpPort;
  const dht = udp && (await openDht(dependencies, udp, externalPort));
  const externalUdp = () => {
    const host = mapping?.figures().externalAddress;
    const port = forwarded?.port ?? mapping?.externalPort("udp");
    return host !== undefined && port !== undefined ? { host, port } : undefined;
  };
  const webrtc = udp && (await openWebRtc(dependencies, udp, externalUdp));
  const peerNet = webrtc ? withWebRtc(encrypted, webrtc, incoming) : encrypted;
  const finders: PeerFinder[] = [...(lsd ? [lsd] : []), ...(dht ? [dht] : [])];
  return {
    peerNet,
    isAllowed: filter.isAllowed,
    finder: allFinders(finders),
    limits,
    dht,
    tracker,
    webrtc,
    port: udp?.port ?? p2pPort,
    opened(port) {
      tcpPort = port;
      lsd?.opened(port);
      mapping = openMapping(dependencies, port, udp);
    },
    limitsChanged() {
      const now = runtime.clock.now();
      limits.upload.change(settings.uploadLimit, now);
      limits.download.change(settings.downloadLimit, now);
      limits.limitLan = settings.reach.limitLan;
      stopSchedule();
      stopSchedule = follow();
    },
    externalPort,
    portMapping: () => mapping?.figures(),
    async rows() {
      return [
        proxyCapabilities(settings.reach).incoming
          ? incoming.row(externalPort(), mapping?.figures().state === "mapped")
          : unreachableRow,
        routerRow(mapping?.figures()),
        dhtRow(dht?.figures()),
        localRow(lsd?.figures()),
      ];
    },
    async close() {
      webrtc?.close();
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

/** Through a proxy, only replies to our own datagrams arrive, so the node is read-only. */
async function openDht(
  { runtime, settings, log }: ReachDependencies,
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
    // With a forwarded port, the source port of datagrams is not the external port.
    isImpliedPort: reach.utp && !isForwarded(settings),
    isReadOnly: reach.proxy !== "",
  });
}

/** The module and its library are loaded only if it is on: they take a tenth of a second. */
async function openWebRtc(
  { runtime, settings, log, infohashes, adopt }: ReachDependencies,
  udp: SharedUdp,
  external: () => PeerAddress | undefined,
): Promise<WebRtc | undefined> {
  const { reach, p2pHost } = settings;
  if (!reach.webrtc) return undefined;
  if (!usesWebRtc(reach)) {
    log.warn("WebRTC is off, because a proxy is configured: it would reveal the addresses of this machine");
    return undefined;
  }
  const { openWebRtc: open } = await import("./webrtc/webrtc.ts");
  return open({
    ...{ runtime, udp, adopt, stunServers: reach.iceServers, log: log.named("webrtc") },
    isOpen: (infohash) => [...infohashes()].includes(infohash),
    ownAddresses(isLocal) {
      const bound = boundTo(settings);
      const isBound = ({ host, interfaceName }: OwnNetwork) =>
        bound === "" || bound === host || bound === interfaceName;
      const networks = runtime.surroundings.networks().filter(isBound);
      return webRtcAddresses({ p2pHost, port: udp.port, networks, external: external(), isLocal });
    },
  });
}

/** Adds the connections that WebRTC peers open. They are encrypted already. */
function withWebRtc(net: PeerNet, webrtc: WebRtc, incoming: IncomingCount): PeerNet {
  return {
    connect: net.connect,
    async listen(address, accept) {
      const listener = await net.listen(address, accept);
      webrtc.listen((socket) => {
        incoming.connected(socket.remote.host);
        return accept(socket);
      });
      return listener;
    },
  };
}

/** With `bind` or a proxy, the addresses of this machine are not announced: the external address is unknown. */
function openTracker(
  { runtime, settings, isShared }: ReachDependencies,
  udp: SharedUdp,
  current: { tcpPort(): number; mapping(): PortMapping | undefined },
): TrackerServer | undefined {
  const { p2pHost, reach } = settings;
  if (reach.tracker === "off") return undefined;
  const isConfined = reach.bind !== "" || reach.proxy !== "";
  const listening = () => ({ host: p2pHost, port: isConfined ? 0 : current.tcpPort() });
  const external = () => {
    const { externalAddress: host, externalPort: port } = current.mapping()?.figures() ?? {};
    return host !== undefined && port !== undefined ? { host, port } : undefined;
  };
  const mode = reach.tracker;
  return openTrackerServer({ runtime, udp, mode, isShared, listening, external, random: Math.random });
}

/** Behind a proxy or a forwarded port, incoming connections do not pass the router. */
function openMapping(
  { runtime, settings, log }: ReachDependencies,
  tcpPort: number,
  udp: SharedUdp | undefined,
): PortMapping | undefined {
  const { reach } = settings;
  if (!reach.portMapping || reach.proxy !== "" || isForwarded(settings)) return undefined;
  const requests: PortRequest[] = [{ protocol: "tcp", internalPort: tcpPort }];
  if (udp) requests.push({ protocol: "udp", internalPort: udp.port });
  const mayUse = (network: OwnNetwork) => isLocalNetwork(network, boundTo(settings));
  return startPortMapping({ runtime, random: Math.random, log, requests, mayUse });
}

function openForwarded({ runtime, settings, log }: ReachDependencies): ForwardedPort | undefined {
  return isForwarded(settings) ? followForwardedPort(runtime, settings.reach, log) : undefined;
}

function isForwarded({ reach }: NetSettings): boolean {
  return reach.portFile !== "" || reach.portCommand !== "";
}

/** A proxy cannot carry multicast. */
function mayDiscover({ reach }: NetSettings): boolean {
  return reach.lsd && proxyCapabilities(reach).local;
}

/** Returns the interface or address that peer traffic is limited to; empty: all. */
function boundTo({ p2pHost, reach }: NetSettings): string {
  return reach.bind !== "" || p2pHost === "::" || p2pHost === "0.0.0.0" ? reach.bind : p2pHost;
}

/** Combines several finders into one. */
function allFinders(finders: readonly PeerFinder[]): PeerFinder {
  return {
    join(search) {
      const leaves = finders.map((finder) => finder.join(search));
      return () => {
        for (const leave of leaves) leave();
      };
    },
  };
}
