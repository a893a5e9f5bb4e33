import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { canonicalAddress, type PeerAddress } from "../base/address.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Network } from "../base/network.ts";
import { pumpBody } from "./body-pump.ts";
import { limitConnections, type PendingRequest } from "./connection-limit.ts";
import type { AcceptWebSocket, HttpHandler, HttpListener, RequestOrigin, ServeOptions } from "./contract.ts";
import { InheritedListeners } from "./inherited-listener.ts";
import { readableBody } from "./node-streams.ts";
import { bound } from "./sockets.ts";
import { cachedNetworks } from "./surroundings.ts";
import { serveWebSockets } from "./web-socket.ts";

/** Maximum size of the request line and headers together; browsers send about 1 KiB. */
const MAX_HEADER_BYTES = 16 * 1024;
/**
 * Time limits for the request head and for the whole request: uploading a 50 MB playlist over a weak wireless link takes
 * a minute. Few bodies are read at once (routes/control/form.ts), so slow uploads cost little.
 */
const HEADERS_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 120_000;
/** The server closes a connection that is idle for this time; players request a segment every few seconds. */
const KEEP_ALIVE_TIMEOUT_MS = 15_000;
/** Node checks both limits at this interval. It wakes an idle process, so it is not shorter than the shorter limit. */
const CHECK_INTERVAL_MS = HEADERS_TIMEOUT_MS;

/**
 * Serves a Fetch API handler over `node:http`, which all runtimes provide and which can limit the size and time of
 * requests. Calls `sent` with the number of body bytes sent and whether their buffer is used again. `inherited` has the sockets that
 * `options.descriptor` may name.
 */
export async function serve(
  handler: HttpHandler,
  options: ServeOptions,
  sent: (bytes: number, isReused: boolean) => void = () => {},
  inherited: InheritedListeners = new InheritedListeners(),
): Promise<HttpListener> {
  const networks = cachedNetworks();
  const handle: OriginHandler = (incoming, request, accept) => {
    const origin = originOf(incoming.socket, networks());
    return origin && handler(request, origin, accept);
  };
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      noDelay: true,
    },
    (incoming, outgoing) => {
      const pending = limit.begin(incoming.socket);
      outgoing.once("close", () => pending.done());
      void respond(handle, incoming, outgoing, { pending, sent });
    },
  );
  const limit = limitConnections(server, options.maxConnections);
  const webSockets = serveWebSockets(server, (incoming, accept) => {
    // A WebSocket connection counts as busy until it closes.
    limit.begin(incoming.socket);
    const request = requestOf(incoming);
    return request && handle(incoming, request, accept);
  });
  const { address, release } = await listening(server, options, inherited);
  const end = () => {
    release();
    webSockets.close();
    const closed = close(server);
    limit.closeEach(() => true);
    return closed;
  };
  const disconnect = (mayStay: (origin: RequestOrigin) => boolean) =>
    limit.closeEach((socket) => {
      const origin = originOf(socket, networks());
      return origin !== undefined && !mayStay(origin);
    });
  return { address, disconnect, close: end };
}

/** Calls the handler with the request's origin; returns undefined if the socket has closed and no longer has an address. */
type OriginHandler = (
  incoming: IncomingMessage,
  request: Request,
  accept?: AcceptWebSocket,
) => ReturnType<HttpHandler> | undefined;

/** Observers of one response. */
interface Observers {
  readonly pending: PendingRequest;
  readonly sent: (bytes: number, isReused: boolean) => void;
}

async function respond(
  handle: OriginHandler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  observers: Observers,
): Promise<void> {
  const hangUp = hangUpSignal(outgoing);
  try {
    const request = requestOf(incoming, hangUp.signal);
    if (request === undefined) return refuse(outgoing, 400);
    const responding = handle(incoming, request);
    if (responding === undefined) return void outgoing.destroy();
    const response = await responding;
    hangUp.end();
    await send(response, outgoing, incoming.method === "HEAD", observers);
  } catch (error) {
    hangUp.end();
    // The routes handle every expected error, so the error is a bug, or a body failed while it was sent.
    const hasHungUp = hangUp.signal.aborted && error === hangUp.signal.reason;
    if (outgoing.headersSent || hasHungUp) {
      outgoing.destroy();
    } else {
      console.error(`request failed: ${error instanceof Error ? error.stack : messageOf(error)}`);
      refuse(outgoing, 500);
    }
  }
}

/**
 * Returns a signal that fires if the client hangs up before the response begins. After `end` it never fires: from then
 * on the body's `cancel` reports it.
 */
function hangUpSignal(outgoing: ServerResponse): { readonly signal: AbortSignal; end(): void } {
  const abort = new AbortController();
  const hungUp = () => abort.abort(new SluiceError("cancelled", "the client hung up"));
  outgoing.once("close", hungUp);
  return { signal: abort.signal, end: () => void outgoing.off("close", hungUp) };
}

function refuse(outgoing: ServerResponse, status: number): void {
  outgoing.writeHead(status, { connection: "close", "content-length": "0" });
  outgoing.end();
}

/** Converts to a Fetch request; returns undefined if the target or the Host header is invalid (RFC 9112 3.2). */
function requestOf(incoming: IncomingMessage, signal?: AbortSignal): Request | undefined {
  const headers = new Headers();
  for (let i = 0; i + 1 < incoming.rawHeaders.length; i += 2) {
    headers.append(incoming.rawHeaders[i]!, incoming.rawHeaders[i + 1]!);
  }
  // Several Host headers are joined by a comma, which the pattern refuses.
  const host = headers.get("host");
  if (host === null || !/^[\w.:[\]%-]+$/.test(host)) return undefined;
  const target = originForm(incoming.url ?? "", host);
  if (target === undefined) return undefined;
  if (!URL.canParse(`http://${host}${target}`)) return undefined;
  const method = incoming.method ?? "GET";
  const init: RequestInit & { duplex?: "half" } = { method, headers };
  if (signal !== undefined) init.signal = signal;
  if (method !== "GET" && method !== "HEAD") {
    init.body = readableBody(incoming, () => incoming.destroy());
    init.duplex = "half";
  }
  try {
    return new Request(`http://${host}${target}`, init);
  } catch {
    return undefined; // A method that the Fetch standard forbids (TRACE, CONNECT).
  }
}

/** Returns path and query of a target; the host of an absolute target must equal the Host header (RFC 9112 3.2.2). */
function originForm(target: string, host: string): string | undefined {
  if (target.startsWith("/")) return target;
  const [, authority, rest] = /^http:\/\/([^/?#]+)(\/.*)?$/i.exec(target) ?? [];
  return authority?.toLowerCase() === host.toLowerCase() ? (rest ?? "/") : undefined;
}

function originOf(socket: Socket, networks: readonly Network[]): RequestOrigin | undefined {
  const remote = canonicalAddress(socket.remoteAddress ?? "");
  const local = canonicalAddress(socket.localAddress ?? "");
  if (remote === undefined || local === undefined) return undefined;
  return {
    remote: { host: remote, port: socket.remotePort ?? 0 },
    local: { host: local, port: socket.localPort ?? 0 },
    networks,
  };
}

async function send(
  response: Response,
  outgoing: ServerResponse,
  isHead: boolean,
  { pending, sent }: Observers,
): Promise<void> {
  const { body } = response;
  if (outgoing.destroyed) return void (await body?.cancel("the client hung up"));
  outgoing.writeHead(response.status, headerList(response.headers));
  if (body === null || isHead) {
    await body?.cancel("a HEAD request");
    pending.writing();
    return void outgoing.end();
  }
  // Sends the head alone if the body has no data yet; otherwise both leave in one write.
  setImmediate(() => outgoing.flushHeaders());
  await pumpBody(body, Number(response.headers.get("content-length") ?? 0), outgoing, {
    writing: pending.writing,
    written: (bytes, isReused) => {
      pending.written();
      sent(bytes, isReused);
    },
  });
}

function headerList(headers: Headers): [string, string][] {
  return [...headers].filter(([name]) => name !== "connection" && name !== "keep-alive");
}

/** Lets `server` serve at the address of the options, or the connections of an inherited socket until `release` is called. */
async function listening(
  server: Server,
  { host, port, descriptor }: ServeOptions,
  inherited: InheritedListeners,
): Promise<{ readonly address: PeerAddress; release(): void }> {
  if (descriptor !== undefined) {
    const listener = await inherited.open(descriptor);
    // Node starts the check of its time limits when a server listens.
    server.emit("listening");
    const release = listener.use((socket) => server.emit("connection", socket));
    return { address: listener.address, release };
  }
  await bound(server, { host, port });
  const at = server.address();
  if (at === null || typeof at === "string") throw new Error("the listener has no address");
  return { address: { host: canonicalAddress(at.address) ?? at.address, port: at.port }, release() {} };
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
