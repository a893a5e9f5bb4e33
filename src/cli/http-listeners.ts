import { clientNetworkOf } from "../../routes/http/access.ts";
import { isAdmitted } from "../../routes/http/access-rules.ts";
import type { AccessControl } from "../accounts/account-contract.ts";
import { addressScope, canonicalAddress } from "../base/address.ts";
import { SluiceError } from "../base/errors.ts";
import { isInNetwork } from "../base/network.ts";
import { after } from "../base/time.ts";
import type { HttpHandler, HttpListener, RequestOrigin, Runtime, ServeOptions } from "../runtime/contract.ts";
import type { Config } from "../settings/settings.ts";
import { lanAddresses, networkUrls } from "./own-addresses.ts";

/** Where an HTTP interface listens: see {@link ServeOptions}. */
export type ListenAddress = Pick<ServeOptions, "host" | "port" | "descriptor">;

/**
 * The listeners of one HTTP interface.
 * CHOICE(access-switches): when a switch changes, they close the connections that it no longer admits.
 */
export class HttpListeners {
  readonly #runtime: Pick<Runtime, "serve" | "lookup" | "clock">;
  readonly #config: Config;
  readonly #handler: HttpHandler;
  readonly #listeners = new Set<HttpListener>();

  constructor(
    runtime: Pick<Runtime, "serve" | "lookup" | "clock">,
    config: Config,
    handler: HttpHandler,
    access: AccessControl,
  ) {
    this.#runtime = runtime;
    this.#config = config;
    this.#handler = handler;
    const disconnect = (mayStay: (origin: RequestOrigin) => boolean) => {
      for (const listener of this.#listeners) listener.disconnect(mayStay);
    };
    access.onSwitched(() => {
      disconnect((origin) => this.#isProxy(origin) || this.#isAllowed(origin, access));
      // The clients of a proxy are unknown here, so all of its connections are closed; allowed clients connect again.
      const { clock } = runtime;
      clock.at(after(clock.now(), PROXY_DELAY_MS), () => disconnect((origin) => !this.#isProxy(origin)));
    });
  }

  /** The URLs at which other devices reach the interface. */
  networkUrls(): string[] {
    return [...this.#listeners].flatMap(({ address }) => networkUrls(address, lanAddresses()));
  }

  /** Returns the port at which a device that sees this machine as `host` reaches the interface; undefined if it does not. */
  portAt(host: string): number | undefined {
    const listening = [...this.#listeners].map(({ address }) => address);
    return listening.find((at) => addressScope(at.host) === "unspecified" || at.host === host)?.port;
  }

  /**
   * Listens at an address or a name. `::` accepts IPv4 too, and means `0.0.0.0` if the system has no IPv6. Rejects with
   * `port_busy` or `bad_parameter`. With `descriptor`, takes the connections of that listening socket instead.
   */
  async listen(at: ListenAddress): Promise<HttpListener> {
    const { port, descriptor } = at;
    const host = await this.#resolve(at.host);
    const listener = await this.#serve({ host, port, descriptor })
      .catch((error: unknown) => {
        const isBusy = error instanceof SluiceError && error.code === "port_busy";
        if (host !== "::" || isBusy) throw error;
        return this.#serve({ host: "0.0.0.0", port });
      })
      .catch((error: unknown) => {
        throw withListenAdvice(error, "--host", "--http-port");
      });
    this.#listeners.add(listener);
    return {
      ...listener,
      close: () => {
        this.#listeners.delete(listener);
        return listener.close();
      },
    };
  }

  #serve(at: ListenAddress): Promise<HttpListener> {
    return this.#runtime.serve(this.#handler, {
      ...at,
      maxConnections: this.#config.maxHttpConnections,
    });
  }

  /** Resolves the name of a listen address, because runtimes report unknown names in different ways. */
  async #resolve(host: string): Promise<string> {
    if (canonicalAddress(host) !== undefined || host.includes(":")) return host;
    const [address] = await this.#runtime.lookup(host).catch((): string[] => []);
    if (address !== undefined) return address;
    const message = `the name ${host} has no address. Use a name or address of this machine with --host (:: for all).`;
    throw new SluiceError("bad_parameter", message);
  }

  #isProxy({ remote }: RequestOrigin): boolean {
    return this.#config.trustedProxies.some((network) => isInNetwork(remote.host, network));
  }

  #isAllowed(origin: RequestOrigin, access: AccessControl): boolean {
    return isAdmitted(clientNetworkOf({ ...origin, neighbours: this.#config.intranetNetworks }), access);
  }
}

/** The response to the client that has turned a switch may leave through the same proxy. */
const PROXY_DELAY_MS = 500;

/** Adds to a failed `listen` which settings choose another address or port. */
export function withListenAdvice(error: unknown, hostFlag: string, portFlag: string): unknown {
  if (!(error instanceof SluiceError)) return error;
  const { code, message, cause } = error;
  if (code === "port_busy")
    return new SluiceError(
      code,
      `${message}. Stop the other program, or choose another port with ${portFlag}.`,
      { cause },
    );
  const system = (cause ?? {}) as NodeJS.ErrnoException;
  if (code !== "bad_parameter" || (system.syscall !== "listen" && system.syscall !== "bind")) return error;
  const advice =
    system.code === "EACCES"
      ? `Choose another port with ${portFlag}.`
      : `Choose an address of this machine with ${hostFlag}.`;
  return new SluiceError(code, `${message}. ${advice}`, { cause });
}
