import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { connect, createServer, type Socket } from "node:net";
import { canonicalAddress } from "../../src/base/address.ts";
import { concatBytes, latin1Text } from "../../src/base/bytes.ts";
import { decodeSocksDatagram, encodeSocksDatagram, type SocksAddress } from "../../src/wire/socks5.ts";

/** A proxy for tests: SOCKS5 (RFC 1928, 1929; CONNECT and UDP ASSOCIATE) and HTTP CONNECT at one port. */
export interface TestProxy {
  readonly port: number;
  /** Requests received, as `connect host:port`, `associate`, `datagram host:port`, `refused login`. */
  readonly asked: string[];
  /** Closes all proxied connections; the proxy keeps listening. */
  cut(): void;
  close(): Promise<void>;
}

export interface TestProxyOptions {
  readonly host?: string;
  readonly port?: number;
  readonly login?: string;
  readonly password?: string;
  /** False: UDP ASSOCIATE is answered with code 7. */
  readonly udp?: boolean;
  /** Maps host names and addresses to destinations. Other names are not found; other addresses are used as they are. */
  readonly names?: Readonly<Record<string, string>>;
}

/** Starts a proxy; resolves when it listens. */
export async function startProxy(options: TestProxyOptions = {}): Promise<TestProxy> {
  const host = options.host ?? "127.0.0.1";
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
    serve(socket, { options, host, asked, sockets }).catch(() => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, host, resolve));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as { port: number }).port,
    asked,
    cut,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        cut();
      }),
  };
}

interface House {
  readonly options: TestProxyOptions;
  readonly host: string;
  readonly asked: string[];
  readonly sockets: Set<Socket>;
}

/** Reads a socket in portions of the requested size. */
class Reader {
  #bytes: Uint8Array = new Uint8Array(0);
  #wake = () => {};
  readonly #socket: Socket;
  readonly #take = (bytes: Uint8Array) => {
    this.#bytes = concatBytes([this.#bytes, bytes]);
    this.#wake();
  };

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", this.#take);
  }

  async exactly(count: number): Promise<Uint8Array> {
    while (this.#bytes.length < count) await this.#more();
    const taken = this.#bytes.slice(0, count);
    this.#bytes = this.#bytes.slice(count);
    return taken;
  }

  async head(): Promise<string> {
    for (;;) {
      const end = latin1Text(this.#bytes).indexOf("\r\n\r\n");
      if (end >= 0) return latin1Text(await this.exactly(end + 4));
      await this.#more();
    }
  }

  /** The bytes received but not yet read. */
  release(): Uint8Array {
    this.#socket.off("data", this.#take);
    return this.#bytes;
  }

  #more(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#wake = resolve;
      this.#socket.once("close", () => reject(new Error("gone")));
    });
  }
}

async function serve(socket: Socket, house: House): Promise<void> {
  const reader = new Reader(socket);
  const [first] = await reader.exactly(1);
  if (first === 5) await serveSocks(socket, reader, house);
  else await serveHttp(socket, reader, house);
}

async function serveHttp(socket: Socket, reader: Reader, { options, asked, sockets }: House): Promise<void> {
  const head = await reader.head(); // Without the "C" of CONNECT.
  const authority = /^ONNECT (\S+) HTTP\/1\.1\r\n/.exec(head)![1]!;
  const colon = authority.lastIndexOf(":");
  const to = {
    host: authority.slice(0, colon).replace(/^\[|\]$/g, ""),
    port: Number(authority.slice(colon + 1)),
  };
  const wanted = `Basic ${btoa(`${options.login}:${options.password}`)}`;
  if (options.login !== undefined && !head.includes(`Proxy-Authorization: ${wanted}\r\n`)) {
    asked.push("refused login");
    socket.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    return;
  }
  asked.push(`connect ${to.host}:${to.port}`);
  const far = await reach(to, options, sockets);
  if (far === undefined) {
    socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    return;
  }
  socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
  join(socket, far, reader.release());
}

async function serveSocks(socket: Socket, reader: Reader, house: House): Promise<void> {
  const { options, asked } = house;
  const [count] = await reader.exactly(1);
  const methods = await reader.exactly(count!);
  if (options.login !== undefined) {
    if (!methods.includes(2)) {
      asked.push("refused login");
      socket.end(new Uint8Array([5, 0xff]));
      return;
    }
    socket.write(new Uint8Array([5, 2]));
    const [, loginLength] = await reader.exactly(2);
    const login = latin1Text(await reader.exactly(loginLength!));
    const [passwordLength] = await reader.exactly(1);
    const password = latin1Text(await reader.exactly(passwordLength!));
    const isRight = login === options.login && password === options.password;
    socket.write(new Uint8Array([1, isRight ? 0 : 1]));
    if (!isRight) {
      asked.push("refused login");
      socket.end();
      return;
    }
  } else socket.write(new Uint8Array([5, 0]));
  const [, command, , type] = await reader.exactly(4);
  const to = await readPlace(reader, type!);
  if (command === 3) await associate(socket, house);
  else await connectTo(socket, reader, to, house);
}

async function readPlace(reader: Reader, type: number): Promise<SocksAddress> {
  const length = type === 1 ? 4 : type === 4 ? 16 : (await reader.exactly(1))[0]!;
  const host = await reader.exactly(length);
  const port = await reader.exactly(2);
  const datagram = new Uint8Array([0, 0, 0, type, ...(type === 3 ? [length] : []), ...host, ...port]);
  return decodeSocksDatagram(datagram).from;
}

async function connectTo(socket: Socket, reader: Reader, to: SocksAddress, house: House): Promise<void> {
  house.asked.push(`connect ${to.host}:${to.port}`);
  const far = await reach(to, house.options, house.sockets);
  socket.write(new Uint8Array([5, far ? 0 : 4, 0, 1, 0, 0, 0, 0, 0, 0]));
  if (far) join(socket, far, reader.release());
  else socket.end();
}

async function associate(socket: Socket, { options, host, asked }: House): Promise<void> {
  asked.push("associate");
  if (options.udp === false) {
    socket.end(new Uint8Array([5, 7, 0, 1, 0, 0, 0, 0, 0, 0]));
    return;
  }
  const near = await udp(host);
  const far = await udp(host.startsWith("127.") ? "127.0.0.1" : "0.0.0.0");
  socket.once("close", () => {
    near.close();
    far.close();
  });
  let user: number | undefined;
  near.on("message", (bytes, from) => {
    user = from.port;
    const { from: to, payload } = decodeSocksDatagram(bytes);
    asked.push(`datagram ${to.host}:${to.port}`);
    const address = resolved(to.host, options);
    if (address !== undefined) far.send(payload, to.port, address, () => {});
  });
  far.on("message", (bytes, from) => {
    const place = { host: from.address, port: from.port };
    if (user !== undefined)
      near.send(encodeSocksDatagram(place, bytes), user, socket.remoteAddress!, () => {});
  });
  const { port } = near.address();
  // A wrong address, as a proxy behind NAT sends it: clients must use only the port.
  socket.write(new Uint8Array([5, 0, 0, 1, 10, 9, 8, 7, port >> 8, port & 0xff]));
}

function udp(host: string): Promise<UdpSocket> {
  const socket = createSocket("udp4");
  socket.on("error", () => {});
  return new Promise((resolve) => socket.bind(0, host, () => resolve(socket)));
}

function resolved(host: string, { names = {} }: TestProxyOptions): string | undefined {
  return names[host] ?? canonicalAddress(host);
}

function reach(
  to: SocksAddress,
  options: TestProxyOptions,
  sockets: Set<Socket>,
): Promise<Socket | undefined> {
  const host = resolved(to.host, options);
  if (host === undefined) return Promise.resolve(undefined);
  const far = connect({ host, port: to.port });
  sockets.add(far);
  far.once("close", () => sockets.delete(far));
  return new Promise((resolve) => {
    far.once("connect", () => resolve(far));
    far.once("error", () => resolve(undefined));
    far.on("error", () => {});
  });
}

function join(near: Socket, far: Socket, first: Uint8Array): void {
  if (first.length > 0) far.write(first);
  near.pipe(far);
  far.pipe(near);
  near.once("close", () => far.destroy());
  far.once("close", () => near.destroy());
}
