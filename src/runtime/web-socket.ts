import { createHash } from "node:crypto";
import { type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { messageOf } from "../base/errors.ts";
import type { AcceptWebSocket, TextSocket, TextSocketHandlers } from "./contract.ts";
import { closeFrame, FrameReader, pongFrame, textFrame } from "./web-socket-frames.ts";

/** RFC 6455 1.3. */
const HANDSHAKE_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/** Pages give a sign of life every few seconds, in the background once a minute; one that is silent for so long is gone. */
const SILENCE_MS = 180_000;
/** A page that was told goodbye closes at once, or is left. */
const CLOSING_MS = 2_000;
/** What may wait for a page that does not read. */
const MAX_UNSENT_BYTES = 256 * 1024;

/**
 * Lets a server's connections become WebSockets where `handle` agrees. Requests that only name an upgrade we do not know
 * are refused: no runtime lets them go on as plain requests once it has told of them.
 */
export function serveWebSockets(server: Server, handle: UpgradeHandler): { close(): void } {
  const open = new Set<Duplex>();
  server.on("upgrade", (incoming: IncomingMessage, connection: Duplex, head: Uint8Array) => {
    open.add(connection);
    connection.once("close", () => open.delete(connection));
    // A broken connection is told by `close`, which comes after it.
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

/** The answer to a request that asks for a WebSocket, or undefined where the request cannot be read. */
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
  if (!asksForWebSocket(incoming)) return refuse(connection, 400);
  let opening: Parameters<AcceptWebSocket>[0] | undefined;
  const response = await handle(incoming, (open) => {
    opening = open;
    return new Response(null);
  });
  // A middleware may have put the answer into another one with more headers: what counts is that it is no refusal.
  if (opening === undefined || response === undefined || !response.ok) {
    await response?.body?.cancel("not a WebSocket");
    return refuse(connection, response === undefined || response.ok ? 400 : response.status);
  }
  if (!connection.destroyed) openWebSocket(incoming, connection, head, opening);
}

function refuse(connection: Duplex, status: number): void {
  connection.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
  );
}

/** Whether a request asks to become a WebSocket in the one version there is (RFC 6455 4.2.1). */
function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return (
    method === "GET" &&
    headers.upgrade?.toLowerCase() === "websocket" &&
    headers["sec-websocket-version"] === "13" &&
    /^[A-Za-z0-9+/]{22}==$/.test(headers["sec-websocket-key"] ?? "")
  );
}

/** Makes the connection of such a request a WebSocket. `head` is what came behind the request already. */
function openWebSocket(
  incoming: IncomingMessage,
  connection: Duplex,
  head: Uint8Array,
  open: (socket: TextSocket) => TextSocketHandlers,
): void {
  const accept = createHash("sha1")
    .update(`${incoming.headers["sec-websocket-key"]}${HANDSHAKE_GUID}`)
    .digest("base64");
  connection.write(
    `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
  );
  let silence = setTimeout(() => connection.destroy(), SILENCE_MS);
  const write = (bytes: Uint8Array) => {
    if (connection.destroyed || connection.writableEnded) return;
    if (connection.writableLength > MAX_UNSENT_BYTES) connection.destroy();
    else connection.write(bytes);
  };
  let isClosing = false;
  const close = (code: number) => {
    if (isClosing) return;
    isClosing = true;
    write(closeFrame(code));
    connection.end();
    clearTimeout(silence);
    silence = setTimeout(() => connection.destroy(), CLOSING_MS);
  };
  const handlers = open({ send: (text) => write(textFrame(text)), close: () => close(1000) });
  const frames = new FrameReader();
  const received = (bytes: Uint8Array) => {
    // What is still on its way counts no more, and holds up nothing.
    if (isClosing) return;
    clearTimeout(silence);
    silence = setTimeout(() => connection.destroy(), SILENCE_MS);
    for (const event of frames.read(bytes)) {
      if (event.kind === "text") handlers.received(event.text);
      else if (event.kind === "ping") write(pongFrame(event.bytes));
      else close(event.code);
    }
  };
  connection.on("data", received);
  connection.once("end", () => connection.end());
  connection.once("close", () => {
    clearTimeout(silence);
    handlers.closed();
  });
  if (head.length > 0) received(head);
}
