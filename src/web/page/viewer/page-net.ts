import type { PeerAddress } from "../../../base/address.ts";
import type { TcpHandlers, TcpSocket } from "../../../runtime/contract.ts";
import { ENGINE_OF_PAGE, pageAddress, pageIdOf } from "../../../wire/live/page-address.ts";
import type { FromWorker, ToWorker } from "./messages.ts";
import { PageSocket } from "./page-socket.ts";

/** Interval at which the buffer of the WebSocket is read while it is not empty: there is no event for that. */
const DRAIN_CHECK_MS = 10;
const MAX_CHANNELS = 64;

/** What the network of the page depends on. */
interface PageNetDependencies {
  /** The URL of the WebSocket to the engine. */
  readonly url: string;
  post(message: FromWorker, transfer?: Transferable[]): void;
  /** Handles a connection of another page. */
  accept(socket: TcpSocket): TcpHandlers;
}

/** The connections of this page to its engine and to other pages, as the live driver opens and accepts them. */
export class PageNet {
  readonly #dependencies: PageNetDependencies;
  readonly #channels = new Map<number, PageSocket>();
  #nextChannel = 0;
  /** Received and sent bytes by the kind of peer. */
  readonly traffic = { fromEngine: 0, fromPages: 0, toPages: 0 };
  #engine: PageSocket | undefined;

  constructor(dependencies: PageNetDependencies) {
    this.#dependencies = dependencies;
  }

  get isEngineConnected(): boolean {
    return this.#engine !== undefined;
  }

  /** Connects to the engine or to another page; there is no way to other addresses. */
  readonly connect = (address: PeerAddress, handlers: TcpHandlers): TcpSocket => {
    if (address.host === ENGINE_OF_PAGE.host) return this.#connectEngine(address, handlers);
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
    if (kind === "accepted") {
      const address = pageAddress(message.from);
      if (address === undefined || this.#channels.size >= MAX_CHANNELS) {
        this.#dependencies.post({ kind: "close", channel });
        return;
      }
      const socket = this.#channel(channel, address);
      socket.handle(this.#dependencies.accept(socket));
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
      this.#channels.delete(channel);
      socket.closed(message.reason);
    }
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
        this.#channels.delete(channel);
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
      close: () => web.close(),
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
      socket.closed("closed by the engine");
    };
    return socket;
  }
}
