import { type ClientRequest, type IncomingMessage, request as plainRequest } from "node:http";
import { request as tlsRequest } from "node:https";
import { isIP } from "node:net";
import { connect as connectTls } from "node:tls";
import type { HttpClient, OutboundRequest, OutboundResponse } from "./contract.ts";
import { dialledStream } from "./dialled-stream.ts";
import { readableBody } from "./node-streams.ts";
import { openWebSocket } from "./web-socket-client.ts";

/** The longest response head; answers of trackers and web servers stay far below. */
const MAX_HEADER_BYTES = 16 * 1024;

/** One exchange a connection, to the address that was checked; TLS is verified against the URL's own name. */
export const httpClient: HttpClient = {
  request: (request) => new Promise((resolve, reject) => exchange(request, resolve, reject)),
  openWebSocket,
};

function exchange(
  asked: OutboundRequest,
  resolve: (response: OutboundResponse) => void,
  reject: (reason: unknown) => void,
): void {
  const { signal, timeoutMs } = asked;
  if (signal?.aborted) {
    reject(signal.reason);
    return;
  }
  const request = start(asked);
  const abort = () => request.destroy(signal!.reason);
  // For the whole exchange, the body included: a server that drips bytes must not hold us for ever.
  const late = () => request.destroy(new Error(`no answer in ${Math.round(timeoutMs)} ms`));
  const timer = setTimeout(late, timeoutMs);
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
  request.end(asked.body);
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
  // An IP literal has no server name (RFC 6066 3); the certificate is then checked against the address.
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
