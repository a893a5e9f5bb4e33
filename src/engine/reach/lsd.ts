import { addressScope, familyOf } from "../../base/address.ts";
import { toHex } from "../../base/bytes.ts";
import { messageOf } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { isInNetwork } from "../../base/network.ts";
import type { Random } from "../../base/random.ts";
import { after } from "../../base/time.ts";
import type { Clock, Net, OwnNetwork, Runtime, UdpSocket } from "../../runtime/contract.ts";
import { type DiscoveryOutput, LocalDiscovery } from "../../swarm/lsd/local-discovery.ts";
import { encodeLsdAnnounce, LSD_GROUPS, LSD_PORT, type LsdAnnounce } from "../../wire/lsd.ts";
import type { PeerFinder, PeerWish } from "./contract.ts";
import { runMachine } from "./run-machine.ts";

/** Local service discovery (BEP 14): finds the peers of our own networks, without any server. */
export interface LocalFinder extends PeerFinder {
  /** Peers can call us at this TCP port: it is told from now on. */
  opened(port: number): void;
  figures(): LocalFigures;
  close(): void;
}

/** What local discovery has seen. */
export interface LocalFigures {
  /** Networks that it speaks on. */
  readonly networks: number;
  readonly announcesSent: number;
  readonly announcesHeard: number;
}

/** What it is made of. */
export interface LocalFinderParts {
  readonly runtime: Pick<Runtime, "net" | "clock" | "surroundings" | "randomBytes">;
  /** Whether peers may be looked for there. */
  readonly mayUse: (network: OwnNetwork) => boolean;
  readonly random: Random;
  readonly log: Log;
}

/** Cables are plugged, radios join: networks are looked at again so often. */
const LOOK_MS = 30_000;
/** Machines with containers have dozens of networks. */
const MAX_NETWORKS = 16;
/** The groups are those of a site (BEP 14), which may be a few routers wide; it is not meant for the world. */
const HOPS = 4;

/** Speaks and listens on every network that may be used. Where one cannot be, the log says so and the others are. */
export function startLocalFinder(parts: LocalFinderParts): LocalFinder {
  const { runtime, random, log } = parts;
  const wishes = new Map<Infohash, Set<PeerWish>>();
  const cookie = toHex(runtime.randomBytes(4));
  const machine = runMachine(new LocalDiscovery({ random, cookie }), runtime.clock, acted);
  let [announcesSent, announcesHeard] = [0, 0];
  const places = new Places(parts, {
    joined: () => machine.handle({ kind: "network" }),
    heard(bytes, host) {
      announcesHeard++;
      machine.handle({ kind: "datagram", bytes, host });
    },
  });
  function acted(output: DiscoveryOutput): void {
    if (output.kind === "announce") {
      announcesSent++;
      places.send(output.announce);
      return;
    }
    for (const wish of wishes.get(output.infohash) ?? []) wish.found(output.addresses, "lsd");
  }
  places.look();
  return {
    join(wish) {
      const { infohash, announces } = wish;
      const others = wishes.get(infohash) ?? new Set();
      wishes.set(infohash, others.add(wish));
      machine.handle({ kind: "join", infohash, announces });
      return () => {
        if (!others.delete(wish)) return;
        if (others.size === 0) wishes.delete(infohash);
        machine.handle({ kind: "leave", infohash, announces });
      };
    },
    opened(port) {
      log.debug("local discovery announces", { port });
      machine.handle({ kind: "port", port });
    },
    figures: () => ({ networks: places.count, announcesSent, announcesHeard }),
    close() {
      machine.stop();
      places.close();
    },
  };
}

/** Which networks are used for local discovery: all that have neighbours, or those of one interface or address alone. */
export function isLocalNetwork(network: OwnNetwork, bind: string): boolean {
  const { host, bits, isLoopback, interfaceName } = network;
  const isAlone = bits === (familyOf(host) === 4 ? 32 : 128);
  // Peers are called by addresses without a zone: those of one link alone cannot be (RFC 4007 6).
  const isUsable = familyOf(host) === 4 || addressScope(host) !== "link-local";
  if (isLoopback || isAlone || !isUsable) return false;
  return bind === "" || bind === host || bind === interfaceName;
}

interface PlaceEvents {
  /** A network is there that was not before. */
  joined(): void;
  heard(bytes: Uint8Array, host: string): void;
}

/** A socket for each network: systems send a multicast by one of them, and each has its own members. */
class Places {
  readonly #net: Pick<Net, "bindUdp">;
  readonly #clock: Clock;
  readonly #parts: LocalFinderParts;
  readonly #events: PlaceEvents;
  /** By the address that multicast knows the network by; undefined while the socket is being opened, or could not be. */
  readonly #sockets = new Map<string, UdpSocket | undefined>();
  #networks: readonly OwnNetwork[] = [];
  #cancel = () => {};
  #isClosed = false;

  constructor(parts: LocalFinderParts, events: PlaceEvents) {
    this.#parts = parts;
    this.#net = parts.runtime.net;
    this.#clock = parts.runtime.clock;
    this.#events = events;
  }

  get count(): number {
    return [...this.#sockets.values()].filter((socket) => socket !== undefined).length;
  }

  /** Opens what is new, closes what is gone, and looks again later. */
  look(): void {
    const { runtime, mayUse } = this.#parts;
    this.#networks = runtime.surroundings.networks().filter(mayUse);
    const places = [...new Set(this.#networks.map(({ multicastAddress }) => multicastAddress))];
    for (const [place, socket] of this.#sockets) {
      if (places.includes(place)) continue;
      socket?.close();
      this.#sockets.delete(place);
    }
    for (const place of places.slice(0, MAX_NETWORKS)) if (!this.#sockets.has(place)) void this.#open(place);
    this.#cancel = this.#clock.at(after(this.#clock.now(), LOOK_MS), () => this.look());
  }

  send(announce: LsdAnnounce): void {
    for (const [place, socket] of this.#sockets) {
      const family = familyOf(place);
      socket?.send(encodeLsdAnnounce(family, announce), { host: LSD_GROUPS[family], port: LSD_PORT });
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
    for (const socket of this.#sockets.values()) socket?.close();
    this.#sockets.clear();
  }

  async #open(place: string): Promise<void> {
    const family = familyOf(place);
    const at = { host: family === 4 ? "0.0.0.0" : "::", port: LSD_PORT };
    const multicast = { group: LSD_GROUPS[family], networkAddress: place, hops: HOPS };
    this.#sockets.set(place, undefined);
    try {
      const heard = (bytes: Uint8Array, from: { readonly host: string }) => {
        if (this.#isNeighbour(from.host, place)) this.#events.heard(bytes, from.host);
      };
      const socket = await this.#net.bindUdp(at, heard, { multicast });
      if (this.#isClosed || !this.#sockets.has(place)) {
        socket.close();
        return;
      }
      this.#sockets.set(place, socket);
      this.#events.joined();
    } catch (error) {
      // Kept as it is, so that it is not tried and told again at every look.
      this.#parts.log.info("no local discovery on a network", { network: place, reason: messageOf(error) });
    }
  }

  /** Systems hand what one member hears to every member of the machine: each network is listened to once. */
  #isNeighbour(host: string, place: string): boolean {
    return this.#networks.some((network) => network.multicastAddress === place && isInNetwork(host, network));
  }
}
