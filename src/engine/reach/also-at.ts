import { addressText, type PeerAddress } from "../../base/address.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Net } from "../../runtime/contract.ts";
import type { PeerNet, SharedUdp, UdpProtocol, UdpReceiver } from "./contract.ts";
import type { ForwardedPort } from "./forwarded-port.ts";
import { bindSharedUdp } from "./shared-udp.ts";

/** Peers that came by the forwarded port lately; who comes back to one that was forgotten is answered from our own port, and
 * tries again. */
const MAX_CALLERS = 4_000;
const PROTOCOLS: readonly UdpProtocol[] = ["dht", "utp", "tracker"];

/** Listens at the forwarded port, too: what a VPN forwards arrives here at that same port. The listener's address stays that
 * of our own port. */
export function alsoListening(
  listen: PeerNet["listen"],
  forwarded: ForwardedPort,
  log: Log,
): PeerNet["listen"] {
  return async (address, accept) => {
    const own = await listen(address, accept);
    const { host, port } = own.address;
    const also = new FollowedPort(forwarded, port, (at) => listen({ host, port: at }, accept), log);
    return {
      address: own.address,
      close: async () => {
        await Promise.all([own.close(), also.close()]);
      },
    };
  };
}

/** Takes datagrams at the forwarded port, too, and answers from it who called there. */
export function alsoUdp(
  net: Pick<Net, "bindUdp">,
  own: SharedUdp,
  host: string,
  forwarded: ForwardedPort,
  log: Log,
): SharedUdp {
  const receivers = new Map<UdpProtocol, UdpReceiver>();
  const callers = new Set<string>();
  const also = new FollowedPort(
    forwarded,
    own.port,
    async (port) => {
      const socket = await bindSharedUdp(net, log, { host, port });
      for (const protocol of PROTOCOLS) {
        socket.listen(protocol, (bytes, from) => {
          remember(callers, addressText(from));
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
      const isCaller = also.current !== undefined && callers.has(addressText(to));
      (isCaller ? also.current! : own).send(bytes, to);
    },
    listen(protocol, receiver) {
      receivers.set(protocol, receiver);
      own.listen(protocol, (bytes, from) => {
        callers.delete(addressText(from));
        receiver(bytes, from);
      });
    },
    close() {
      own.close();
      void also.close();
    },
  };
}

function remember(callers: Set<string>, caller: string): void {
  callers.delete(caller);
  callers.add(caller);
  const [oldest] = callers;
  if (oldest !== undefined && callers.size > MAX_CALLERS) callers.delete(oldest);
}

/** Something that is open at the forwarded port, whichever that is at the moment. */
class FollowedPort<T extends { close(): unknown }> {
  readonly #open: (port: number) => Promise<T>;
  readonly #log: Log;
  #isClosed = false;
  /** One change after the other. */
  #turn: Promise<void> = Promise.resolve();
  current: T | undefined;

  constructor(forwarded: ForwardedPort, ownPort: number, open: (port: number) => Promise<T>, log: Log) {
    this.#open = open;
    this.#log = log;
    forwarded.follow((port) => {
      this.#turn = this.#turn.then(() => this.#move(port === ownPort ? undefined : port));
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#turn;
    await this.current?.close();
    this.current = undefined;
  }

  async #move(port: number | undefined): Promise<void> {
    const before = this.current;
    this.current = undefined;
    await before?.close();
    if (port === undefined || this.#isClosed) return;
    try {
      this.current = await this.#open(port);
    } catch (error) {
      this.#log.warn("cannot listen at the forwarded port", { port, reason: messageOf(error) });
    }
  }
}
