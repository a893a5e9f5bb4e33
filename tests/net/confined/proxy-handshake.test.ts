import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHex, latin1Bytes, latin1Text, toHex } from "../../../src/base/bytes.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import { parseProxy, proxyCapabilities } from "../../../src/net/confined/proxy.ts";
import {
  type ProxyHandshake,
  ProxyRefusal,
  startProxyHandshake,
} from "../../../src/net/confined/proxy-handshake.ts";

const SOCKS = parseProxy("socks5://me:hunter2@127.0.0.1:1080");
const HTTP = parseProxy("http://me:hunter2@127.0.0.1:3128");
const REQUEST = { command: "connect", to: { host: "a.example", port: 80 } } as const;

/** Runs a handshake with `answers` byte by byte; returns the sent bytes, and the rest as the last element. */
function conversation(handshake: ProxyHandshake, answers: Uint8Array): string[] {
  const sent = [toHex(handshake.first)];
  for (let at = 0; at < answers.length; at++) {
    const step = handshake.received(answers.subarray(at, at + 1));
    if (step.kind === "send") sent.push(toHex(step.bytes));
    if (step.kind === "done") return [...sent, "done", toHex(answers.subarray(at + 1))];
  }
  return sent;
}

test("parseProxy: parses login, port and kind; the text contains neither login nor password", () => {
  assert.equal(SOCKS.text, "SOCKS5 proxy 127.0.0.1:1080");
  assert.equal(latin1Text(SOCKS.login!.password), "hunter2");
  assert.deepEqual(
    [parseProxy("http://proxy.example").port, parseProxy("socks5://[::1]:9050").host],
    [80, "::1"],
  );
  assert.equal(latin1Text(parseProxy("socks5://a%40b:c%3Ad@h:1").login!.name), "a@b");
  assert.equal(parseProxy("socks5://h:1").login, undefined);
  for (const text of ["", "h:1", "socks4://h:1", "socks5://h", `socks5://${"a".repeat(256)}@h:1`])
    assert.throws(() => parseProxy(text), { code: "bad_configuration" }, text);
});

test("proxyCapabilities: with strict only what the proxy supports, else everything", () => {
  const carried = (proxy: string, proxyStrict: boolean) =>
    Object.values(proxyCapabilities({ proxy, proxyStrict }));
  assert.deepEqual(carried("", true), [true, true, true]);
  assert.deepEqual(carried("socks5://h:1", false), [true, true, true]);
  assert.deepEqual(carried("socks5://h:1", true), [true, false, false]);
  assert.deepEqual(carried("http://h:1", true), [false, false, false]);
});

test("startProxyHandshake: a SOCKS5 proxy gets the login and the unresolved name", () => {
  const answers = fromHex("0502" + "0100" + "05000001000000000000" + "abcd")!;
  assert.deepEqual(conversation(startProxyHandshake(SOCKS, REQUEST), answers), [
    "05020002",
    `01026d6507${toHex(latin1Bytes("hunter2"))}`,
    `0501000309${toHex(latin1Bytes("a.example"))}0050`,
    "done",
    "abcd",
  ]);
});

test("startProxyHandshake: an HTTP proxy gets CONNECT; bytes after the response belong to the connection", () => {
  const sent = conversation(
    startProxyHandshake(HTTP, REQUEST),
    latin1Bytes("HTTP/1.1 200 OK\r\nA: b\r\n\r\n\x01\x02"),
  );
  assert.match(
    latin1Text(fromHex(sent[0]!)!),
    /^CONNECT a\.example:80 HTTP\/1\.1\r\n.*Basic bWU6aHVudGVyMg==/s,
  );
  assert.deepEqual(sent.slice(1), ["done", "0102"]);
});

test("startProxyHandshake: responses in one piece and byte by byte give the same result", () => {
  const step = startProxyHandshake(HTTP, REQUEST).received(latin1Bytes("HTTP/1.1 200 OK\r\n\r\nrest"));
  assert.equal(step.kind === "done" && latin1Text(step.rest), "rest");
});

test("startProxyHandshake: classifies refusals and malformed responses; no message contains the password", () => {
  const cases: readonly (readonly [server: typeof SOCKS, answer: Uint8Array, kind: string | undefined])[] = [
    [SOCKS, fromHex("05ff")!, "login"],
    [SOCKS, fromHex("05020101")!, "login"],
    [parseProxy("socks5://h:1"), fromHex("0502")!, "login"],
    [SOCKS, fromHex("0500" + "05050001000000000000")!, "destination"],
    [SOCKS, fromHex("0500" + "05070001000000000000")!, "unsupported"],
    [SOCKS, latin1Bytes("HTTP/1.1 400 Bad"), undefined],
    [SOCKS, fromHex("0500" + "05000009")!, undefined],
    [HTTP, latin1Bytes("HTTP/1.1 407 hunter2\r\n\r\n"), "login"],
    [HTTP, latin1Bytes("HTTP/1.1 403 No\r\n\r\n"), "destination"],
    [HTTP, fromHex("0500")!, undefined],
    [HTTP, latin1Bytes(`HTTP/1.1 200 OK\r\n${"A: b\r\n".repeat(4000)}`), undefined],
  ];
  for (const [server, answer, kind] of cases) {
    const thrown = thrownBy(() => conversation(startProxyHandshake(server, REQUEST), answer));
    assert.ok(thrown instanceof ProxyRefusal || thrown instanceof DecodeError, String(thrown));
    assert.equal(thrown instanceof ProxyRefusal ? thrown.kind : undefined, kind);
    assert.ok(!thrown.message.includes("hunter2"), thrown.message);
  }
  assert.throws(() => startProxyHandshake(HTTP, { ...REQUEST, command: "associate" }), ProxyRefusal);
});

function thrownBy(run: () => void): unknown {
  try {
    run();
    return undefined;
  } catch (thrown) {
    return thrown;
  }
}
