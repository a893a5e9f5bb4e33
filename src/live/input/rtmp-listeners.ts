import { addressText, type PeerAddress } from "../../base/address.ts";
import { toHex } from "../../base/bytes.ts";
import { DecodeError, messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { after } from "../../base/time.ts";
import { Publication } from "../../protocol/rtmp/publication.ts";
import type { Runtime, TcpHandlers, TcpListener, TcpSocket } from "../../runtime/contract.ts";
import type { RtmpPlace } from "./source-place.ts";

/** What the listeners depend on. */
export interface RtmpDependencies {
  readonly runtime: Pick<Runtime, "net" | "clock" | "randomBytes" | "sha256">;
  readonly log: Log;
}

/** A connected publisher. */
export interface Publisher {
  readonly address: string;
  /** Stop and continue reading from the connection. */
  pause(): void;
  resume(): void;
  /** Ends the connection with an error that the publisher shows. */
  refuse(reason: string): void;
}

/** Receives what is published with one key. */
export interface PublishedStream {
  /** A publisher begins; another one that published before is disconnected. */
  began(publisher: Publisher): void;
  /** The body of an FLV tag; `timestampMs` is its decode time modulo 2^32. A `DecodeError` ends the connection. */
  media(kind: "audio" | "video", timestampMs: number, body: Uint8Array): void;
  /** The publisher has ended its stream, or its connection was lost. */
  ended(publisher: Publisher): void;
}

/** Publishers of one port, and strangers that have not sent a key yet. */
const MAX_CONNECTIONS = 64;
/** A connection must publish within this time. */
const PUBLISH_TIMEOUT_MS = 10_000;
/** A publisher gets short answers only; one that does not read them is disconnected. */
const MAX_UNREAD_BYTES = 64 * 1024;
/** Time for a publisher to read the last message before the connection is closed. */
const LINGER_MS = 500;

interface Port {
  readonly listener: Promise<TcpListener>;
  /** By the hash of the key, so that the time of a comparison tells nothing about a key. */
  readonly streams: Map<string, { readonly app: string; readonly stream: PublishedStream }>;
  readonly connections: Set<TcpSocket>;
}

/** The ports on which this process receives RTMP. Streams with different keys can share a port. */
export class RtmpListeners {
  readonly #dependencies: RtmpDependencies;
  /** By address. */
  readonly #ports = new Map<string, Port>();

  constructor(dependencies: RtmpDependencies) {
    this.#dependencies = dependencies;
  }

  /** Receives what is published with `key`. Resolves to a function that stops it. Rejects with `port_busy` or `bad_parameter`. */
  async receive({ bind, app }: RtmpPlace, key: string, stream: PublishedStream): Promise<() => void> {
    const name = addressText(bind);
    const port = this.#ports.get(name) ?? this.#open(bind);
    this.#ports.set(name, port);
    const hash = this.#hash(key);
    port.streams.set(hash, { app, stream });
    let isStopped = false;
    const stop = () => {
      if (isStopped) return;
      isStopped = true;
      port.streams.delete(hash);
      if (port.streams.size > 0) return;
      this.#ports.delete(name);
      for (const socket of port.connections) socket.close();
      void port.listener.then((listener) => listener.close()).catch(() => {}); // It was never open.
    };
    try {
      await port.listener;
      return stop;
    } catch (thrown) {
      stop();
      throw listenError(bind, thrown);
    }
  }

  #open(bind: PeerAddress): Port {
    const streams: Port["streams"] = new Map();
    const connections = new Set<TcpSocket>();
    const { net } = this.#dependencies.runtime;
    const port: Port = {
      streams,
      connections,
      listener: net.listen(bind, (socket) => this.#accept(socket, port)),
    };
    return port;
  }

  #accept(socket: TcpSocket, port: Port): TcpHandlers {
    const { runtime, log } = this.#dependencies;
    const address = addressText(socket.remote);
    let end = () => {};
    let stream: PublishedStream | undefined;
    const refuse = (reason: string) => {
      log.warn("publisher refused", { address, reason });
      publication.refuse(reason);
    };
    const publication = new Publication(
      {
        send(bytes) {
          socket.write(bytes);
          if (socket.bufferedBytes > MAX_UNREAD_BYTES) socket.close();
        },
        publish: (app, key) => {
          const wanted = port.streams.get(this.#hash(key));
          if (!wanted || wanted.app !== app) {
            log.warn("publisher refused", { address, reason: "unknown address or wrong stream key" });
            return "unknown address or wrong stream key";
          }
          cancelTimeout();
          stream = wanted.stream;
          log.info("publishing", { address });
          const publisher = { address, pause: () => socket.pause(), resume: () => socket.resume(), refuse };
          end = () => wanted.stream.ended(publisher);
          stream.began(publisher);
          return undefined;
        },
        media: (kind, timestampMs, body) => stream?.media(kind, timestampMs, body),
        ended: () => {
          runtime.clock.at(after(runtime.clock.now(), LINGER_MS), () => socket.close());
        },
      },
      runtime.randomBytes,
    );
    const cancelTimeout = runtime.clock.at(after(runtime.clock.now(), PUBLISH_TIMEOUT_MS), () =>
      socket.close(),
    );
    if (port.connections.size >= MAX_CONNECTIONS) socket.close();
    port.connections.add(socket);
    return {
      received(bytes) {
        try {
          publication.receive(bytes);
        } catch (thrown) {
          if (!(thrown instanceof DecodeError) && !(thrown instanceof SluiceError)) throw thrown;
          refuse(messageOf(thrown));
        }
      },
      drained() {},
      closed: () => {
        cancelTimeout();
        port.connections.delete(socket);
        end();
      },
    };
  }

  #hash(key: string): string {
    return toHex(this.#dependencies.runtime.sha256(new TextEncoder().encode(key)));
  }
}

function listenError(bind: PeerAddress, thrown: unknown): unknown {
  if (thrown instanceof SluiceError && thrown.code !== "port_busy") return thrown;
  const reason = messageOf(thrown);
  return new SluiceError(
    "bad_parameter",
    `cannot receive RTMP at ${addressText(bind)} (${reason}); name an address of this machine, or 0.0.0.0, and a free port`,
    { cause: thrown },
  );
}
