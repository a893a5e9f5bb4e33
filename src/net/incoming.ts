import { addressScope } from "../base/address.ts";
import type { DiagnosisRow } from "../base/diagnosis.ts";
import { isInNetwork, type Network } from "../base/network.ts";
import type { Net, TcpListener } from "../runtime/contract.ts";

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
