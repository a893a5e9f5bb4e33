import { randomBytes } from "node:crypto";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { TextSocket, TextSocketHandlers, WebSocketRequest } from "./contract.ts";
import { dialledStream } from "./dialled-stream.ts";
import { acceptKey, closeFrame, FrameReader, pongFrame, textFrame } from "./web-socket-frames.ts";

/** The longest response head, as for HTTP. */
const MAX_HEAD_BYTES = 16 * 1024;
/** The connection is closed if the server leaves more bytes unread. */
const MAX_UNSENT_BYTES = 256 * 1024;
/** Time that the server has to close the connection after a close frame. */
const CLOSE_TIMEOUT_MS = 2_000;

/** Opens a WebSocket to `request.connectTo`; TLS certificates are verified against the URL's host. */
export function openWebSocket(request: WebSocketRequest, handlers: TextSocketHandlers): Promise<TextSocket> {
  const { url, timeoutMs, signal } = request;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const key = randomBytes(16).toString("base64");
    const connection = connectionOf(request);
    let failure: unknown = new Error("the connection was closed during the WebSocket handshake");
    const fail = (reason: unknown) => {
      failure = reason;
      connection.destroy();
    };
    const abort = () => fail(signal!.reason);
    const expire = () => fail(new Error(`no WebSocket within ${Math.round(timeoutMs)} ms`));
    const timer = setTimeout(expire, timeoutMs);
    signal?.addEventListener("abort", abort, { once: true });
    const settled = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
    const closed = () => {
      settled();
      reject(failure);
    };
    connection.on("error", (error) => {
      failure = signal?.aborted ? signal.reason : error;
    });
    connection.once("close", closed);
    connection.once(url.protocol === "wss:" ? "secureConnect" : "connect", () =>
      connection.write(handshakeRequest(request, key)),
    );
    let head: Buffer = Buffer.alloc(0);
    const readHead = (bytes: Buffer) => {
      head = Buffer.concat([head, bytes]);
      const end = head.indexOf("\r\n\r\n");
      if (end < 0 && head.length <= MAX_HEAD_BYTES) return;
      const problem =
        end < 0
          ? "the response head is too long"
          : handshakeProblem(head.subarray(0, end).toString("latin1"), key);
      if (problem !== undefined) return fail(new Error(`the WebSocket handshake failed: ${problem}`));
      settled();
      connection.off("data", readHead);
      connection.off("close", closed);
      resolve(openTextSocket(connection, head.subarray(end + 4), handlers));
    };
    connection.on("data", readHead);
  });
}

function connectionOf({ url, connectTo, dial }: WebSocketRequest): Socket {
  const isTls = url.protocol === "wss:";
  if (!isTls && url.protocol !== "ws:") throw new TypeError(`expected a ws(s) URL, got ${url.protocol}`);
  const port = url.port === "" ? (isTls ? 443 : 80) : Number(url.port);
  const stream = dial && dialledStream(dial);
  if (!isTls) return stream ?? connect({ host: connectTo, port, noDelay: true });
  const name = url.hostname.replace(/^\[|\]$/g, "");
  // An IP literal has no server name (RFC 6066 3); the certificate is checked against the address instead.
  const tls = isIP(name) === 0 ? { servername: name } : {};
  return connectTls(stream ? { ...tls, socket: stream, host: name } : { ...tls, host: connectTo, port });
}

function handshakeRequest({ url, headers }: WebSocketRequest, key: string): string {
  const lines = [
    `GET ${url.pathname}${url.search} HTTP/1.1`,
    `Host: ${url.host}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    `Sec-WebSocket-Key: ${key}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** Checks the response head of a handshake (RFC 6455 4.1). Returns what is wrong, or undefined. */
function handshakeProblem(head: string, key: string): string | undefined {
  const [status = "", ...lines] = head.split("\r\n");
  const code = /^HTTP\/1\.1 (\d{3})(?: |$)/.exec(status)?.[1];
  if (code !== "101") return `status ${code ?? "unknown"}`;
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  if (headers.get("upgrade")?.toLowerCase() !== "websocket") return "wrong protocol";
  if (headers.get("sec-websocket-accept") !== acceptKey(key)) return "wrong accept key";
  return headers.has("sec-websocket-extensions") ? "an extension that was not offered" : undefined;
}

/** Exchanges text over an open WebSocket. `first` holds bytes that followed the response head. */
function openTextSocket(connection: Socket, first: Uint8Array, handlers: TextSocketHandlers): TextSocket {
  const write = (bytes: Uint8Array) => {
    if (connection.destroyed || connection.writableEnded) return;
    if (connection.writableLength > MAX_UNSENT_BYTES) connection.destroy();
    else connection.write(bytes);
  };
  const mask = () => randomBytes(4);
  const close = (code: number) => {
    write(closeFrame(code, mask()));
    connection.end();
    const timer = setTimeout(() => connection.destroy(), CLOSE_TIMEOUT_MS);
    connection.once("close", () => clearTimeout(timer));
  };
  const frames = new FrameReader("server");
  const received = (bytes: Uint8Array) => {
    for (const event of frames.read(bytes)) {
      if (event.kind === "text") handlers.received(event.text);
      else if (event.kind === "ping") write(pongFrame(event.bytes, mask()));
      else if (event.kind === "close") close(event.code);
    }
  };
  connection.on("data", received);
  connection.once("end", () => connection.end());
  connection.once("close", () => handlers.closed());
  // Deferred until the caller has the socket.
  if (first.length > 0) queueMicrotask(() => received(first));
  return { send: (text) => write(textFrame(text, mask())), close: () => close(1000) };
}
