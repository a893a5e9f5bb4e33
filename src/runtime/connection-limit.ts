import type { Server } from "node:http";
import type { Socket } from "node:net";
import { canonicalAddress } from "../base/address.ts";
import { householdOf } from "../base/network.ts";

/** One in so many connections is reserved for programs of this host, so that other devices cannot lock the user out. */
const LOCAL_SHARE = 8;
/** One other device may hold this share of all connections; an IPv6 /64 counts as one device. */
const DEVICE_SHARE = 2;
/** A client that has read nothing for this long may be disconnected if others need its connection. */
const UNREAD_MS = 5_000;

interface ConnectionLimit {
  /** Marks `socket` as busy with a request until `done` is called. */
  begin(socket: Socket): PendingRequest;
  /** Closes all connections that `isUnwanted` selects. */
  closeEach(isUnwanted: (socket: Socket) => boolean): void;
}

/** What the limit has to know of a request. */
export interface PendingRequest {
  /** The client has to read something before the response goes on. */
  writing(): void;
  /** The client has read it. */
  written(): void;
  done(): void;
}

interface Connection {
  /** The client's {@link householdOf}. */
  readonly household: string;
  readonly isLocal: boolean;
  requestCount: number;
  /** When the connection became idle, or began to wait for the client to read; undefined if neither. */
  waitingSince: number | undefined;
}

/**
 * Limits a server to `maxConnections`, and each other device to a share of them. A new connection beyond a limit closes
 * the least useful one: of the device with the most connections the one that has been idle longest, else the one that its
 * client has not read for longest. It is refused if its own device has the most and all of those are in use.
 * CHOICE(connection-limit): a paused player does not read either, so it loses its connection only under pressure. Programs
 * of this host are known by 127.0.0.1, ::1, or the same address at both ends.
 */
export function limitConnections(
  server: Server,
  maxConnections: number,
  now: () => number = () => performance.now(),
): ConnectionLimit {
  const maxRemote = maxConnections - Math.max(1, Math.floor(maxConnections / LOCAL_SHARE));
  const maxDevice = Math.ceil(maxConnections / DEVICE_SHARE);
  const connections = new Map<Socket, Connection>();
  /** Connections by household. */
  const counts = new Map<string, number>();
  let remoteCount = 0;

  server.on("connection", (socket: Socket) => {
    const host = canonicalAddress(socket.remoteAddress ?? "");
    if (host === undefined) return void socket.destroy();
    const household = householdOf(host);
    const isLocal =
      host === "127.0.0.1" || host === "::1" || host === canonicalAddress(socket.localAddress ?? "");
    if (!hasRoom(household, isLocal)) return void socket.destroy();
    connections.set(socket, { household, isLocal, requestCount: 0, waitingSince: now() });
    counts.set(household, countOf(household) + 1);
    if (!isLocal) remoteCount++;
    socket.once("close", () => remove(socket));
  });

  return {
    begin(socket) {
      const connection = connections.get(socket);
      if (connection === undefined) return { writing() {}, written() {}, done() {} };
      connection.requestCount++;
      connection.waitingSince = undefined;
      return {
        writing: () => {
          connection.waitingSince = now();
        },
        written: () => {
          connection.waitingSince = undefined;
        },
        done: () => {
          connection.waitingSince = --connection.requestCount === 0 ? now() : undefined;
        },
      };
    },
    closeEach(isUnwanted) {
      for (const socket of [...connections.keys()]) if (isUnwanted(socket)) socket.destroy();
    },
  };

  function countOf(household: string): number {
    return counts.get(household) ?? 0;
  }

  /** Makes room for a connection of this device if necessary; returns false if there is none. */
  function hasRoom(household: string, isLocal: boolean): boolean {
    if (!isLocal && countOf(household) >= maxDevice)
      return closeLeastUseful(household, (other) => other.household === household);
    if (!isLocal && remoteCount >= maxRemote) return closeLeastUseful(household, (other) => !other.isLocal);
    return connections.size < maxConnections || closeLeastUseful(household, () => true);
  }

  function closeLeastUseful(household: string, mayClose: (connection: Connection) => boolean): boolean {
    const unreadBefore = now() - UNREAD_MS;
    let worst: [Socket, Connection] | undefined;
    for (const entry of connections) {
      const [, connection] = entry;
      const { waitingSince, requestCount } = connection;
      if (waitingSince === undefined || !mayClose(connection)) continue;
      if (requestCount > 0 && waitingSince > unreadBefore) continue;
      // Otherwise a device with many connections in use would close the few of another device.
      if (connection.household !== household && countOf(connection.household) <= countOf(household)) continue;
      if (worst === undefined || isLessUseful(connection, worst[1])) worst = entry;
    }
    if (worst === undefined) return false;
    remove(worst[0]);
    worst[0].destroy();
    return true;
  }

  function isLessUseful(a: Connection, b: Connection): boolean {
    const more = countOf(a.household) - countOf(b.household);
    if (more !== 0) return more > 0;
    if (a.requestCount > 0 !== b.requestCount > 0) return b.requestCount > 0;
    return a.waitingSince! < b.waitingSince!;
  }

  function remove(socket: Socket): void {
    const connection = connections.get(socket);
    if (connection === undefined) return;
    connections.delete(socket);
    const { household, isLocal } = connection;
    const left = countOf(household) - 1;
    if (left === 0) counts.delete(household);
    else counts.set(household, left);
    if (!isLocal) remoteCount--;
  }
}
