import { assert } from "../../../src/base/assert.ts";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { CastMessageReader, encodeCastMessage } from "../../../src/wire/cast-message.ts";
import { decodeMdnsServices } from "../../../src/wire/mdns.ts";
import { decodeRendererDescription, decodeServiceLimits } from "../../../src/wire/upnp/media-renderer.ts";
import { decodeSoapCall, encodeSoapCall } from "../../../src/wire/upnp/soap.ts";
import { decodeSsdpSearch, encodeSsdpSearch, SSDP_GROUP } from "../../../src/wire/upnp/ssdp.ts";
import { rendererDescription } from "../../devices/fake-lan.ts";
import { mdnsAnswer } from "../../wire/mdns-answer.ts";
import type { FuzzTarget } from "../contract.ts";
import { repeated } from "../extremes.ts";

const TYPE = "_googlecast._tcp.local";

const mdns: FuzzTarget = {
  name: "mdns",
  corpus: () => [
    mdnsAnswer({ type: TYPE, instance: "A b", port: 8009, address: "10.0.0.1", texts: { id: "1", fn: "x" } }),
  ],
  words: ["\xc0\x0c", "\0\x0c\0\x01", "\0\x21", "\x0b_googlecast"].map(latin1Bytes),
  maxBytes: 9_500,
  run(bytes) {
    const services = decodeMdnsServices(bytes, [TYPE]);
    assert(services.length <= 16 && services.every(({ texts }) => texts.size <= 64), "bounded");
    return services;
  },
};

const renderer: FuzzTarget = {
  name: "upnp-renderer",
  corpus: () => [latin1Bytes(rendererDescription())],
  extremes: () => [
    repeated("<root><device><iconList>", "<icon><url>x</url></icon>", "</iconList></device></root>"),
  ],
  words: ["<device>", "</device>", "<UDN>", "<serviceType>", "AVTransport:1", "<icon>"].map(latin1Bytes),
  run(bytes) {
    const description = decodeRendererDescription(bytes);
    assert(description.name.length <= 100, "bounded");
    return description;
  },
};

const limits: FuzzTarget = {
  name: "upnp-service-limits",
  corpus: () => [
    latin1Bytes(
      "<scpd><stateVariable><name>A_ARG_TYPE_SeekMode</name><allowedValueList><allowedValue>REL_TIME</allowedValue></allowedValueList></stateVariable><stateVariable><name>Volume</name><allowedValueRange><maximum>50</maximum></allowedValueRange></stateVariable></scpd>",
    ),
  ],
  words: ["<stateVariable>", "<maximum>", "1e9", "<allowedValue>"].map(latin1Bytes),
  run: decodeServiceLimits,
};

const cast: FuzzTarget = {
  name: "cast-message",
  corpus: () => [
    encodeCastMessage({
      source: "sender-0",
      destination: "receiver-0",
      namespace: "urn:x-cast:a",
      payload: "{}",
    }),
  ],
  maxBytes: 70_000,
  run: (bytes) => new CastMessageReader().push(bytes),
};

const search: FuzzTarget = {
  name: "ssdp-search",
  corpus: () => [encodeSsdpSearch("ssdp:all", SSDP_GROUP)],
  words: ["\r\n", "MAN: ", '"ssdp:discover"', "ST: "].map(latin1Bytes),
  maxBytes: 3_000,
  run: decodeSsdpSearch,
};

const call: FuzzTarget = {
  name: "upnp-call",
  corpus: () => [encodeSoapCall({ serviceType: "x", action: "Browse", parameters: [["ObjectID", "0"]] })],
  words: ["<a>", "</a>", "<Envelope>", "<Body>", "&amp;"].map(latin1Bytes),
  maxBytes: 20_000,
  run: decodeSoapCall,
};

export const targets = [search, call, cast, mdns, renderer, limits];
