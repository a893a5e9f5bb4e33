import { runtime } from "#runtime";
import { addressBytes, type PeerAddress } from "../../src/base/address.ts";
import { latin1Bytes, readU16, readU32, writeU16, writeU32 } from "../../src/base/bytes.ts";
import { decodeUtf8, encodeUtf8 } from "../../src/base/utf8.ts";
import type { HttpClient, Net, OutboundRequest, OwnNetwork } from "../../src/runtime/contract.ts";
import { childText, readXml } from "../../src/wire/xml.ts";
import { FakeClock } from "../engine/fake-clock.ts";

/** Protocols and faults of the fake router. */
export interface RouterBehavior {
  pcp: boolean;
  natPmp: boolean;
  /** Version of UPnP IGD; 0: none. */
  upnp: 0 | 1 | 2;
  /** It does not respond. */
  isSilent: boolean;
  /** Port mapping is disabled. */
  refuses: boolean;
  /** It supports no leases (UPnP error 725). */
  permanentOnly: boolean;
  /** External ports in use, and those in use for UDP only. */
  readonly taken: Set<number>;
  readonly takenUdp: Set<number>;
  /** Forged responses arrive before each response: from another address, and from its own. */
  isOvertaken: boolean;
  /** Its description never ends. */
  isEndless: boolean;
  externalAddress: string;
  /** URL of its description, and the content. */
  location: string;
  description: string | undefined;
  startedAt: number;
}

const SERVICE = "urn:schemas-upnp-org:service:WANIPConnection";

/** A router in the local network. Tests inspect its mappings and advance its clock. */
export class FakeRouter {
  readonly clock = new FakeClock();
  readonly behavior: RouterBehavior = {
    pcp: false,
    natPmp: false,
    upnp: 0,
    isSilent: false,
    refuses: false,
    permanentOnly: false,
    taken: new Set(),
    takenUdp: new Set(),
    isOvertaken: false,
    isEndless: false,
    externalAddress: "93.184.216.1",
    location: "http://192.168.1.1:5000/root.xml",
    description: undefined,
    startedAt: 1000,
  };
  gateway: string | undefined = "192.168.1.1";
  networks: OwnNetwork[] = [OWN];
  /** `tcp 6881 > 192.168.1.2:6881 for 3600`. */
  readonly mapped = new Map<string, string>();
  /** Every request, in short. */
  readonly asked: string[] = [];
  /** Requested URLs. */
  readonly called: string[] = [];
  /** Sends a router announcement. */
  announce: (() => void) | undefined;
  openSockets = 0;

  readonly #bindUdp: Net["bindUdp"] = async (address, received, options) => {
    this.openSockets++;
    const answer = (bytes: Uint8Array, from: PeerAddress) => queueMicrotask(() => received(bytes, from));
    if (options?.multicast)
      this.announce = () => received(new Uint8Array(12), { host: "192.168.1.1", port: 5351 });
    return {
      address,
      send: (bytes, to) => {
        if (to.port === 5351 && to.host === "192.168.1.1") this.#datagram(bytes, answer);
        else if (to.port === 1900) this.#search(bytes, answer);
      },
      close: () => void this.openSockets--,
    };
  };

  readonly #http: Pick<HttpClient, "request"> = {
    request: async (request) => {
      this.called.push(request.url.href);
      const { status, text } = this.#respond(request);
      const body = this.behavior.isEndless ? endless() : bodyOf(text);
      return { status, headers: new Headers(), body };
    },
  };

  get parts() {
    return {
      runtime: {
        clock: this.clock,
        net: { ...runtime.net, bindUdp: this.#bindUdp },
        http: { ...runtime.http, ...this.#http },
        surroundings: {
          networks: () => this.networks,
          gateway: async () => this.gateway,
          run: runtime.surroundings.run,
        },
        randomBytes: (length: number) => new Uint8Array(length).fill(9),
      },
      random: () => 0.5,
    };
  }

  /** Drops all mappings, as after a power loss. */
  restart(): void {
    this.mapped.clear();
    this.behavior.startedAt = this.clock.now();
  }

  get #epochSeconds(): number {
    return Math.floor((this.clock.now() - this.behavior.startedAt) / 1000);
  }

  #datagram(bytes: Uint8Array, answer: (bytes: Uint8Array, from: PeerAddress) => void): void {
    const { pcp, natPmp, isSilent } = this.behavior;
    const from = { host: "192.168.1.1", port: 5351 };
    if (isSilent || !(pcp || natPmp)) return;
    if (this.behavior.isOvertaken)
      for (const [forged, host] of forgeries(bytes)) answer(forged, { ...from, host });
    if (bytes[0] === 2 && pcp) answer(this.#pcp(bytes), from);
    else if (bytes[0] === 2) answer(new Uint8Array([0, 128, 0, 1, 0, 0, 0, 0]), from);
    else if (natPmp) answer(this.#natPmp(bytes), from);
  }

  #natPmp(bytes: Uint8Array): Uint8Array {
    const opcode = bytes[1]!;
    const out = new Uint8Array(opcode === 0 ? 12 : 16);
    out[1] = 128 + opcode;
    writeU32(out, 4, this.#epochSeconds);
    if (opcode === 0) {
      this.asked.push("NAT-PMP address");
      out.set(addressBytes(this.behavior.externalAddress)!, 8);
      return out;
    }
    const [internal, external, lifetime] = [readU16(bytes, 4), readU16(bytes, 6), readU32(bytes, 8)];
    const protocol = opcode === 2 ? "tcp" : "udp";
    this.asked.push(`NAT-PMP ${protocol} ${lifetime}`);
    if (this.behavior.refuses) writeU16(out, 2, 2);
    writeU16(out, 8, internal);
    if (!this.behavior.refuses) writeU16(out, 10, this.#map(protocol, internal, external, lifetime));
    writeU32(out, 12, lifetime);
    return out;
  }

  #pcp(bytes: Uint8Array): Uint8Array {
    const out = bytes.slice();
    const [internal, external, lifetime] = [readU16(bytes, 40), readU16(bytes, 42), readU32(bytes, 4)];
    const protocol = bytes[36] === 6 ? "tcp" : "udp";
    this.asked.push(`PCP ${protocol} ${lifetime}`);
    out[1] = 129;
    out[3] = this.behavior.refuses ? 2 : 0;
    writeU32(out, 8, this.#epochSeconds);
    out.fill(0, 12, 24);
    if (!this.behavior.refuses) writeU16(out, 42, this.#map(protocol, internal, external, lifetime));
    out.set([...new Uint8Array(10), 255, 255, ...addressBytes(this.behavior.externalAddress)!], 44);
    return out;
  }

  /** Maps as NAT-PMP and PCP do: another port if the requested one is taken. */
  #map(protocol: string, internal: number, wanted: number, lifetime: number): number {
    const key = [...this.mapped.keys()].find((known) =>
      this.mapped.get(known)!.startsWith(`${protocol} ${internal} `),
    );
    if (lifetime === 0) {
      if (key !== undefined) this.mapped.delete(key);
      return 0;
    }
    let external = key === undefined ? wanted : Number(key.split(" ")[1]);
    while (this.#isTaken(protocol, external)) external++;
    this.mapped.set(`${protocol} ${external}`, `${protocol} ${internal} for ${lifetime}`);
    return external;
  }

  #isTaken(protocol: string, port: number): boolean {
    const { taken, takenUdp } = this.behavior;
    return taken.has(port) || (protocol === "udp" && takenUdp.has(port));
  }

  #search(bytes: Uint8Array, answer: (bytes: Uint8Array, from: PeerAddress) => void): void {
    this.asked.push("search");
    const { upnp, isSilent, location } = this.behavior;
    if (upnp === 0 || isSilent) return;
    const target = /^ST: (.*)\r$/m.exec(decodeUtf8(bytes))![1]!;
    if (Number(target.at(-1)) > upnp) return;
    const text = `HTTP/1.1 200 OK\r\nST: ${target}\r\nLOCATION: ${location}\r\n\r\n`;
    answer(latin1Bytes(text), { host: "192.168.1.1", port: 1900 });
  }

  #respond({ url, method, body }: OutboundRequest): { status: number; text: string } {
    const { upnp, description } = this.behavior;
    if (method === "GET") {
      const service = `<service><serviceType>${SERVICE}:${upnp}</serviceType><controlURL>/ctl</controlURL></service>`;
      const own = `<root><device><friendlyName>Box</friendlyName><serviceList>${service}</serviceList></device></root>`;
      return { status: 200, text: description ?? own };
    }
    if (url.href !== "http://192.168.1.1:5000/ctl") return { status: 404, text: "" };
    const [call] = readXml(decodeUtf8(body!)).children[0]!.children;
    const value = (name: string) => childText(call!, name) ?? "";
    this.asked.push([call!.name, value("NewProtocol"), value("NewExternalPort")].join(" ").trim());
    const result = this.#soap(call!.name, value);
    if (typeof result === "number")
      return { status: 500, text: envelope(`<UPnPError><errorCode>${result}</errorCode></UPnPError>`) };
    return { status: 200, text: envelope(`<${call!.name}Response>${result}</${call!.name}Response>`) };
  }

  /** The values of a response, or an error code. */
  #soap(action: string, value: (name: string) => string): string | number {
    const { behavior } = this;
    const [protocol, external] = [value("NewProtocol").toLowerCase(), Number(value("NewExternalPort"))];
    const lease = Number(value("NewLeaseDuration"));
    const add = (port: number) => {
      const line = `${protocol} ${value("NewInternalPort")} for ${lease} to ${value("NewInternalClient")}`;
      this.mapped.set(`${protocol} ${port}`, line);
    };
    switch (action) {
      case "GetExternalIPAddress":
        return `<NewExternalIPAddress>${behavior.externalAddress}</NewExternalIPAddress>`;
      case "AddPortMapping":
        if (behavior.refuses) return 606;
        if (behavior.permanentOnly && lease !== 0) return 725;
        if (this.#isTaken(protocol, external)) return 718;
        add(external);
        return "";
      case "AddAnyPortMapping": {
        let port = external;
        while (behavior.taken.has(port)) port++;
        add(port);
        return `<NewReservedPort>${port}</NewReservedPort>`;
      }
      case "DeletePortMapping":
        return this.mapped.delete(`${protocol} ${external}`) ? "" : 714;
      default:
        return 401;
    }
  }
}

/** This machine in the router's network. */
export const OWN: OwnNetwork = {
  host: "192.168.1.2",
  bits: 24,
  interfaceName: "eth0",
  isLoopback: false,
  multicastAddress: "192.168.1.2",
};

function envelope(body: string): string {
  return `<s:Envelope><s:Body>${body}</s:Body></s:Envelope>`;
}

/** Forged responses to a NAT-PMP or PCP request that name port 6666: from another address, and from the router's address by a
 * sender that has not seen the request. */
function forgeries(request: Uint8Array): [bytes: Uint8Array, host: string][] {
  const answer = new Uint8Array(request[0] === 2 ? 60 : 16);
  answer.set(request.subarray(0, answer.length));
  answer[1] = request[1]! | 128;
  if (request[0] === 2) {
    answer[3] = 0;
    writeU16(answer, 42, 6666);
    const guessed = answer.slice();
    guessed.fill(0, 24, 36);
    return [
      [answer, "192.168.1.66"],
      [guessed, "192.168.1.1"],
    ];
  }
  answer.set([0, 0], 2);
  writeU16(answer, 8, readU16(request.length < 6 ? new Uint8Array(6) : request, 4));
  writeU16(answer, 10, 6666);
  return [[answer, "192.168.1.66"]];
}

/** A body that is available immediately, because a fake clock does not wait for threads. */
function bodyOf(text: string): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      if (text !== "") controller.enqueue(encodeUtf8(text));
      controller.close();
    },
  });
}

/** An endless body. */
function endless(): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(16_384).fill(32)) });
}
