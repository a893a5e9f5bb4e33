import { addressText, type PeerAddress } from "../../../src/base/address.ts";
import { toHex } from "../../../src/base/bytes.ts";
import { SluiceError } from "../../../src/base/errors.ts";
import { parseNetwork } from "../../../src/base/network.ts";
import type {
  DatagramReceiver,
  Net,
  OwnNetwork,
  Runtime,
  TcpHandlers,
  UdpSocket,
} from "../../../src/runtime/contract.ts";
import { FakeClock } from "../../engine/fake-clock.ts";

/** A requested connection; written bytes in hexadecimal. */
interface FakeConnection {
  readonly handlers: TcpHandlers;
  readonly written: string[];
  isClosed: boolean;
}

/** A UDP socket, open or not. */
interface FakeSocket {
  readonly received: DatagramReceiver;
  readonly sent: string[];
}

/** A runtime with fake sockets that records all requests. */
export function fakeMachine(networks: Readonly<Record<string, readonly string[]>>) {
  const clock = new FakeClock();
  /** `tcp 1.2.3.4:5 from 10.0.0.2`, `udp 1.2.3.4:5 from 10.0.0.2:9`, `listen 10.0.0.2:9`, `http …`, `lookup …`. */
  const did: string[] = [];
  /** Open listeners, `tcp 10.0.0.2:9` and `udp …`. */
  const bound = new Set<string>();
  const connections: FakeConnection[] = [];
  const sockets: FakeSocket[] = [];
  const machine: { networks: Readonly<Record<string, readonly string[]>> } = {
    networks: { lo: ["127.0.0.1/8", "::1/128"], ...networks },
  };
  let nextPort = 40_000;
  const take = (kind: string, { host, port }: PeerAddress): PeerAddress => {
    const address = { host, port: port === 0 ? nextPort++ : port };
    const key = `${kind} ${addressText(address)}`;
    if (bound.has(key)) throw new SluiceError("port_busy", key);
    bound.add(key);
    return address;
  };
  const net: Net = {
    connect(address, handlers, { localAddress }) {
      did.push(`tcp ${addressText(address)}${localAddress === undefined ? "" : ` from ${localAddress}`}`);
      const connection: FakeConnection = { handlers, written: [], isClosed: false };
      connections.push(connection);
      const close = () => {
        if (connection.isClosed) return;
        connection.isClosed = true;
        queueMicrotask(() => handlers.closed("closed by us"));
      };
      const nothing = () => {};
      const write = (bytes: Uint8Array) => connection.written.push(toHex(bytes)) > 0;
      return { remote: address, bufferedBytes: 0, write, pause: nothing, resume: nothing, close };
    },
    async listen(wanted) {
      const address = take("tcp", wanted);
      return { address, close: async () => void bound.delete(`tcp ${addressText(address)}`) };
    },
    async bindUdp(wanted, received): Promise<UdpSocket> {
      const address = take("udp", wanted);
      const sent: string[] = [];
      sockets.push({ received, sent });
      return {
        address,
        send(bytes, to) {
          did.push(`udp ${addressText(to)} from ${addressText(address)}`);
          sent.push(toHex(bytes));
        },
        close: () => void bound.delete(`udp ${addressText(address)}`),
      };
    },
  };
  const own = (): OwnNetwork[] =>
    Object.entries(machine.networks).flatMap(([interfaceName, texts]) =>
      texts.map((text) => {
        const network = parseNetwork(text)!;
        const multicastAddress = network.host.includes(":") ? `::%${interfaceName}` : network.host;
        return { ...network, interfaceName, isLoopback: interfaceName === "lo", multicastAddress };
      }),
    );
  const runtime = {
    net,
    clock,
    surroundings: { networks: own },
    http: {
      async request({
        url,
        connectTo,
        dial,
      }: {
        url: URL;
        connectTo: string;
        dial?: (handlers: TcpHandlers) => void;
      }) {
        did.push(`http ${url.host} ${dial ? "dialled" : `direct ${connectTo}`}`);
        dial?.({ received() {}, drained() {}, closed() {} });
      },
    },
    async lookup(name: string) {
      did.push(`lookup ${name}`);
      return ["192.0.9.1"];
    },
  } as unknown as Runtime;
  return { runtime, clock, did, bound, connections, sockets, machine };
}
