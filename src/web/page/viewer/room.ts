import type { DataConnection, Peer } from "peerjs";
import type { FromWorker, ToWorker } from "./messages.ts";

/** A page connects to at most 24 others, and accepts as many. */
const MAX_CONNECTIONS = 48;
/** Two pages connect within some seconds, or not at all. */
const CONNECT_TIMEOUT_MS = 10_000;
/** The worker writes at most 16 KiB at once; other programs may use larger messages. */
const MAX_MESSAGE_BYTES = 64 * 1024;

/** What a room depends on. */
interface RoomDependencies {
  /** The URL of the swarm at the engine. */
  readonly url: string;
  readonly iceServers: readonly RTCIceServer[];
  /** Sends to the worker. */
  post(message: ToWorker, transfer?: Transferable[]): void;
  /** The engine has ended the room, for example because it restarted. */
  lost(): void;
}

/** A connection to another page: of PeerJS, or one that a tracker introduced. */
interface Link {
  /** Undefined before it opens; PeerJS removes it when it closes. */
  readonly dataChannel: RTCDataChannel | undefined;
  send(bytes: ArrayBuffer): void;
  close(): void;
}

type ChannelCommand = Extract<FromWorker, { readonly channel: number }>;

/** The data channels of this page to other pages of the stream, which the engine introduces by PeerJS. The worker uses them. */
export class Room {
  readonly #dependencies: RoomDependencies;
  readonly #peer: Peer;
  readonly #channels = new Map<number, Link>();
  #nextAccepted = 1;
  #isLeft = false;

  /** Use {@link openRoom}. `peer` is open. */
  constructor(peer: Peer, dependencies: RoomDependencies) {
    this.#peer = peer;
    this.#dependencies = dependencies;
    peer.on("connection", (connection) => this.#accept(connection));
    const lost = () => {
      if (!this.#isLeft) dependencies.lost();
    };
    peer.on("disconnected", lost);
    // Errors of one connection are reported to that one as well.
    peer.on("error", () => {});
  }

  /** The id under which other pages know this one. */
  get id(): string {
    return this.#peer.id;
  }

  /** Executes a command of the worker. */
  command(command: ChannelCommand): void {
    const { channel } = command;
    const connection = this.#channels.get(channel);
    if (command.kind === "connect") {
      const isFull = this.#channels.size >= MAX_CONNECTIONS;
      const opened = isFull || this.#isLeft ? undefined : this.#peer.connect(command.to, RAW);
      if (opened) this.#watch(channel, opened, () => this.#dependencies.post({ kind: "opened", channel }));
      else this.#dependencies.post({ kind: "closed", channel, reason: "no connection" });
    } else if (command.kind === "close") this.#end(channel, "closed by us");
    else if (connection?.dataChannel?.readyState === "open") {
      connection.send(command.bytes);
      this.#sent(channel, connection, command.bytes.byteLength);
    }
  }

  /** Closes all connections. */
  leave(): void {
    this.#isLeft = true;
    for (const channel of [...this.#channels.keys()]) this.#end(channel, "left the room");
    this.#peer.destroy();
  }

  /** Takes over the open channel of a connection that a tracker introduced; `isOurs`: this page made the offer. */
  adopt(connection: RTCPeerConnection, dataChannel: RTCDataChannel, isOurs: boolean): void {
    if (this.#channels.size >= MAX_CONNECTIONS || this.#isLeft) {
      connection.close();
      return;
    }
    const channel = this.#nextAccepted;
    this.#nextAccepted += 2;
    const link: Link = {
      dataChannel,
      send: (bytes) => dataChannel.send(bytes),
      close: () => connection.close(),
    };
    this.#channels.set(channel, link);
    dataChannel.addEventListener("message", ({ data }) => this.#received(channel, link, data));
    dataChannel.addEventListener("close", () => this.#end(channel, "closed by the page"));
    this.#opened(channel, link, dataChannel);
    this.#dependencies.post(
      isOurs ? { kind: "introduced", channel } : { kind: "accepted", channel, from: undefined },
    );
  }

  #accept(connection: DataConnection): void {
    if (this.#channels.size >= MAX_CONNECTIONS || connection.serialization !== RAW.serialization) {
      connection.close();
      return;
    }
    const channel = this.#nextAccepted;
    this.#nextAccepted += 2;
    const from = connection.peer;
    this.#watch(channel, connection, () => this.#dependencies.post({ kind: "accepted", channel, from }));
  }

  #watch(channel: number, connection: DataConnection, opened: () => void): void {
    const link = connection as Link;
    this.#channels.set(channel, link);
    const timeout = setTimeout(() => this.#end(channel, "no connection in time"), CONNECT_TIMEOUT_MS);
    connection.on("open", () => {
      clearTimeout(timeout);
      this.#opened(channel, link, connection.dataChannel);
      if (this.#channels.get(channel) === link) opened();
    });
    connection.on("data", (data) => this.#received(channel, link, data));
    connection.on("close", () => this.#end(channel, "closed by the page"));
    connection.on("error", () => this.#end(channel, "failed"));
  }

  #opened(channel: number, link: Link, dataChannel: RTCDataChannel): void {
    dataChannel.bufferedAmountLowThreshold = 0;
    dataChannel.addEventListener("bufferedamountlow", () => this.#sent(channel, link, 0));
  }

  #received(channel: number, link: Link, data: unknown): void {
    if (this.#channels.get(channel) !== link) return;
    if (!(data instanceof ArrayBuffer) || data.byteLength > MAX_MESSAGE_BYTES)
      this.#end(channel, "an invalid message");
    else this.#dependencies.post({ kind: "received", channel, bytes: data }, [data]);
  }

  readonly #written = new Map<number, number>();

  /** Tells the worker how much has left the buffer of a channel. */
  #sent(channel: number, connection: Link, bytes: number): void {
    // An event of a channel that was closed meanwhile: PeerJS has removed its data channel.
    if (this.#channels.get(channel) !== connection || !connection.dataChannel) return;
    const total = (this.#written.get(channel) ?? 0) + bytes;
    this.#written.set(channel, total);
    this.#dependencies.post({ kind: "sent", channel, total: total - connection.dataChannel.bufferedAmount });
  }

  #end(channel: number, reason: string): void {
    const connection = this.#channels.get(channel);
    if (!connection) return;
    this.#channels.delete(channel);
    this.#written.delete(channel);
    connection.close();
    this.#dependencies.post({ kind: "closed", channel, reason });
  }
}

/** Messages are binary and travel in order. */
const RAW = { serialization: "raw", reliable: true } as const;

/** Joins the pages of the stream; rejects if the engine does not introduce pages, or if the browser has no WebRTC. */
export async function openRoom(dependencies: RoomDependencies): Promise<Room> {
  const { Peer } = await import("peerjs");
  const { hostname, port, protocol, pathname } = new URL(dependencies.url);
  const secure = protocol === "https:";
  const peer = new Peer({
    ...{ host: hostname, port: Number(port || (secure ? 443 : 80)), path: pathname, secure },
    config: { iceServers: [...dependencies.iceServers] },
    debug: 0,
  });
  try {
    await new Promise<void>((resolve, reject) => {
      peer.once("open", () => resolve());
      peer.once("error", reject);
    });
  } catch (error) {
    peer.destroy();
    throw error;
  }
  return new Room(peer, dependencies);
}
