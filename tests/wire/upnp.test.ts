import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../../src/base/errors.ts";
import { decodeUtf8, encodeUtf8 } from "../../src/base/utf8.ts";
import { decodeRouterDescription, MAX_DESCRIPTION_BYTES } from "../../src/wire/router/upnp-description.ts";
import { decodeSoapResponse, encodeSoapCall, soapHeaders } from "../../src/wire/upnp/soap.ts";
import { readXml } from "../../src/wire/xml.ts";

test("readXml: elements, text, prefixes, entities; comments, instructions and attributes are ignored", () => {
  const source = `\uFEFF<?xml version="1.0"?>
    <!-- a comment <a> -->
    <s:root xmlns:s="urn:x" a='1 > 0'>
      <name>Tom &amp; J&#x65;rry &#33;</name><empty/><empty a="b" />
      <list><one>1</one><two> 2 </two></list>
    </s:root>`;
  assert.deepEqual(readXml(source), {
    name: "root",
    text: "",
    children: [
      { name: "name", text: "Tom & Jerry !", children: [] },
      { name: "empty", text: "", children: [] },
      { name: "empty", text: "", children: [] },
      {
        name: "list",
        text: "",
        children: [
          { name: "one", text: "1", children: [] },
          { name: "two", text: "2", children: [] },
        ],
      },
    ],
  });
});

for (const [what, source] of [
  ["nothing", ""],
  ["text alone", "hello"],
  ["two elements", "<a/><b/>"],
  ["text around", "<a/>x"],
  ["an element that does not end", "<a><b></b>"],
  ["elements that cross", "<a><b></a></b>"],
  ["an end without a beginning", "</a>"],
  ["a document type", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'],
  ["an undeclared entity", "<a>&b;</a>"],
  ["an entity that does not end", "<a>&amp</a>"],
  ["a character that is none", "<a>&#0;</a>"],
  ["half a surrogate pair", "<a>&#xd800;</a>"],
  ["CDATA", "<a><![CDATA[x]]></a>"],
  ["a comment that does not end", "<a><!-- </a>"],
  ["a tag that does not end", "<a"],
  ["an attribute without quotes", "<a b=c></a>"],
  ["a nest of 33", "<a>".repeat(33) + "</a>".repeat(33)],
  ["5000 elements", `<a>${"<b/>".repeat(5000)}</a>`],
] as const) {
  test(`readXml: refuses ${what}`, () => assert.throws(() => readXml(source), DecodeError));
}

const service = (type: string, url: string) =>
  `<service><serviceType>urn:schemas-upnp-org:service:${type}</serviceType><serviceId>x</serviceId><controlURL>${url}</controlURL></service>`;
const description = (services: string, base = "") => `<?xml version="1.0"?>
<root xmlns="urn:schemas-upnp-org:device-1-0"><specVersion><major>1</major></specVersion>${base}
<device><deviceType>urn:schemas-upnp-org:device:InternetGatewayDevice:1</deviceType><friendlyName>The Box</friendlyName>
<deviceList><device><deviceList><device><serviceList>${services}</serviceList></device></deviceList></device></deviceList>
</device></root>`;

test("decodeRouterDescription: port mapping services in order of preference", () => {
  const source = description(
    service("WANPPPConnection:1", "/ppp") +
      service("WANCommonInterfaceConfig:1", "/common") +
      service("WANIPConnection:1", "/ip1") +
      service("WANIPConnection:2", "ip2"),
    "<URLBase>http://192.168.1.1:5000/</URLBase>",
  );
  assert.deepEqual(decodeRouterDescription(encodeUtf8(source)), {
    name: "The Box",
    baseUrl: "http://192.168.1.1:5000/",
    services: [
      { type: "urn:schemas-upnp-org:service:WANIPConnection:2", controlUrl: "ip2" },
      { type: "urn:schemas-upnp-org:service:WANIPConnection:1", controlUrl: "/ip1" },
      { type: "urn:schemas-upnp-org:service:WANPPPConnection:1", controlUrl: "/ppp" },
    ],
  });
});

test("decodeRouterDescription: no services for other devices; malformed services are skipped", () => {
  const odd = description(
    service("WANIPConnection:1", "") +
      service("WANIPConnection:1", "/with space") +
      service("WANIPConnection:1", `/${"x".repeat(1024)}`) +
      service("RenderingControl:1", "/x"),
  ).replace("The Box", "Box\u0007&#10;two");
  const { name, baseUrl, services } = decodeRouterDescription(encodeUtf8(odd));
  assert.deepEqual({ name, baseUrl, services }, { name: "Box  two", baseUrl: undefined, services: [] });
});

test("decodeRouterDescription: refuses oversized and malformed descriptions", () => {
  const large = description(`<!--${"x".repeat(MAX_DESCRIPTION_BYTES)}-->`);
  assert.throws(() => decodeRouterDescription(encodeUtf8(large)), DecodeError);
  assert.throws(() => decodeRouterDescription(encodeUtf8("<html></html>")), DecodeError);
});

const CALL = {
  serviceType: "urn:schemas-upnp-org:service:WANIPConnection:1",
  action: "DeletePortMapping",
  parameters: [
    ["NewRemoteHost", ""],
    ["NewExternalPort", 6881],
    ["NewProtocol", "<&>"],
  ],
} as const;

test("encodeSoapCall: parameters in order, values escaped", () => {
  assert.match(
    decodeUtf8(encodeSoapCall(CALL)),
    /<s:Body><u:DeletePortMapping xmlns:u="urn:schemas-upnp-org:service:WANIPConnection:1"><NewRemoteHost><\/NewRemoteHost><NewExternalPort>6881<\/NewExternalPort><NewProtocol>&lt;&amp;&gt;<\/NewProtocol><\/u:DeletePortMapping><\/s:Body>/,
  );
  assert.equal(readXml(decodeUtf8(encodeSoapCall(CALL))).name, "Envelope");
  assert.equal(
    soapHeaders(CALL).soapaction,
    '"urn:schemas-upnp-org:service:WANIPConnection:1#DeletePortMapping"',
  );
});

const envelope = (body: string) =>
  encodeUtf8(
    `<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>${body}</s:Body></s:Envelope>`,
  );

test("decodeSoapResponse: output values by name, or the error", () => {
  const said = envelope(
    '<u:GetExternalIPAddressResponse xmlns:u="urn:x"><NewExternalIPAddress>203.0.113.7</NewExternalIPAddress></u:GetExternalIPAddressResponse>',
  );
  assert.deepEqual(decodeSoapResponse(said, "GetExternalIPAddress"), {
    ok: true,
    values: new Map([["NewExternalIPAddress", "203.0.113.7"]]),
  });
  const fault = envelope(
    "<s:Fault><faultcode>s:Client</faultcode><detail><UPnPError><errorCode>718</errorCode><errorDescription>ConflictInMappingEntry</errorDescription></UPnPError></detail></s:Fault>",
  );
  assert.deepEqual(decodeSoapResponse(fault, "AddPortMapping"), {
    ok: false,
    code: 718,
    text: "ConflictInMappingEntry",
  });
});

for (const [what, bytes] of [
  ["nothing", encodeUtf8("")],
  ["a page", encodeUtf8("<html><body>no</body></html>")],
  ["no body", encodeUtf8("<Envelope/>")],
  ["the answer to something else", envelope("<u:OtherResponse/>")],
  ["an error without a number", envelope("<UPnPError><errorCode>x</errorCode></UPnPError>")],
] as const) {
  test(`decodeSoapResponse: refuses ${what}`, () =>
    assert.throws(() => decodeSoapResponse(bytes, "AddPortMapping"), DecodeError));
}
