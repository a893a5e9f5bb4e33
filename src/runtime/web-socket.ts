import { type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { messageOf } from "../base/errors.ts";
import type {
  AcceptWebSocket,
  ByteStreamOpener,
  TcpHandlers,
  TcpSocket,
  TextSocket,
  TextSocketHandlers,
} from "./contract.ts";
import {
  acceptKey,
  binaryFrame,
  closeFrame,
  FrameReader,
  pongFrame,
  textFrame,
} from "./web-socket-frames.ts";

/** Pages send a message every few seconds, once a minute in a background tab; a longer silence closes the connection. */
const SILENCE_TIMEOUT_MS = 180_000;
/** Time that the page has to close the connection after a close frame. */
const CLOSE_TIMEOUT_MS = 2_000;
/** The connection is closed if the page leaves more bytes unread. */
const MAX_UNSENT_BYTES = 256 * 1024;
/** The longest message of a byte stream that is sent. */
const MAX_SENT_BYTES = 32 * 1024;
/** Unsent bytes of a byte stream above which its writer must wait. */
const WRITE_LIMIT_BYTES = 256 * 1024;
/** A writer that does not wait is disconnected at this many unsent bytes. */
const MAX_STREAM_UNSENT_BYTES = 4 * 1024 * 1024;

/**
 * Upgrades a server's connections to WebSockets if `handle` accepts. Refuses other upgrades, because no runtime can
 * process such a request as a plain one after the `upgrade` event.
 */
export function serveWebSockets(server: Server, handle: UpgradeHandler): { close(): void } {
  const open = new Set<Duplex>();
  server.on("upgrade", (incoming: IncomingMessage, connection: Duplex, head: Uint8Array) => {
    open.add(connection);
    connection.once("close", () => open.delete(connection));
    // `close` follows and is handled above.
    connection.on("error", () => {});
    upgrade(incoming, connection, head, handle).catch((error) => {
      console.error(`request failed: ${error instanceof Error ? error.stack : messageOf(error)}`);
      refuse(connection, 500);
    });
  });
  return {
    close() {
      for (const connection of open) connection.destroy();
    },
  };
}

/** Responds to a WebSocket request; returns undefined if the request is invalid. */
type UpgradeHandler = (
  incoming: IncomingMessage,
  accept: AcceptWebSocket,
) => Response | Promise<Response> | undefined;

async function upgrade(
  incoming: IncomingMessage,
  connection: Duplex,
  head: Uint8Array,
  handle: UpgradeHandler,
): Promise<void> {
  if (!isWebSocketRequest(incoming)) return refuse(connection, 400);
  let opening: Parameters<AcceptWebSocket>[0] | undefined;
  const response = await handle(incoming, (open) => {
    opening = open;
    return new Response(null);
  });
  // A middleware may have wrapped the response, so any successful response accepts.
  if (opening === undefined || response === undefined || !response.ok) {
    await response?.body?.cancel("not a WebSocket");
    return refuse(connection, response === undefined || response.ok ? 400 : response.status);
  }
  if (connection.destroyed) return;
  answerHandshake(incoming, connection);
  if (typeof opening === "function") openTextSocket(connection, head, opening);
  else openByteStream(connection, head, opening);
}

function refuse(connection: Duplex, status: number): void {
  connection.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
  );
}

/** Returns true for a valid handshake of version 13 (RFC 6455 4.2.1). */
function isWebSocketRequest({ method, headers }: IncomingMessage): boolean {
  return (
    method === "GET" &&
    headers.upgrade?.toLowerCase() === "websocket" &&
    headers["sec-websocket-version"] === "13" &&
    /^[A-Za-z0-9+/]{22}==$/.test(headers["sec-websocket-key"] ?? "")
  );
}

function answerHandshake(incoming: IncomingMessage, connection: Duplex): void {
  const accept = acceptKey(String(incoming.headers["sec-websocket-key"]));
  connection.write(
    `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
  );
}

/** Exchanges text messages. `head` holds bytes that followed the request. */
function openTextSocket(
  connection: Duplex,
  head: Uint8Array,
  open: (socket: TextSocket) => TextSocketHandlers,
): void {
  const write = (bytes: Uint8Array) => {
    if (connection.destroyed || connection.writableEnded) return;
    if (connection.writableLength > MAX_UNSENT_BYTES) connection.destroy();
    else connection.write(bytes);
  };
  const { close, receive } = watchConnection(connection, new FrameReader(), write);
  const handlers = open({ send: (text) => write(textFrame(text)), close: () => close(1000) });
  connection.once("close", () => handlers.closed());
  receive(head, (event) => {
    if (event.kind === "text") handlers.received(event.text);
  });
}

/** Exchanges binary messages as two byte streams. `head` holds bytes that followed the request. */
function openByteStream(connection: Duplex, head: Uint8Array, { remote, open }: ByteStreamOpener): void {
  let reason = "closed by the peer";
  let owesDrained = false;
  // Set after `open` returns, which may write.
  let handlers: TcpHandlers | undefined;
  const written = () => {
    if (!owesDrained || connection.destroyed || connection.writableLength > 0) return;
    owesDrained = false;
    handlers?.drained();
  };
  const write = (bytes: Uint8Array) => {
    if (connection.destroyed || connection.writableEnded) return;
    if (connection.writableLength > MAX_STREAM_UNSENT_BYTES) connection.destroy();
    else connection.write(bytes, written);
  };
  const { receive } = watchConnection(connection, new FrameReader("browser", "binary"), write);
  const socket: TcpSocket = {
    remote,
    get bufferedBytes() {
      return connection.writableLength;
    },
    write(bytes) {
      owesDrained = true;
      for (let at = 0; at < bytes.length; at += MAX_SENT_BYTES)
        write(binaryFrame(bytes.subarray(at, at + MAX_SENT_BYTES)));
      return connection.writableLength < WRITE_LIMIT_BYTES;
    },
    pause: () => void connection.pause(),
    resume: () => void connection.resume(),
    close() {
      if (!connection.destroyed) reason = "closed by us";
      connection.destroy();
    },
  };
  handlers = open(socket);
  connection.once("close", () => handlers.closed(reason));
  receive(head, (event) => {
    if (event.kind === "binary" && !connection.destroyed) handlers.received(event.bytes);
  });
}

type Frame = ReturnType<FrameReader["read"]>[number];

/** Answers pings and close frames, and closes a silent connection. `receive` starts reading and reports messages. */
function watchConnection(connection: Duplex, frames: FrameReader, write: (bytes: Uint8Array) => void) {
  let timeout = setTimeout(() => connection.destroy(), SILENCE_TIMEOUT_MS);
  let isClosing = false;
  const close = (code: number) => {
    if (isClosing) return;
    isClosing = true;
    write(closeFrame(code));
    connection.end();
    clearTimeout(timeout);
    timeout = setTimeout(() => connection.destroy(), CLOSE_TIMEOUT_MS);
  };
  connection.once("end", () => connection.end());
  connection.once("close", () => clearTimeout(timeout));
  const receive = (head: Uint8Array, message: (event: Frame) => void) => {
    const received = (bytes: Uint8Array) => {
      // Data after our close frame is ignored and does not extend the timeout.
      if (isClosing) return;
      clearTimeout(timeout);
      timeout = setTimeout(() => connection.destroy(), SILENCE_TIMEOUT_MS);
      for (const event of frames.read(bytes)) {
        if (event.kind === "ping") write(pongFrame(event.bytes));
        else if (event.kind === "close") close(event.code);
        else message(event);
      }
    };
    connection.on("data", received);
    if (head.length > 0) received(head);
  };
  return { close, receive };
}
