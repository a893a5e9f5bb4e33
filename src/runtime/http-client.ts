import { type ClientRequest, type IncomingMessage, request as plainRequest } from "node:http";
import { request as tlsRequest } from "node:https";
import { isIP } from "node:net";
import { connect as connectTls } from "node:tls";
import type { HttpClient, OutboundRequest, OutboundResponse } from "./contract.ts";
import { dialledStream } from "./dialled-stream.ts";
import { readableBody } from "./node-streams.ts";
import { openWebSocket } from "./web-socket-client.ts";

/** The longest response head; trackers and web servers stay far below. */
const MAX_HEADER_BYTES = 16 * 1024;

/** Opens a connection for each request, to the given address; TLS certificates are verified against the URL's host. */
export const httpClient: HttpClient = {
  request: (request) => new Promise((resolve, reject) => exchange(request, resolve, reject)),
  openWebSocket,
};

function exchange(
  outbound: OutboundRequest,
  resolve: (response: OutboundResponse) => void,
  reject: (reason: unknown) => void,
): void {
  const { signal, timeoutMs } = outbound;
  if (signal?.aborted) {
    reject(signal.reason);
    return;
  }
  const request = start(outbound);
  const abort = () => request.destroy(signal!.reason);
  // Covers the body too, because a server may send it a byte at a time.
  const expire = () => request.destroy(new Error(`no complete response within ${Math.round(timeoutMs)} ms`));
  const timer = setTimeout(expire, timeoutMs);
  signal?.addEventListener("abort", abort, { once: true });
  request.once("close", () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  });
  request.on("error", (error) => reject(signal?.aborted ? signal.reason : error));
  request.once("response", (response) => {
    resolve({
      status: response.statusCode ?? 0,
      headers: headersOf(response),
      body: readableBody(response, () => request.destroy()),
    });
  });
  request.end(outbound.body);
}

function start({ url, method, headers, body, connectTo, dial }: OutboundRequest): ClientRequest {
  const isTls = url.protocol === "https:";
  if (!isTls && url.protocol !== "http:") throw new TypeError(`expected an http(s) URL, got ${url.protocol}`);
  const name = url.hostname.replace(/^\[|\]$/g, "");
  const options = {
    method,
    host: connectTo,
    port: url.port === "" ? (isTls ? 443 : 80) : Number(url.port),
    path: url.pathname + url.search,
    headers: { ...headers, host: url.host, ...(body && { "content-length": String(body.length) }) },
    maxHeaderSize: MAX_HEADER_BYTES,
  };
  // An IP literal has no server name (RFC 6066 3); the certificate is checked against the address instead.
  const tls = { ...(isIP(name) === 0 && { servername: name }), rejectUnauthorized: true };
  if (dial) {
    const createConnection = () => {
      const socket = dialledStream(dial);
      return isTls ? connectTls({ ...tls, socket, host: name }) : socket;
    };
    return plainRequest({ ...options, createConnection });
  }
  if (!isTls) return plainRequest({ ...options, agent: false });
  return tlsRequest({ ...options, ...tls, agent: false });
}

function headersOf(response: IncomingMessage): Headers {
  const headers = new Headers();
  for (let i = 0; i + 1 < response.rawHeaders.length; i += 2) {
    headers.append(response.rawHeaders[i]!, response.rawHeaders[i + 1]!);
  }
  return headers;
}
