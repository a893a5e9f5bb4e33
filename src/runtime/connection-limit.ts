import type { Server } from "node:http";
import type { Socket } from "node:net";

/** Says which connections are at work, so that others may have to go. */
export interface ConnectionLimit {
  /** A request has come on `socket`; `done` is to be called when it has been answered. */
  works(socket: Socket): { done(): void };
}

/**
 * Keeps a server to `most` connections. Where a further one comes, the connection that has asked for nothing for the
 * longest time goes: those who only hold connections open must not keep out those who ask. Only when all are at work
 * is the new one refused.
 */
export function limitConnections(server: Server, most: number): ConnectionLimit {
  /** Requests at work by connection. */
  const open = new Map<Socket, number>();
  /** Connections without any, the one that rests for the longest time first. */
  const resting = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    if (open.size >= most) {
      const [longest] = resting;
      if (longest === undefined) {
        socket.destroy();
        return;
      }
      open.delete(longest);
      resting.delete(longest);
      longest.destroy();
    }
    open.set(socket, 0);
    resting.add(socket);
    socket.once("close", () => {
      open.delete(socket);
      resting.delete(socket);
    });
  });
  return {
    works(socket) {
      change(socket, 1);
      return { done: () => change(socket, -1) };
    },
  };

  function change(socket: Socket, by: 1 | -1): void {
    const requests = open.get(socket);
    if (requests === undefined) return;
    open.set(socket, requests + by);
    if (requests + by > 0) resting.delete(socket);
    else resting.add(socket);
  }
}
