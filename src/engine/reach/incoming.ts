import { addressScope } from "../../base/address.ts";
import type { Net, TcpListener } from "../../runtime/contract.ts";
import type { DiagnosisRow } from "../diagnosis/contract.ts";

/** Counts who calls us, and from where: the one proof that others reach us. */
export class IncomingCount {
  #internet = 0;
  #home = 0;

  /** The same way in, with everybody counted. */
  watch(listen: Net["listen"]): Net["listen"] {
    return (address, accept): Promise<TcpListener> =>
      listen(address, (socket) => {
        this.called(socket.remote.host);
        return accept(socket);
      });
  }

  /** Somebody has called us. */
  called(host: string): void {
    if (addressScope(host) === "global") this.#internet++;
    else this.#home++;
  }

  /** What it says of the port. `isMapped`: the router says that it lets peers in. */
  row(port: number, isMapped: boolean): DiagnosisRow {
    const name = "Port";
    if (this.#internet > 0) {
      return {
        name,
        level: "ok",
        text: `Peers reach us at port ${port}: ${this.#internet} have called from the Internet.`,
      };
    }
    const home = this.#home > 0 ? `, ${this.#home} from this network` : "";
    const text = `Nobody has called us at port ${port} from the Internet yet${home}; whether anybody could, only a caller can tell.`;
    if (isMapped) return { name, level: "note", text };
    return {
      name,
      level: "note",
      text,
      advice: `Where a swarm is small, let TCP and UDP port ${port} in at the router (see --port-mapping).`,
    };
  }
}
