import { assert } from "../../../src/base/assert.ts";
import { concatBytes, fromHex, latin1Bytes } from "../../../src/base/bytes.ts";
import { decodeNatPmpResponse } from "../../../src/wire/router/nat-pmp.ts";
import { decodePcpResponse } from "../../../src/wire/router/pcp.ts";
import { decodeRouterDescription } from "../../../src/wire/router/upnp-description.ts";
import { decodeSoapResponse } from "../../../src/wire/upnp/soap.ts";
import { decodeSsdpResponse } from "../../../src/wire/upnp/ssdp.ts";
import type { FuzzTarget } from "../contract.ts";
import { repeated } from "../extremes.ts";

const natPmp: FuzzTarget = {
  name: "nat-pmp",
  corpus: () =>
    ["0080000000000064cb007107", "00820000000000641ae11ae200000e10", "0081000300000064"].map(
      (text) => fromHex(text)!,
    ),
  maxBytes: 100,
  run(bytes) {
    const answer = decodeNatPmpResponse(bytes);
    assert(answer.kind === "address" || answer.externalPort < 65_536, "a port");
    return answer;
  },
};

const pcp: FuzzTarget = {
  name: "pcp",
  corpus: () => {
    const map = fromHex(
      `0281000000001c2000000064${"00".repeat(12)}0102030405060708090a0b0c060000001ae11ae2${"00".repeat(10)}ffffcb007107`,
    )!;
    return [map, concatBytes([map, new Uint8Array(8)]), fromHex("0080000100000064")!];
  },
  maxBytes: 1_500,
  run: decodePcpResponse,
};

const ssdp: FuzzTarget = {
  name: "ssdp",
  corpus: () =>
    [
      "HTTP/1.1 200 OK\r\nST: urn:schemas-upnp-org:device:InternetGatewayDevice:1\r\nLOCATION: http://192.168.1.1:5000/root.xml\r\nEXT:\r\n\r\n",
      "HTTP/1.0 200 \r\nlocation:http://10.0.0.1/\r\n\r\n",
    ].map(latin1Bytes),
  extremes: () => [
    repeated("HTTP/1.1 200 OK\r\nlocation:", "x", "\r\n\r\n", 2_048),
    repeated("HTTP/1.1 200 OK\r\n", "a:\r\n", "\r\n", 2_048),
  ],
  words: ["\r\n", "LOCATION: ", "http://", ": "].map(latin1Bytes),
  maxBytes: 3_000,
  run: decodeSsdpResponse,
};

const XML_WORDS = ["<", ">", "</", "/>", "&amp;", "&#x41;", "<!--", "-->", "<?", "?>", '="', "<a>", "</a>"];

const description: FuzzTarget = {
  name: "upnp-description",
  corpus: () =>
    [
      '<?xml version="1.0"?><root xmlns="urn:x"><URLBase>http://192.168.1.1/</URLBase><device><friendlyName>a &amp; b</friendlyName><serviceList><service><serviceType>urn:schemas-upnp-org:service:WANIPConnection:1</serviceType><controlURL>/c</controlURL></service></serviceList></device></root>',
      "<root><!-- x --><device/></root>",
    ].map(latin1Bytes),
  extremes: () => [
    repeated("<root>", "<a/>", "</root>"),
    repeated("<root>", "&amp;", "</root>"),
    repeated("<root>", "<!---->", "</root>"),
    repeated("<root ", "a='' ", "></root>"),
    repeated("<root", " ", "></root>"),
    repeated("<root a", " ", "></root>"),
    repeated("<root>", "<", "</root>"),
    repeated("<root>", "<service><serviceType>x</serviceType></service>", "</root>"),
    repeated("", "<a>", ""),
  ],
  words: XML_WORDS.map(latin1Bytes),
  run(bytes) {
    const { services, name } = decodeRouterDescription(bytes);
    assert(services.length <= 8 && name.length <= 64, "no more than a router has");
    return services;
  },
};

const soap: FuzzTarget = {
  name: "upnp-soap",
  corpus: () =>
    [
      "<s:Envelope><s:Body><u:GetResponse><NewA>1</NewA><NewB/></u:GetResponse></s:Body></s:Envelope>",
      "<s:Envelope><s:Body><s:Fault><detail><UPnPError><errorCode>718</errorCode><errorDescription>x</errorDescription></UPnPError></detail></s:Fault></s:Body></s:Envelope>",
    ].map(latin1Bytes),
  words: XML_WORDS.map(latin1Bytes),
  maxBytes: 20_000,
  run: (bytes) => decodeSoapResponse(bytes, "Get"),
};

export const targets = [natPmp, pcp, ssdp, description, soap];
