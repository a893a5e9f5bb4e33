import { addressScope } from "../../../base/address.ts";
import { SluiceError } from "../../../base/errors.ts";
import type { Dial, HttpClient, Net } from "../../../runtime/contract.ts";
import type { StandIns } from "./stand-ins.ts";

/** HTTP and WebSockets over the connections of `net`; those to this machine itself are made directly. */
export function insideHttp(http: HttpClient, net: Pick<Net, "connect">, standIns: StandIns): HttpClient {
  const dialled = <T extends HttpQuestion>(question: T): T => {
    const { url, connectTo, timeoutMs } = question;
    // Whoever stands above has a way of its own already: a proxy above a bound interface.
    if (question.dial || addressScope(connectTo) === "loopback") return question;
    const name = standIns.nameOf(connectTo);
    // An address may stand for another name by the time it is used.
    if (name !== undefined && name !== url.hostname.replace(/\.$/, ""))
      throw new SluiceError("url_unreachable", `${url.hostname} has to be looked up again`);
    const dial: Dial = (handlers) =>
      net.connect({ host: connectTo, port: portOf(url) }, handlers, { timeoutMs });
    return { ...question, dial };
  };
  return {
    request: async (request) => http.request(dialled(request)),
    openWebSocket: async (request, handlers) => http.openWebSocket(dialled(request), handlers),
  };
}

interface HttpQuestion {
  readonly url: URL;
  readonly connectTo: string;
  readonly timeoutMs: number;
  readonly dial?: Dial;
}

function portOf({ port, protocol }: URL): number {
  if (port !== "") return Number(port);
  return protocol === "https:" || protocol === "wss:" ? 443 : 80;
}
