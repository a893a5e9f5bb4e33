import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { canonicalAddress, type PeerAddress } from "../base/address.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Network } from "../base/network.ts";
import { pumpBody } from "./body-pump.ts";
import { limitConnections } from "./connection-limit.ts";
import type { AcceptWebSocket, HttpHandler, HttpListener, RequestOrigin, ServeOptions } from "./contract.ts";
import { readableBody } from "./node-streams.ts";
import { bound } from "./sockets.ts";
import { machineNetworks } from "./subnets.ts";
import { serveWebSockets } from "./web-socket.ts";

/** Request line and headers together; browsers send about 1 KiB. */
const MAX_HEADER_BYTES = 16 * 1024;
/**
 * A request head must be complete by then, a whole request by the second limit: a playlist of 50 MB over a weak wireless
 * link takes a minute. Few bodies are read at once (routes/control/form.ts), so that dripping ones cost little.
 */
const HEADERS_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 120_000;
/** An idle kept-alive connection is closed; players ask for a segment every few seconds. */
const KEEP_ALIVE_TIMEOUT_MS = 15_000;
const CHECK_INTERVAL_MS = 1_000;

/**
 * Serves Fetch API handlers over `node:http`, which all runtimes have and which has limits. `sent` hears of all that
 * bodies send.
 */
export async function serve(
  handler: HttpHandler,
  options: ServeOptions,
  sent: (bytes: number) => void = () => {},
): Promise<HttpListener> {
  const networks = machineNetworks();
  const ask: AskHandler = (incoming, request, accept) => {
    const origin = originOf(incoming, networks());
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
      const work = limit.works(incoming.socket);
      outgoing.once("close", () => work.done());
      void answer(ask, incoming, outgoing, sent);
    },
  );
  const limit = limitConnections(server, options.maxConnections);
  const webSockets = serveWebSockets(server, (incoming, accept) => {
    // At work for as long as it lives.
    limit.works(incoming.socket);
    const request = requestOf(incoming);
    return request && ask(incoming, request, accept);
  });
  await bound(server, { host: options.host, port: options.port });
  const end = () => {
    webSockets.close();
    return close(server);
  };
  return { address: listening(server), close: end };
}

/** Asks the handler; undefined where the socket is gone and nobody knows any more who asked. */
type AskHandler = (
  incoming: IncomingMessage,
  request: Request,
  accept?: AcceptWebSocket,
) => ReturnType<HttpHandler> | undefined;

async function answer(
  ask: AskHandler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  sent: (bytes: number) => void,
): Promise<void> {
  const waiting = whileWaiting(outgoing);
  try {
    const request = requestOf(incoming, waiting.signal);
    if (request === undefined) return refuse(outgoing, 400);
    const answering = ask(incoming, request);
    if (answering === undefined) return void outgoing.destroy();
    const response = await answering;
    waiting.end();
    await send(response, outgoing, incoming.method === "HEAD", sent);
  } catch (error) {
    waiting.end();
    // The routes answer every expected error: this is a bug of ours, or a body that broke off half way.
    const isGone = waiting.signal.aborted && error === waiting.signal.reason;
    if (outgoing.headersSent || isGone) {
      outgoing.destroy();
    } else {
      console.error(`request failed: ${error instanceof Error ? error.stack : messageOf(error)}`);
      refuse(outgoing, 500);
    }
  }
}

/**
 * Fires when the asker hangs up while its answer has not begun. From then on `cancel` of the body tells it: a signal
 * that outlived the head would make every body listen to two messengers.
 */
function whileWaiting(outgoing: ServerResponse): { readonly signal: AbortSignal; end(): void } {
  const abort = new AbortController();
  const hungUp = () => abort.abort(new SluiceError("cancelled", "the asker went away"));
  outgoing.once("close", hungUp);
  return { signal: abort.signal, end: () => void outgoing.off("close", hungUp) };
}

function refuse(outgoing: ServerResponse, status: number): void {
  outgoing.writeHead(status, { connection: "close", "content-length": "0" });
  outgoing.end();
}

/** The Fetch form of a request, or undefined where its target or its Host cannot be read (RFC 9112 3.2). */
function requestOf(incoming: IncomingMessage, signal?: AbortSignal): Request | undefined {
  const headers = new Headers();
  for (let i = 0; i + 1 < incoming.rawHeaders.length; i += 2) {
    headers.append(incoming.rawHeaders[i]!, incoming.rawHeaders[i + 1]!);
  }
  // Of all Hosts that came: two of them are none.
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

/** The path and query of a target; one in absolute form must name the very Host (RFC 9112 3.2.2). */
function originForm(target: string, host: string): string | undefined {
  if (target.startsWith("/")) return target;
  const [, authority, rest] = /^http:\/\/([^/?#]+)(\/.*)?$/i.exec(target) ?? [];
  return authority?.toLowerCase() === host.toLowerCase() ? (rest ?? "/") : undefined;
}

function originOf({ socket }: IncomingMessage, networks: readonly Network[]): RequestOrigin | undefined {
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
  sent: (bytes: number) => void,
): Promise<void> {
  const { body } = response;
  if (outgoing.destroyed) return void (await body?.cancel("the asker went away"));
  outgoing.writeHead(response.status, headerList(response.headers));
  if (body === null || isHead) {
    await body?.cancel("a HEAD request");
    return void outgoing.end();
  }
  // Where the body has nothing to say yet the asker learns its head alone; else both go out together.
  setImmediate(() => outgoing.flushHeaders());
  await pumpBody(body, Number(response.headers.get("content-length") ?? 0), outgoing, sent);
}

function headerList(headers: Headers): [string, string][] {
  return [...headers].filter(([name]) => name !== "connection" && name !== "keep-alive");
}

function listening(server: Server): PeerAddress {
  const at = server.address();
  if (at === null || typeof at === "string") throw new Error("the listener has no address");
  return { host: canonicalAddress(at.address) ?? at.address, port: at.port };
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
