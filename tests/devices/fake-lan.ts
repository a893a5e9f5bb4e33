import type { PeerAddress } from "../../src/base/address.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import type { DeviceRuntime } from "../../src/devices/contract.ts";
import type { OutboundRequest, OwnNetwork } from "../../src/runtime/contract.ts";
import { FakeClock } from "../engine/fake-clock.ts";

export const ETH: OwnNetwork = {
  host: "192.168.1.5",
  bits: 24,
  interfaceName: "eth0",
  isLoopback: false,
  multicastAddress: "192.168.1.5",
};
export const TV = "192.168.1.77";

/** What a device answers to a search, a request for a document, or a call. */
export interface FakeLan {
  readonly runtime: DeviceRuntime;
  readonly clock: FakeClock;
  /** Datagrams sent to SSDP and multicast DNS, with the interface. */
  readonly sent: { readonly to: PeerAddress; readonly from: string; readonly text: string }[];
  /** Requests, newest last. */
  readonly requests: OutboundRequest[];
  /** Answers to datagrams by their port; each is delivered from its host. */
  readonly answers: Map<number, readonly { readonly host: string; readonly bytes: Uint8Array }[]>;
  /** Answers requests; undefined is a 404. */
  respond: (request: OutboundRequest, body: string) => { status?: number; text: string } | undefined;
  networks: readonly OwnNetwork[];
  open: number;
}

/** A network without devices: the test adds their answers. */
export function fakeLan(): FakeLan {
  const clock = new FakeClock();
  const lan: FakeLan = {
    clock,
    sent: [],
    requests: [],
    answers: new Map(),
    respond: () => undefined,
    networks: [ETH],
    open: 0,
    runtime: undefined as unknown as DeviceRuntime,
  };
  const net = {
    async bindUdp(
      address: PeerAddress,
      received: (bytes: Uint8Array, from: PeerAddress) => void,
      options?: { readonly multicast?: { readonly networkAddress?: string } },
    ) {
      lan.open++;
      return {
        address,
        send(bytes: Uint8Array, to: PeerAddress) {
          const text = Buffer.from(bytes).toString("latin1");
          lan.sent.push({ to, from: options?.multicast?.networkAddress ?? "", text });
          for (const { host, bytes } of lan.answers.get(to.port) ?? [])
            received(bytes, { host, port: to.port });
        },
        close: () => void lan.open--,
      };
    },
  };
  const http = {
    async request(request: OutboundRequest) {
      lan.requests.push(request);
      const answer = lan.respond(request, Buffer.from(request.body ?? []).toString());
      const body = new Response(encodeUtf8(answer?.text ?? "")).body!;
      return { status: answer === undefined ? 404 : (answer.status ?? 200), headers: new Headers(), body };
    },
  };
  const surroundings = { networks: () => lan.networks };
  return Object.assign(lan, { runtime: { clock, net, http, surroundings } as unknown as DeviceRuntime });
}

/** The answer of a renderer to a search. */
export function ssdpAnswer(location: string): Uint8Array {
  return encodeUtf8(`HTTP/1.1 200 OK\r\nST: x\r\nLOCATION: ${location}\r\n\r\n`);
}

/** The description of a renderer with its services below `/`. */
export function rendererDescription(name = "TV", model = "X1", udn = "uuid:1"): string {
  const service = (kind: string) =>
    `<service><serviceType>urn:schemas-upnp-org:service:${kind}:1</serviceType><controlURL>/control/${kind}</controlURL><SCPDURL>${kind}.xml</SCPDURL></service>`;
  return `<root><device><deviceType>urn:schemas-upnp-org:device:MediaRenderer:1</deviceType><friendlyName>${name}</friendlyName><modelName>${model}</modelName><UDN>${udn}</UDN><iconList><icon><width>48</width><url>/small.png</url></icon><icon><width>120</width><url>/big.png</url></icon></iconList><serviceList>${["AVTransport", "RenderingControl", "ConnectionManager"].map(service).join("")}</serviceList></device></root>`;
}
