import { addressText, type PeerAddress } from "../base/address.ts";
import { latin1Text } from "../base/bytes.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { isInNetwork, type Network } from "../base/network.ts";
import { after } from "../base/time.ts";
import type {
  HttpHandler,
  RequestOrigin,
  Runtime,
  TcpHandlers,
  TcpListener,
  TcpSocket,
} from "../runtime/contract.ts";
import { encodeLine, TcpApiSession } from "./tcp-api-session.ts";

/** Dependencies of {@link listenForTcpClients}. */
export interface TcpApiDependencies {
  readonly runtime: Pick<Runtime, "net" | "clock" | "randomBytes">;
  /** The HTTP interface, which decides what a client may do. */
  readonly fetch: HttpHandler;
  readonly httpPort: number;
  readonly networks: () => readonly Network[];
  readonly log: Log;
}

/** More connections than a household has players. Beyond it, a new one is closed. */
const MAX_CONNECTIONS = 32;
/** A client that has not sent HELLOBG within this time is closed. */
const HELLO_TIMEOUT_MS = 10_000;
/** Before HELLOBG no command is longer. */
const MAX_FIRST_LINE = 1_024;
/** A line may contain a whole transport file in Base64 (RAW); that of a long film has 200 KB. */
const MAX_LINE = 1_024 * 1_024;
/** Lines that wait while a command is processed. */
const MAX_WAITING_LINES = 64;
/** A client that leaves this much unread has stopped reading. */
const MAX_UNSENT_BYTES = 256 * 1_024;

/**
 * Listens for clients of the TCP API of older engines (docs/tcp-api.md). Rejects with `port_busy`, or `bad_parameter` if this
 * machine cannot listen there.
 */
export function listenForTcpClients(deps: TcpApiDependencies, at: PeerAddress): Promise<TcpListener> {
  const sockets = new Set<TcpSocket>();
  return deps.runtime.net.listen(at, (socket) => {
    if (sockets.size >= MAX_CONNECTIONS) {
      socket.close();
      return { received() {}, drained() {}, closed() {} };
    }
    sockets.add(socket);
    return serveClient(deps, socket, () => sockets.delete(socket));
  });
}

function serveClient(deps: TcpApiDependencies, socket: TcpSocket, ended: () => void): TcpHandlers {
  const { clock, randomBytes } = deps.runtime;
  const call = interfaceOf(deps, socket);
  let isOpen = true;
  let hasGreeted = false;
  let pending = "";
  let waiting = 0;
  let work: Promise<void> = Promise.resolve();
  const session = new TcpApiSession({
    clock,
    randomBytes,
    httpPort: deps.httpPort,
    call,
    send(line) {
      if (!isOpen) return;
      if (socket.bufferedBytes > MAX_UNSENT_BYTES) socket.close();
      else socket.write(encodeLine(line));
    },
    // The last line leaves before the connection closes.
    close: () => void clock.at(after(clock.now(), 100), () => socket.close()),
  });
  const cancelTimeout = clock.at(after(clock.now(), HELLO_TIMEOUT_MS), () => {
    if (!hasGreeted) socket.close();
  });
  const handle = (line: string) => {
    if (++waiting > MAX_WAITING_LINES) return socket.close();
    hasGreeted ||= /^HELLOBG\b/i.test(line);
    if (!hasGreeted) return socket.close();
    work = work
      .then(() => (isOpen ? session.handle(line) : undefined))
      .catch((thrown: unknown) => {
        deps.log.info("connection closed", { client: addressText(socket.remote), reason: messageOf(thrown) });
        socket.close();
      })
      .finally(() => waiting--);
  };
  return {
    received(bytes) {
      pending += latin1Text(bytes);
      for (let end = pending.indexOf("\n"); end >= 0 && isOpen; end = pending.indexOf("\n")) {
        const line = pending.slice(0, end);
        pending = pending.slice(end + 1);
        if (line.trim() !== "") handle(line);
      }
      if (pending.length > (hasGreeted ? MAX_LINE : MAX_FIRST_LINE)) socket.close();
    },
    drained() {},
    closed() {
      isOpen = false;
      pending = "";
      cancelTimeout();
      ended();
      void session.end();
    },
  };
}

/** Returns a function that calls the HTTP interface as the client of `socket`. It rejects if the interface refuses the client. */
function interfaceOf(deps: TcpApiDependencies, socket: TcpSocket) {
  return async (path: string, body?: string) => {
    const networks = deps.networks();
    const local = { host: localAddressFor(socket.remote, networks), port: deps.httpPort };
    const origin: RequestOrigin = { remote: socket.remote, local, networks };
    const host = local.host.includes(":") ? `[${local.host}]` : local.host;
    const headers = { host: `${host}:${local.port}` };
    const request = new Request(`http://${host}:${local.port}${path}`, {
      headers,
      ...(body !== undefined && { method: "POST", body }),
    });
    const response = await deps.fetch(request, origin);
    if (!response.headers.get("content-type")?.startsWith("application/json"))
      throw new Error((await response.text()).trim());
    return (await response.json()) as { response?: unknown; result?: unknown; error?: unknown };
  };
}

/** Returns this machine's address in the network of a client: the one that the client can reach. */
function localAddressFor({ host }: PeerAddress, networks: readonly Network[]): string {
  if (networks.some((own) => own.host === host)) return host;
  const near = networks.find((own) => isInNetwork(host, own));
  if (near) return near.host;
  return host.includes(":") ? "::1" : "127.0.0.1";
}
