import { addressText } from "../../base/address.ts";
import type { Log } from "../../base/log.ts";
import { after } from "../../base/time.ts";
import type { Clock, TcpSocket } from "../../runtime/contract.ts";
import type { LiveConnectionId } from "../../swarm/live/contract.ts";
import type { ConnectionCount } from "../driver.ts";
import type { LiveTraffic } from "./live-announces.ts";
import type { LiveConnection } from "./live-connection.ts";
import type { PeerLink } from "./peer-link.ts";

/** Goodbyes to peers may take so long. */
const FAREWELL_MS = 1_000;
/** Connections of others that have not said yet what they are to the stream; with more the oldest goes. */
const MAX_UNREADY = 64;

/** The connections of one live stream, from the first byte until their sockets have ended. */
export class LiveConnections {
  readonly #count: ConnectionCount;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #byId = new Map<LiveConnectionId, LiveConnection>();
  readonly #byLink = new Map<PeerLink, LiveConnection>();
  /** Sockets whose end has not come yet. */
  readonly #sockets = new Set<TcpSocket>();
  /** What connections that are over have moved. */
  readonly #gone = { downloaded: 0, uploaded: 0 };
  #allClosed: () => void = () => {};

  /** `count` is that of all transfers. */
  constructor(count: ConnectionCount, clock: Clock, log: Log) {
    this.#count = count;
    this.#clock = clock;
    this.#log = log;
  }

  /** Whether no further connection may be opened. */
  get isFull(): boolean {
    return this.#count.open >= this.#count.limit;
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

  /** Those that have said what they are to the stream. */
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

  /** The socket of a connection has ended. */
  ended(socket: TcpSocket | undefined): void {
    if (socket) this.#sockets.delete(socket);
    this.#count.open--;
    if (this.#sockets.size === 0) this.#allClosed();
  }

  /** Where too many have called us and said nothing yet: the oldest of the host that has the most of them. So they keep
   * nobody out, and a host that calls without end pushes out its own. */
  surplus(): LiveConnection | undefined {
    const unready = this.all().filter(({ link, about }) => link.isIncoming && !about);
    if (unready.length < MAX_UNREADY) return undefined;
    const byHost = new Map<string, LiveConnection[]>();
    for (const connection of unready) {
      const { host } = connection.link.remote;
      byHost.set(host, [...(byHost.get(host) ?? []), connection]);
    }
    return [...byHost.values()].reduce((most, each) => (each.length > most.length ? each : most))[0];
  }

  /** Takes a connection out, and closes it once its last words are on their way. False where it was out already. */
  drop(connection: LiveConnection, reason: string): boolean {
    if (!this.has(connection)) return false;
    const { link } = connection;
    this.#log.debug("connection closed", { peer: addressText(link.remote), reason });
    this.#byId.delete(connection.id);
    this.#byLink.delete(link);
    const now = this.#clock.now();
    connection.close(now);
    this.#gone.downloaded += connection.down.total;
    this.#gone.uploaded += connection.up.total;
    this.#clock.at(after(now, FAREWELL_MS), () => connection.destroy());
    return true;
  }

  /** What has moved in all, and how many are ready. */
  traffic(): LiveTraffic {
    const traffic = { ...this.#gone, peers: this.ready().length };
    for (const { down, up } of this.#byId.values()) {
      traffic.downloaded += down.total;
      traffic.uploaded += up.total;
    }
    return traffic;
  }

  /** Closes all; resolves when every socket has ended, or after a second. */
  async close(): Promise<void> {
    for (const connection of this.all()) this.drop(connection, "stopped");
    if (this.#sockets.size === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.at(after(this.#clock.now(), FAREWELL_MS), resolve);
      this.#allClosed = () => {
        cancel();
        resolve();
      };
    });
    for (const socket of this.#sockets) socket.close();
  }
}
