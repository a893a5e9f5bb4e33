import { addressText, type PeerAddress } from "../base/address.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import type { Net } from "../runtime/contract.ts";
import type { PeerNet, SharedUdp, UdpProtocol, UdpReceiver } from "./contract.ts";
import type { ForwardedPort } from "./forwarded-port.ts";
import { bindSharedUdp } from "./shared-udp.ts";

/** Remembered peers that sent datagrams to the forwarded port. A forgotten peer gets its reply from our own port, and retries. */
const MAX_REMOTES = 4_000;
const PROTOCOLS: readonly UdpProtocol[] = ["dht", "utp", "webrtc", "tracker"];

/** Wraps `listen` so that it also listens at the forwarded port, where a VPN delivers connections. The reported address stays
 * that of our own port. */
export function listenAtForwardedPort(
  listen: PeerNet["listen"],
  forwarded: ForwardedPort,
  log: Log,
): PeerNet["listen"] {
  return async (address, accept) => {
    const own = await listen(address, accept);
    const { host, port } = own.address;
    const extra = new PortFollower(
      forwarded,
      port,
      (forwardedPort) => listen({ host, port: forwardedPort }, accept),
      log,
    );
    return {
      address: own.address,
      close: async () => {
        await Promise.all([own.close(), extra.close()]);
      },
    };
  };
}

/** Wraps `own` so that datagrams also arrive at the forwarded port. Peers that sent there get their replies from it. */
export function udpAtForwardedPort(
  net: Pick<Net, "bindUdp">,
  own: SharedUdp,
  host: string,
  forwarded: ForwardedPort,
  log: Log,
): SharedUdp {
  const receivers = new Map<UdpProtocol, UdpReceiver>();
  const remotes = new Set<string>();
  const extra = new PortFollower(
    forwarded,
    own.port,
    async (port) => {
      const socket = await bindSharedUdp(net, log, { host, port });
      for (const protocol of PROTOCOLS) {
        socket.listen(protocol, (bytes, from) => {
          remember(remotes, addressText(from));
          receivers.get(protocol)?.(bytes, from);
        });
      }
      return socket;
    },
    log,
  );
  return {
    port: own.port,
    send(bytes: Uint8Array, to: PeerAddress) {
      const usesForwarded = extra.current !== undefined && remotes.has(addressText(to));
      (usesForwarded ? extra.current! : own).send(bytes, to);
    },
    listen(protocol, receiver) {
      receivers.set(protocol, receiver);
      own.listen(protocol, (bytes, from) => {
        remotes.delete(addressText(from));
        receiver(bytes, from);
      });
    },
    close() {
      own.close();
      void extra.close();
    },
  };
}

function remember(remotes: Set<string>, remote: string): void {
  remotes.delete(remote);
  remotes.add(remote);
  trimOldest(remotes, MAX_REMOTES);
}

/** Keeps a listener or socket open at the forwarded port as the port changes. */
class PortFollower<T extends { close(): unknown }> {
  readonly #open: (port: number) => Promise<T>;
  readonly #log: Log;
  #isClosed = false;
  /** Serializes the changes. */
  #queue: Promise<void> = Promise.resolve();
  current: T | undefined;

  constructor(forwarded: ForwardedPort, ownPort: number, open: (port: number) => Promise<T>, log: Log) {
    this.#open = open;
    this.#log = log;
    forwarded.onChange((port) => {
      this.#queue = this.#queue.then(() => this.#move(port === ownPort ? undefined : port));
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#queue;
    await this.current?.close();
    this.current = undefined;
  }

  async #move(port: number | undefined): Promise<void> {
    const previous = this.current;
    this.current = undefined;
    await previous?.close();
    if (port === undefined || this.#isClosed) return;
    try {
      this.current = await this.#open(port);
    } catch (error) {
      this.#log.warn("cannot listen at the forwarded port", { port, reason: messageOf(error) });
    }
  }
}
