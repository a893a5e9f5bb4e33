import { createHash, randomBytes } from "node:crypto";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { TextSocket, TextSocketHandlers, WebSocketRequest } from "./contract.ts";
import { dialledStream } from "./dialled-stream.ts";
import { closeFrame, FrameReader, pongFrame, textFrame } from "./web-socket-frames.ts";

/** RFC 6455 1.3. */
const HANDSHAKE_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/** The longest head of an answer, as everywhere. */
const MAX_HEAD_BYTES = 16 * 1024;
/** What may wait for a server that does not read. */
const MAX_UNSENT_BYTES = 256 * 1024;
/** A server that was told goodbye closes at once, or is left. */
const CLOSING_MS = 2_000;

/** Opens a WebSocket to the address that was checked; TLS is verified against the URL's own name. */
export function openWebSocket(request: WebSocketRequest, handlers: TextSocketHandlers): Promise<TextSocket> {
  const { url, timeoutMs, signal } = request;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const key = randomBytes(16).toString("base64");
    const connection = connectionOf(request);
    let failure: unknown = new Error("the connection was closed before it was a WebSocket");
    const fail = (reason: unknown) => {
      failure = reason;
      connection.destroy();
    };
    const abort = () => fail(signal!.reason);
    const timer = setTimeout(() => fail(new Error(`no WebSocket in ${Math.round(timeoutMs)} ms`)), timeoutMs);
    signal?.addEventListener("abort", abort, { once: true });
    const settled = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
    const over = () => {
      settled();
      reject(failure);
    };
    connection.on("error", (error) => {
      failure = signal?.aborted ? signal.reason : error;
    });
    connection.once("close", over);
    connection.once(url.protocol === "wss:" ? "secureConnect" : "connect", () =>
      connection.write(question(request, key)),
    );
    let head: Buffer = Buffer.alloc(0);
    const reading = (bytes: Buffer) => {
      head = Buffer.concat([head, bytes]);
      const end = head.indexOf("\r\n\r\n");
      if (end < 0 && head.length <= MAX_HEAD_BYTES) return;
      const problem =
        end < 0 ? "a longer head than anybody needs" : refusal(head.subarray(0, end).toString("latin1"), key);
      if (problem !== undefined) return fail(new Error(`no WebSocket: ${problem}`));
      settled();
      connection.off("data", reading);
      connection.off("close", over);
      resolve(carry(connection, head.subarray(end + 4), handlers));
    };
    connection.on("data", reading);
  });
}

function connectionOf({ url, connectTo, dial }: WebSocketRequest): Socket {
  const isTls = url.protocol === "wss:";
  if (!isTls && url.protocol !== "ws:") throw new TypeError(`expected a ws(s) URL, got ${url.protocol}`);
  const port = url.port === "" ? (isTls ? 443 : 80) : Number(url.port);
  const stream = dial && dialledStream(dial);
  if (!isTls) return stream ?? connect({ host: connectTo, port, noDelay: true });
  const name = url.hostname.replace(/^\[|\]$/g, "");
  // An IP literal has no server name (RFC 6066 3); the certificate is then checked against the address.
  const tls = isIP(name) === 0 ? { servername: name } : {};
  return connectTls(stream ? { ...tls, socket: stream, host: name } : { ...tls, host: connectTo, port });
}

function question({ url, headers }: WebSocketRequest, key: string): string {
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

/** Why an answer's head does not agree to what was asked with `key`; undefined where it does (RFC 6455 4.1). */
function refusal(head: string, key: string): string | undefined {
  const [status = "", ...lines] = head.split("\r\n");
  const code = /^HTTP\/1\.1 (\d{3})(?: |$)/.exec(status)?.[1];
  if (code !== "101") return `status ${code ?? "unknown"}`;
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  if (headers.get("upgrade")?.toLowerCase() !== "websocket") return "another protocol";
  const accept = createHash("sha1").update(`${key}${HANDSHAKE_GUID}`).digest("base64");
  if (headers.get("sec-websocket-accept") !== accept) return "the answer to another question";
  // None was offered.
  return headers.has("sec-websocket-extensions") ? "an extension that was not offered" : undefined;
}

/** Carries text over a connection that is a WebSocket now. `first` is what came behind the head already. */
function carry(connection: Socket, first: Uint8Array, handlers: TextSocketHandlers): TextSocket {
  const write = (bytes: Uint8Array) => {
    if (connection.destroyed || connection.writableEnded) return;
    if (connection.writableLength > MAX_UNSENT_BYTES) connection.destroy();
    else connection.write(bytes);
  };
  const mask = () => randomBytes(4);
  const close = (code: number) => {
    write(closeFrame(code, mask()));
    connection.end();
    const timer = setTimeout(() => connection.destroy(), CLOSING_MS);
    connection.once("close", () => clearTimeout(timer));
  };
  const frames = new FrameReader("server");
  const received = (bytes: Uint8Array) => {
    for (const event of frames.read(bytes)) {
      if (event.kind === "text") handlers.received(event.text);
      else if (event.kind === "ping") write(pongFrame(event.bytes, mask()));
      else close(event.code);
    }
  };
  connection.on("data", received);
  connection.once("end", () => connection.end());
  connection.once("close", () => handlers.closed());
  // After the caller has the socket.
  if (first.length > 0) queueMicrotask(() => received(first));
  return { send: (text) => write(textFrame(text, mask())), close: () => close(1000) };
}
