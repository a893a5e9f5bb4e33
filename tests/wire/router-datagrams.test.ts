import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, fromHex, latin1Bytes, latin1Text, toHex } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { instant } from "../../src/base/time.ts";
import {
  decodeNatPmpResponse,
  encodeNatPmpAddressRequest,
  encodeNatPmpMapRequest,
  hasRouterRestarted,
  natPmpResultText,
} from "../../src/wire/router/nat-pmp.ts";
import { decodePcpResponse, encodePcpMapRequest, pcpResultText } from "../../src/wire/router/pcp.ts";
import { decodeSsdpResponse, encodeSsdpSearch } from "../../src/wire/upnp/ssdp.ts";

const hex = (text: string) => fromHex(text.replaceAll(" ", ""))!;
const WISH = { protocol: "tcp", internalPort: 6881, externalPort: 6882, lifetimeSeconds: 3600 } as const;

test("encodeNatPmp…: the formats of RFC 6886 3.2, 3.3 and 3.4", () => {
  assert.equal(toHex(encodeNatPmpAddressRequest()), "0000");
  assert.equal(toHex(encodeNatPmpMapRequest(WISH)), "000200001ae11ae200000e10");
  assert.equal(toHex(encodeNatPmpMapRequest({ ...WISH, protocol: "udp" })), "000100001ae11ae200000e10");
  const end = encodeNatPmpMapRequest({ ...WISH, lifetimeSeconds: 0 });
  assert.equal(toHex(end), "000200001ae1000000000000");
});

test("decodeNatPmpResponse: an address, a mapping, an error", () => {
  assert.deepEqual(decodeNatPmpResponse(hex("00 80 0000 00000064 cb007107")), {
    kind: "address",
    result: 0,
    epochSeconds: 100,
    address: "203.0.113.7",
  });
  assert.deepEqual(decodeNatPmpResponse(hex("00 82 0000 00000064 1ae1 1ae2 00000e10")), {
    kind: "map",
    result: 0,
    epochSeconds: 100,
    protocol: "tcp",
    internalPort: 6881,
    externalPort: 6882,
    lifetimeSeconds: 3600,
  });
  const refused = decodeNatPmpResponse(hex("00 80 0003 00000064"));
  assert.equal(refused.result, 3);
  assert.equal(natPmpResultText(3), "the router has no connection");
  assert.equal(natPmpResultText(77), "result code 77");
});

for (const [what, bytes] of [
  ["nothing", ""],
  ["seven bytes", "00800000000000"],
  ["a question", "0000 0000 00000000 00000000"],
  ["another version", "0280 0000 00000000 00000000"],
  ["another opcode", "0083 0000 00000000 00000000 00000000"],
  ["a truncated mapping", "0082 0000 00000064 1ae1 1ae2 00000e"],
  ["a truncated address", "0080 0000 00000064 cb0071"],
] as const) {
  test(`decodeNatPmpResponse: refuses ${what}`, () =>
    assert.throws(() => decodeNatPmpResponse(hex(bytes)), DecodeError));
}

const NONCE = new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
const PCP_TAIL = "0102030405060708090a0b0c 06 000000 1ae1 1ae2 00000000000000000000ffff cb007107";

test("encodePcpMapRequest: the format of RFC 6887 7.1 and 11.1", () => {
  assert.equal(
    toHex(encodePcpMapRequest({ ...WISH, nonce: NONCE, clientAddress: "192.168.1.2" })),
    hexText(
      "02 01 0000 00000e10 00000000000000000000ffffc0a80102",
      "0102030405060708090a0b0c 06 000000 1ae1 1ae2 00000000000000000000ffff00000000",
    ),
  );
  const end = encodePcpMapRequest({ ...WISH, nonce: NONCE, clientAddress: "fd00::2", lifetimeSeconds: 0 });
  assert.equal(
    toHex(end),
    hexText(
      "02 01 0000 00000000 fd000000000000000000000000000002",
      "0102030405060708090a0b0c 06 000000 1ae1 0000 00000000000000000000000000000000",
    ),
  );
});

function hexText(...parts: string[]): string {
  return parts.join("").replaceAll(" ", "");
}

test("decodePcpResponse: a mapping, with and without options", () => {
  const answer = {
    kind: "map",
    result: 0,
    lifetimeSeconds: 7200,
    epochSeconds: 100,
    nonce: NONCE,
    protocol: "tcp",
    internalPort: 6881,
    externalPort: 6882,
    externalAddress: "203.0.113.7",
  };
  const bytes = hex(`02 81 00 00 00001c20 00000064 000000000000000000000000 ${PCP_TAIL}`);
  assert.deepEqual(decodePcpResponse(bytes), answer);
  assert.deepEqual(decodePcpResponse(concatBytes([bytes, new Uint8Array(8)])), answer);
  assert.equal(pcpResultText(12), "the router sees another address: there is a second router in between");
  assert.equal(pcpResultText(200), "result code 200");
});

test("decodePcpResponse: a router that supports only NAT-PMP, or a later version", () => {
  assert.deepEqual(decodePcpResponse(hex("0080 0001 00000064")), { kind: "version", version: 0 });
  const later = hex(`02 81 00 01 00000000 00000064 000000000000000000000000`);
  assert.deepEqual(decodePcpResponse(later), { kind: "version", version: 2 });
});

for (const [what, bytes] of [
  ["nothing", ""],
  ["a question", `02 01 00 00 00001c20 00000064 000000000000000000000000 ${PCP_TAIL}`],
  ["a head alone", "02 81 00 00 00001c20 00000064 000000000000000000000000"],
  ["another opcode", `02 82 00 00 00001c20 00000064 000000000000000000000000 ${PCP_TAIL}`],
  [
    "another protocol",
    `02 81 00 00 00001c20 00000064 000000000000000000000000 ${PCP_TAIL.replace("06", "63")}`.replace(
      "0c 06",
      "0c 63",
    ),
  ],
  ["more than 1100 bytes", `02 81 00 00 ${"00".repeat(1100)}`],
] as const) {
  test(`decodePcpResponse: refuses ${what}`, () =>
    assert.throws(() => decodePcpResponse(hex(bytes)), DecodeError));
}

const RESTARTS: readonly [
  what: string,
  before: [number, number],
  now: [number, number],
  restarted: boolean,
][] = [
  ["both clocks tick alike", [100, 0], [700, 600], false],
  ["theirs ticks 5 % faster", [100, 0], [730, 600], false],
  ["theirs went back", [5000, 0], [30, 600], true],
  ["theirs went back by a second, as an answer overtook another", [5000, 0], [4999, 0], false],
  ["theirs stood still for long", [5000, 0], [5300, 600], true],
  ["theirs ran ahead: it began anew long ago", [100, 0], [1400, 600], true],
];
for (const [what, before, now, restarted] of RESTARTS) {
  test(`hasRouterRestarted: ${what}: ${restarted}`, () => {
    const epoch = ([epochSeconds, seconds]: [number, number]) => ({
      epochSeconds,
      receivedAt: instant(1000 * seconds),
    });
    assert.equal(hasRouterRestarted(epoch(before), epoch(now)), restarted);
  });
}

test("encodeSsdpSearch: to the group, or to one device", () => {
  assert.equal(
    latin1Text(encodeSsdpSearch("urn:x:device:InternetGatewayDevice:1", "239.255.255.250")),
    'M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: "ssdp:discover"\r\nMX: 2\r\nST: urn:x:device:InternetGatewayDevice:1\r\n\r\n',
  );
});

test("decodeSsdpResponse: reads type and location; headers in any order and case", () => {
  const text =
    "HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=120\r\nST: urn:x\r\nEXT:\r\nlocation:http://192.168.1.1:5000/root.xml \r\n\r\n";
  assert.deepEqual(decodeSsdpResponse(latin1Bytes(text)), {
    target: "urn:x",
    location: "http://192.168.1.1:5000/root.xml",
  });
});

for (const [what, text] of [
  ["nothing", ""],
  ["a search", 'M-SEARCH * HTTP/1.1\r\nMAN: "ssdp:discover"\r\n\r\n'],
  ["a refusal", "HTTP/1.1 404 Not Found\r\nLOCATION: http://192.168.1.1/\r\n\r\n"],
  ["no location", "HTTP/1.1 200 OK\r\nST: urn:x\r\n\r\n"],
  ["a location with spaces", "HTTP/1.1 200 OK\r\nLOCATION: http://192.168.1.1/ x\r\n\r\n"],
  ["a line that is no header", "HTTP/1.1 200 OK\r\nthing\r\nLOCATION: http://192.168.1.1/\r\n\r\n"],
  ["too much", `HTTP/1.1 200 OK\r\nLOCATION: http://192.168.1.1/${"x".repeat(2048)}\r\n\r\n`],
] as const) {
  test(`decodeSsdpResponse: refuses ${what}`, () =>
    assert.throws(() => decodeSsdpResponse(latin1Bytes(text)), DecodeError));
}
