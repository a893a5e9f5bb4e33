import { addressScope } from "../base/address.ts";
import type { DiagnosisRow } from "../base/diagnosis.ts";
import { HouseholdLimit } from "../base/household-limit.ts";
import { isInNetwork, type Network } from "../base/network.ts";
import type { Clock, Net, TcpListener } from "../runtime/contract.ts";

/**
 * TCP connections that one household may open to the P2P port. More than the places that one address can get in any swarm, and more
 * than the attempts of the engines that share an address. A flood from one address costs an accepted socket each, and nothing else.
 */
const ACCEPTED = { perSecond: 8, burst: 64, maxHouseholds: 1_000 };

/** Returns `listen` with a limit of connections for each household, which it applies before it allocates anything for them. */
export function limitAccepted(listen: Net["listen"], clock: Pick<Clock, "now">): Net["listen"] {
  const limit = new HouseholdLimit(ACCEPTED);
  return (address, accept) => listen(address, accept, (host) => limit.take(host, clock.now()));
}

/** Counts incoming connections by origin. A connection from the Internet is the only proof that peers can reach this machine. */
export class IncomingCount {
  readonly #networks: () => readonly Network[];
  #internet = 0;
  #local = 0;

  /** `networks` returns the networks that this machine is connected to now. */
  constructor(networks: () => readonly Network[]) {
    this.#networks = networks;
  }

  /** Returns `listen` with every accepted connection counted. */
  watch(listen: Net["listen"]): Net["listen"] {
    return (address, accept): Promise<TcpListener> =>
      listen(address, (socket) => {
        this.connected(socket.remote.host);
        return accept(socket);
      });
  }

  /** Counts a connection from a canonical address. A machine with a public address has neighbors with public addresses. */
  connected(host: string): void {
    const isLocal =
      addressScope(host) !== "global" || this.#networks().some((network) => isInNetwork(host, network));
    if (isLocal) this.#local++;
    else this.#internet++;
  }

  /** Returns the diagnosis of the peer port. `isMapped`: the router reports that it forwards the port. */
  row(port: number, isMapped: boolean): DiagnosisRow {
    const name = "Port";
    if (this.#internet > 0) {
      const text = `Peers can reach port ${port}: ${connections(this.#internet)} from the Internet so far.`;
      return { name, level: "ok", text };
    }
    const local = this.#local > 0 ? ` (${connections(this.#local)} from this network)` : "";
    const text = `No connection from the Internet to port ${port} yet${local}. Only a remote peer can confirm that the port is reachable.`;
    if (isMapped) return { name, level: "note", text };
    return {
      name,
      level: "note",
      text,
      advice: `If peers are few, forward TCP and UDP port ${port} in the router (see --port-mapping).`,
    };
  }
}

function connections(count: number): string {
  return count === 1 ? "1 connection" : `${count} connections`;
}
