import { addressScope } from "../base/address.ts";
import { after, type Instant } from "../base/time.ts";
import type { Clock, HttpClient, Net, Runtime } from "../runtime/contract.ts";

/** The DHT refreshes its table every 15 minutes, so a machine that is online hears from remote hosts at least that often. */
const VALID_MS = 16 * 60_000;
/** The scope of an address is computed at most this often: datagrams arrive thousands of times a second. */
const PRECISION_MS = 1_000;

/** Records when a host of the Internet last answered this machine or contacted it. */
export class RemoteContact {
  readonly #clock: Clock;
  #last: Instant | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True if a host of the Internet answered within the last 16 minutes. */
  get isRecent(): boolean {
    return this.#last !== undefined && this.#clock.now() < after(this.#last, VALID_MS);
  }

  /** Returns the runtime with sockets and an HTTP client that record contacts. */
  watch<T extends Pick<Runtime, "net" | "http">>(runtime: T): T {
    return { ...runtime, net: this.#net(runtime.net), http: this.#http(runtime.http) };
  }

  #heard(host: string): void {
    const now = this.#clock.now();
    if (this.#last !== undefined && now < after(this.#last, PRECISION_MS)) return;
    if (addressScope(host) === "global") this.#last = now;
  }

  #net(net: Net): Net {
    return {
      connect: (address, handlers, options) =>
        net.connect(
          address,
          {
            ...handlers,
            opened: () => {
              this.#heard(address.host);
              handlers.opened?.();
            },
          },
          options,
        ),
      listen: (address, accept) =>
        net.listen(address, (socket) => {
          this.#heard(socket.remote.host);
          return accept(socket);
        }),
      bindUdp: (address, received, options) =>
        net.bindUdp(
          address,
          (bytes, from, actual) => {
            this.#heard((actual ?? from).host);
            received(bytes, from, actual);
          },
          options,
        ),
    };
  }

  #http(http: HttpClient): HttpClient {
    return {
      request: async (request) => {
        const response = await http.request(request);
        this.#heard(request.connectTo);
        return response;
      },
      openWebSocket: async (request, handlers) => {
        const socket = await http.openWebSocket(request, handlers);
        this.#heard(request.connectTo);
        return socket;
      },
    };
  }
}
