import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes, latin1Text } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { decodeHttpConnectResponse, encodeHttpConnect } from "../../src/wire/http-connect.ts";

test("encodeHttpConnect: writes the authority in request line and Host, and credentials if given", () => {
  assert.equal(
    latin1Text(encodeHttpConnect("a.example:80", undefined)),
    "CONNECT a.example:80 HTTP/1.1\r\nHost: a.example:80\r\n\r\n",
  );
  assert.match(
    latin1Text(encodeHttpConnect("[::1]:80", "bWU=")),
    /\r\nProxy-Authorization: Basic bWU=\r\n\r\n$/,
  );
});

test("decodeHttpConnectResponse: decodes complete heads, returns undefined for partial ones, and leaves later bytes", () => {
  const heads: readonly (readonly [head: string, status: number, reason: string])[] = [
    ["HTTP/1.1 200 Connection established\r\n\r\n", 200, "Connection established"],
    ["HTTP/1.0 200\r\nVia: x\r\n\r\n", 200, ""],
    ["HTTP/1.1 407 Proxy Auth\nA: b\n\n", 407, "Proxy Auth"],
    ["HTTP/1.1 502 \u001b[31mno\u007f\r\n\r\n", 502, "[31mno"],
  ];
  for (const [head, status, reason] of heads) {
    for (let length = 0; length < head.length; length++)
      assert.equal(decodeHttpConnectResponse(latin1Bytes(head.slice(0, length))), undefined);
    assert.deepEqual(decodeHttpConnectResponse(latin1Bytes(`${head}\n\nmore`)), {
      status,
      reason,
      length: head.length,
    });
  }
});

test("decodeHttpConnectResponse: refuses other protocols, a missing status, and an endless head", () => {
  const refused = ["X", "HTTP/2 200\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000\r\n\r\n"];
  for (const text of refused)
    assert.throws(() => decodeHttpConnectResponse(latin1Bytes(text)), DecodeError, text);
  const endless = latin1Bytes(`HTTP/1.1 200 OK\r\n${"A: b\r\n".repeat(5000)}`);
  assert.throws(() => decodeHttpConnectResponse(endless), /more than 16384 bytes/);
});
