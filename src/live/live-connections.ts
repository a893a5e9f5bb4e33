import { addressText } from "../base/address.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import type { LiveConnectionId } from "../protocol/live/contract.ts";
import type { Clock, TcpSocket } from "../runtime/contract.ts";
import type { ConnectionCount, ConnectionHolder } from "../transfer/connection-count.ts";
import type { LiveTraffic } from "./live-announces.ts";
import type { LiveConnection } from "./live-connection.ts";
import type { PeerLink } from "./peer-link.ts";

/** Time limit for the last messages to peers. */
const CLOSE_TIMEOUT_MS = 1_000;
/** Limit of incoming connections that have not introduced themselves yet; beyond it the oldest is closed. */
const MAX_UNREADY = 64;

/** The connections of one live stream, from the first byte until their sockets have closed. */
export class LiveConnections {
  readonly #count: ConnectionCount;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #byId = new Map<LiveConnectionId, LiveConnection>();
  readonly #byLink = new Map<PeerLink, LiveConnection>();
  /** Sockets that have not closed yet. */
  readonly #sockets = new Set<TcpSocket>();
  /** Bytes transferred by closed connections. */
  readonly #closedTraffic = { downloaded: 0, uploaded: 0 };
  #allClosed: () => void = () => {};

  /** `count` is shared by all transfers. */
  constructor(count: ConnectionCount, clock: Clock, log: Log) {
    this.#count = count;
    this.#clock = clock;
    this.#log = log;
  }

  /** Returns true if the limit of all transfers permits one more connection of `holder`. */
  hasRoomFor(holder: ConnectionHolder): boolean {
    return this.#count.hasRoomFor(holder);
  }

  /** See `ConnectionCount.setIdle`. */
  setIdle(holder: ConnectionHolder, isIdle: boolean): void {
    this.#count.setIdle(holder, isIdle);
  }

  get(id: LiveConnectionId): LiveConnection | undefined {
    return this.#byId.get(id);
  }

  of(link: PeerLink): LiveConnection | undefined {
    return this.#byLink.get(link);
  }

  has(connection: LiveConnection): boolean {
    return this.#byId.get(connection.id) === connection;
  }

  all(): LiveConnection[] {
    return [...this.#byId.values()];
  }

  /** The connections whose peers have introduced themselves. */
  ready(): LiveConnection[] {
    return this.all().filter(({ about }) => about !== undefined);
  }

  add(connection: LiveConnection): void {
    this.#byId.set(connection.id, connection);
    this.#byLink.set(connection.link, connection);
    this.#count.open++;
  }

  attach(connection: LiveConnection, socket: TcpSocket): void {
    this.#sockets.add(socket);
    connection.attach(socket);
  }

  /** The socket of a connection has closed. */
  ended(socket: TcpSocket | undefined): void {
    if (socket) this.#sockets.delete(socket);
    this.#count.open--;
    if (this.#sockets.size === 0) this.#allClosed();
  }

  /** Returns the connection to close if too many incoming ones have not introduced themselves: the oldest one of the
   * host with the most, so that a host that floods us displaces its own connections only. */
  excess(): LiveConnection | undefined {
    const unready = this.all().filter(({ link, about }) => link.isIncoming && !about);
    if (unready.length < MAX_UNREADY) return undefined;
    const byHost = new Map<string, LiveConnection[]>();
    for (const connection of unready) {
      const { host } = connection.link.remote;
      byHost.set(host, [...(byHost.get(host) ?? []), connection]);
    }
    return [...byHost.values()].reduce((longest, each) => (each.length > longest.length ? each : longest))[0];
  }

  /** Removes a connection and closes it after its last messages. Returns false if it was removed before. */
  drop(connection: LiveConnection, reason: string): boolean {
    if (!this.has(connection)) return false;
    const { link } = connection;
    this.#log.debug("connection closed", { peer: addressText(link.remote), reason });
    this.#byId.delete(connection.id);
    this.#byLink.delete(link);
    const now = this.#clock.now();
    connection.close(now);
    this.#closedTraffic.downloaded += connection.down.total;
    this.#closedTraffic.uploaded += connection.up.total;
    this.#clock.at(after(now, CLOSE_TIMEOUT_MS), () => connection.destroy());
    return true;
  }

  /** Returns the bytes transferred in total, and the number of ready connections. */
  traffic(): LiveTraffic {
    const traffic = { ...this.#closedTraffic, peers: this.ready().length };
    for (const { down, up } of this.#byId.values()) {
      traffic.downloaded += down.total;
      traffic.uploaded += up.total;
    }
    return traffic;
  }

  /** Closes all connections; resolves when every socket has closed, or after a second. */
  async close(): Promise<void> {
    for (const connection of this.all()) this.drop(connection, "stopped");
    if (this.#sockets.size === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.at(after(this.#clock.now(), CLOSE_TIMEOUT_MS), resolve);
      this.#allClosed = () => {
        cancel();
        resolve();
      };
    });
    for (const socket of this.#sockets) socket.close();
  }
}
