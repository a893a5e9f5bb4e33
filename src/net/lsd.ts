import { WakeTimer } from "../async/wake-timer.ts";
import { addressScope, familyOf } from "../base/address.ts";
import { toHex } from "../base/bytes.ts";
import { messageOf } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Machine } from "../base/machine.ts";
import { isInNetwork } from "../base/network.ts";
import type { Random } from "../base/random.ts";
import { after } from "../base/time.ts";
import { type DiscoveryOutput, LocalDiscovery } from "../protocol/lsd/local-discovery.ts";
import type { Clock, Net, OwnNetwork, Runtime, UdpSocket } from "../runtime/contract.ts";
import { encodeLsdAnnounce, LSD_GROUPS, LSD_PORT, type LsdAnnounce } from "../wire/lsd.ts";
import type { PeerFinder, PeerSearch } from "./contract.ts";

/** Local service discovery (BEP 14): finds peers in the local networks by multicast. */
export interface LocalFinder extends PeerFinder {
  /** Starts to announce the TCP port at which peers can connect. */
  opened(port: number): void;
  figures(): LocalFigures;
  close(): void;
}

export interface LocalFigures {
  /** Networks with an open socket. */
  readonly networks: number;
  readonly announcesSent: number;
  readonly announcesReceived: number;
}

export interface LocalFinderDependencies {
  readonly runtime: Pick<Runtime, "net" | "clock" | "surroundings" | "randomBytes">;
  /** Returns true if the network may be used for discovery. */
  readonly mayUse: (network: OwnNetwork) => boolean;
  readonly random: Random;
  readonly log: Log;
}

/** Interval at which new and removed networks are detected. */
const CHECK_MS = 30_000;
/** Machines with containers have dozens of networks. */
const MAX_NETWORKS = 16;
/** The groups have site scope (BEP 14); a site may contain a few routers. */
const HOPS = 4;

/** Sends and listens on every permitted network. A network that fails is logged and skipped. */
export function startLocalFinder(dependencies: LocalFinderDependencies): LocalFinder {
  const { runtime, random, log } = dependencies;
  const searches = new Map<Infohash, Set<PeerSearch>>();
  const cookie = toHex(runtime.randomBytes(4));
  const machine = runMachine(new LocalDiscovery({ random, cookie }), runtime.clock, execute);
  let [announcesSent, announcesReceived] = [0, 0];
  const sockets = new NetworkSockets(dependencies, {
    joined: () => machine.handle({ kind: "network" }),
    received(bytes, host) {
      announcesReceived++;
      machine.handle({ kind: "datagram", bytes, host });
    },
  });
  function execute(output: DiscoveryOutput): void {
    if (output.kind === "announce") {
      announcesSent++;
      sockets.send(output.announce);
      return;
    }
    for (const search of searches.get(output.infohash) ?? []) search.found(output.addresses, "lsd");
  }
  sockets.check();
  return {
    join(search) {
      const { infohash, announces } = search;
      const group = searches.get(infohash) ?? new Set();
      searches.set(infohash, group.add(search));
      machine.handle({ kind: "join", infohash, announces });
      return () => {
        if (!group.delete(search)) return;
        if (group.size === 0) searches.delete(infohash);
        machine.handle({ kind: "leave", infohash, announces });
      };
    },
    opened(port) {
      log.debug("local discovery announces this port", { port });
      machine.handle({ kind: "port", port });
    },
    figures: () => ({ networks: sockets.count, announcesSent, announcesReceived }),
    close() {
      machine.stop();
      sockets.close();
    },
  };
}

/**
 * Returns true if a network can be used for local discovery: it can contain other machines, and matches `bind` (an interface
 * name or an address; empty: any).
 */
export function isLocalNetwork(network: OwnNetwork, bind: string): boolean {
  const { host, bits, isLoopback, interfaceName } = network;
  const isSingleHost = bits === (familyOf(host) === 4 ? 32 : 128);
  // Peer addresses have no zone, which link-local addresses need (RFC 4007 section 6).
  const isUsable = familyOf(host) === 4 || addressScope(host) !== "link-local";
  if (isLoopback || isSingleHost || !isUsable) return false;
  return bind === "" || bind === host || bind === interfaceName;
}

interface NetworkEvents {
  /** A socket was opened on a new network. */
  joined(): void;
  received(bytes: Uint8Array, host: string): void;
}

/** One socket for each network: systems send a multicast on a single network. */
class NetworkSockets {
  readonly #net: Pick<Net, "bindUdp">;
  readonly #clock: Clock;
  readonly #dependencies: LocalFinderDependencies;
  readonly #events: NetworkEvents;
  /** By the multicast address of the network; undefined while the socket is opening, or if it failed. */
  readonly #sockets = new Map<string, UdpSocket | undefined>();
  #networks: readonly OwnNetwork[] = [];
  #cancel = () => {};
  #isClosed = false;

  constructor(dependencies: LocalFinderDependencies, events: NetworkEvents) {
    this.#dependencies = dependencies;
    this.#net = dependencies.runtime.net;
    this.#clock = dependencies.runtime.clock;
    this.#events = events;
  }

  get count(): number {
    return [...this.#sockets.values()].filter((socket) => socket !== undefined).length;
  }

  /** Opens sockets for new networks, closes those of removed ones, and repeats later. */
  check(): void {
    const { runtime, mayUse } = this.#dependencies;
    this.#networks = runtime.surroundings.networks().filter(mayUse);
    const addresses = [...new Set(this.#networks.map(({ multicastAddress }) => multicastAddress))];
    for (const [address, socket] of this.#sockets) {
      if (addresses.includes(address)) continue;
      socket?.close();
      this.#sockets.delete(address);
    }
    for (const address of addresses.slice(0, MAX_NETWORKS))
      if (!this.#sockets.has(address)) void this.#open(address);
    this.#cancel = this.#clock.at(after(this.#clock.now(), CHECK_MS), () => this.check());
  }

  send(announce: LsdAnnounce): void {
    for (const [address, socket] of this.#sockets) {
      const family = familyOf(address);
      socket?.send(encodeLsdAnnounce(family, announce), { host: LSD_GROUPS[family], port: LSD_PORT });
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
    for (const socket of this.#sockets.values()) socket?.close();
    this.#sockets.clear();
  }

  async #open(address: string): Promise<void> {
    const family = familyOf(address);
    const at = { host: family === 4 ? "0.0.0.0" : "::", port: LSD_PORT };
    const multicast = { group: LSD_GROUPS[family], networkAddress: address, hops: HOPS };
    this.#sockets.set(address, undefined);
    try {
      const received = (bytes: Uint8Array, from: { readonly host: string }) => {
        if (this.#isNeighbour(from.host, address)) this.#events.received(bytes, from.host);
      };
      const socket = await this.#net.bindUdp(at, received, { multicast });
      if (this.#isClosed || !this.#sockets.has(address)) {
        socket.close();
        return;
      }
      this.#sockets.set(address, socket);
      this.#events.joined();
    } catch (error) {
      // The entry stays, so that the network is not tried and logged again in each check.
      this.#dependencies.log.info("cannot use a network for local discovery", {
        network: address,
        reason: messageOf(error),
      });
    }
  }

  /** Systems deliver a datagram to all sockets of the group; each socket takes only those of its network. */
  #isNeighbour(host: string, address: string): boolean {
    return this.#networks.some(
      (network) => network.multicastAddress === address && isInNetwork(host, network),
    );
  }
}

/** A state machine driven by the real clock. */
interface RunningMachine<Input> {
  handle(input: Input): void;
  /** Stops all outputs. */
  stop(): void;
}

/** Drives `machine`: wakes it on time and passes each output to `execute`. */
function runMachine<Input, Output>(
  machine: Machine<Input, Output>,
  clock: Clock,
  execute: (output: Output) => void,
): RunningMachine<Input> {
  let isStopped = false;
  const timer = new WakeTimer(clock, () => {
    machine.wake(clock.now());
    drain();
  });
  const drain = () => {
    for (let output = machine.poll(); output !== undefined && !isStopped; output = machine.poll())
      execute(output);
    timer.want(machine.nextWake());
  };
  return {
    handle(input) {
      if (isStopped) return;
      machine.handle(input, clock.now());
      drain();
    },
    stop() {
      isStopped = true;
      timer.stop();
    },
  };
}
