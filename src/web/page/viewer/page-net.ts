import type { PeerAddress } from "../../../base/address.ts";
import { toHex } from "../../../base/bytes.ts";
import type { TcpHandlers, TcpSocket } from "../../../runtime/contract.ts";
import { ENGINE_OF_PAGE, pageAddress, pageIdOf } from "../../../wire/live/page-address.ts";
import type { FromWorker, ToWorker } from "./messages.ts";
import { PageSocket } from "./page-socket.ts";

/** Interval at which the buffer of the WebSocket is read while it is not empty: there is no event for that. */
const DRAIN_CHECK_MS = 10;
const MAX_CHANNELS = 64;
/** An introduced page that is not needed is disconnected after this time. */
const INTRODUCED_MS = 10_000;

/** What the network of the page depends on. */
interface PageNetDependencies {
  /** The URL of the WebSocket to the engine. */
  readonly url: string;
  post(message: FromWorker, transfer?: Transferable[]): void;
  /** Handles a connection of another page. */
  accept(socket: TcpSocket): TcpHandlers;
  /** A connection to this address is open, and waits for `connect`. */
  introduced(address: PeerAddress): void;
}

/** The connections of this page to its engine and to other pages, as the live driver opens and accepts them. */
export class PageNet {
  readonly #dependencies: PageNetDependencies;
  readonly #channels = new Map<number, PageSocket>();
  #nextChannel = 0;
  /** Open connections to pages that a tracker introduced, by their made-up addresses; undefined once they are in use. */
  readonly #introduced = new Map<string, PageSocket | undefined>();
  /** Received and sent bytes by the kind of peer. */
  readonly traffic = { fromEngine: 0, fromPages: 0, toPages: 0 };
  #engine: PageSocket | undefined;
  /** The engine has ended a connection, and there is no other one. */
  #isRefused = false;

  constructor(dependencies: PageNetDependencies) {
    this.#dependencies = dependencies;
  }

  get isEngineConnected(): boolean {
    return this.#engine !== undefined;
  }

  /** Whether the engine has ended the connection, as it does if it has too many of the network. */
  get isRefused(): boolean {
    return this.#isRefused && this.#engine === undefined;
  }

  /** Returns whether another page can connect to this one as it did now: not if a tracker introduced the two. */
  isInRoom(address: PeerAddress): boolean {
    return pageIdOf(address) !== undefined && !this.#introduced.has(address.host);
  }

  /** Connects to the engine or to another page; there is no way to other addresses. */
  readonly connect = (address: PeerAddress, handlers: TcpHandlers): TcpSocket => {
    if (address.host === ENGINE_OF_PAGE.host) return this.#connectEngine(address, handlers);
    const introduced = this.#introduced.get(address.host);
    if (introduced) {
      this.#introduced.set(address.host, undefined);
      introduced.handle(handlers);
      queueMicrotask(() => introduced.opened());
      return introduced;
    }
    const to = pageIdOf(address);
    this.#nextChannel += 2;
    const channel = this.#nextChannel;
    const socket = this.#channel(channel, address);
    socket.handle(handlers);
    if (to === undefined || this.#channels.size > MAX_CHANNELS) socket.close();
    else this.#dependencies.post({ kind: "connect", channel, to });
    return socket;
  };

  /** Handles a message about a channel. */
  received(message: Extract<ToWorker, { readonly channel: number }>): void {
    const { kind, channel } = message;
    if (kind === "accepted" || kind === "introduced") {
      const { post, accept } = this.#dependencies;
      const from = kind === "accepted" ? message.from : undefined;
      const address = pageAddress(from ?? toHex(crypto.getRandomValues(new Uint8Array(8))));
      if (address === undefined || this.#channels.size >= MAX_CHANNELS) {
        post({ kind: "close", channel });
        return;
      }
      const socket = this.#channel(channel, address);
      if (kind === "introduced") this.#offer(socket);
      else {
        if (from === undefined) this.#introduced.set(address.host, undefined);
        socket.handle(accept(socket));
      }
      return;
    }
    const socket = this.#channels.get(channel);
    if (!socket) return;
    if (kind === "opened") socket.opened();
    else if (kind === "sent") socket.sent(message.total);
    else if (kind === "received") {
      this.traffic.fromPages += message.bytes.byteLength;
      socket.received(new Uint8Array(message.bytes));
    } else {
      this.#forget(channel);
      socket.closed(message.reason);
    }
  }

  /** Offers an open connection to the swarm. */
  #offer(socket: PageSocket): void {
    const { host } = socket.remote;
    this.#introduced.set(host, socket);
    setTimeout(() => this.#introduced.get(host)?.close(), INTRODUCED_MS);
    this.#dependencies.introduced(socket.remote);
  }

  #forget(channel: number): void {
    const socket = this.#channels.get(channel);
    if (socket) this.#introduced.delete(socket.remote.host);
    this.#channels.delete(channel);
  }

  #channel(channel: number, address: PeerAddress): PageSocket {
    const { post } = this.#dependencies;
    const socket = new PageSocket(address, {
      send: (bytes) => {
        this.traffic.toPages += bytes.length;
        const own = bytes.slice();
        post({ kind: "send", channel, bytes: own.buffer }, [own.buffer]);
      },
      close: () => {
        this.#forget(channel);
        post({ kind: "close", channel });
      },
    });
    this.#channels.set(channel, socket);
    return socket;
  }

  #connectEngine(address: PeerAddress, handlers: TcpHandlers): TcpSocket {
    const web = new WebSocket(this.#dependencies.url);
    web.binaryType = "arraybuffer";
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isOurs = false;
    const drain = () => {
      timer = undefined;
      socket.sent(socket.written - web.bufferedAmount);
      if (web.bufferedAmount > 0) timer = setTimeout(drain, DRAIN_CHECK_MS);
    };
    const socket = new PageSocket(address, {
      send(bytes) {
        web.send(bytes as Uint8Array<ArrayBuffer>);
        timer ??= setTimeout(drain, 0);
      },
      close: () => {
        isOurs = true;
        web.close();
      },
    });
    socket.handle(handlers);
    web.onopen = () => {
      this.#engine = socket;
      socket.opened();
    };
    web.onmessage = ({ data }) => {
      if (!(data instanceof ArrayBuffer)) return socket.close();
      this.traffic.fromEngine += data.byteLength;
      socket.received(new Uint8Array(data));
    };
    web.onclose = () => {
      clearTimeout(timer);
      if (this.#engine === socket) this.#engine = undefined;
      this.#isRefused ||= !isOurs;
      socket.closed("closed by the engine");
    };
    return socket;
  }
}
