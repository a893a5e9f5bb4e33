import { createServer, type Server, type Socket } from "node:net";
import { canonicalAddress, type PeerAddress } from "../base/address.ts";
import { messageOf, SluiceError } from "../base/errors.ts";

/** Connections that wait while no HTTP server runs, which is a moment between two engines of one process. */
const MAX_WAITING = 64;

/**
 * The listening TCP sockets that another program opened and passed to this one, by descriptor. They stay open until the program
 * ends, so that the engine can restart in its process.
 */
export class InheritedListeners {
  readonly #listeners = new Map<number, InheritedListener>();

  /** Rejects with `bad_configuration` if the descriptor is not a listening TCP socket. */
  async open(descriptor: number): Promise<InheritedListener> {
    const known = this.#listeners.get(descriptor);
    if (known !== undefined) return known;
    const server = createServer({ noDelay: true });
    const failed = (error: unknown) =>
      new SluiceError(
        "bad_configuration",
        `descriptor ${descriptor} is not a listening TCP socket: ${messageOf(error)}`,
        { cause: error },
      );
    await new Promise<void>((resolve, reject) => {
      server.once("error", (error) => reject(failed(error)));
      server.listen({ fd: descriptor }, () => {
        server.removeAllListeners("error");
        // Later errors concern one `accept`, for example if descriptors run out; the listener continues.
        server.on("error", () => {});
        resolve();
      });
    });
    const listener = new InheritedListener(server);
    this.#listeners.set(descriptor, listener);
    return listener;
  }
}

/** A listening socket whose connections one HTTP server after another takes. Bun's HTTP server cannot listen on a descriptor itself. */
export class InheritedListener {
  readonly address: PeerAddress;
  readonly #waiting: Socket[] = [];
  #take: ((socket: Socket) => void) | undefined;

  /** Takes a server that listens. */
  constructor(server: Server) {
    const at = server.address();
    if (at === null || typeof at === "string")
      throw new SluiceError("bad_configuration", "the inherited socket is not a TCP socket");
    this.address = { host: canonicalAddress(at.address) ?? at.address, port: at.port };
    server.on("connection", (socket: Socket) => {
      if (this.#take !== undefined) return this.#take(socket);
      if (this.#waiting.length >= MAX_WAITING) return void socket.destroy();
      socket.on("error", () => {});
      this.#waiting.push(socket);
    });
  }

  /** Gives all connections to `take`, those that waited first, until the returned function is called. */
  use(take: (socket: Socket) => void): () => void {
    this.#take = take;
    for (const socket of this.#waiting.splice(0)) if (!socket.destroyed) take(socket);
    return () => {
      this.#take = undefined;
    };
  }
}
