import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { createServer } from "node:http";
import { type TestContext, test } from "node:test";
import { runtime } from "#runtime";
import type { PeerAddress } from "../../../src/base/address.ts";
import { latin1Bytes, latin1Text } from "../../../src/base/bytes.ts";
import type { Log } from "../../../src/base/log.ts";
import { confineRuntime } from "../../../src/net/confined/confined.ts";
import type { Runtime, UdpSocket } from "../../../src/runtime/contract.ts";
import { startProxy, type TestProxyOptions } from "../../parts/proxy.ts";

/** An unused address that the test proxy maps to this machine. */
const ELSEWHERE = "198.18.0.1";
const NAMES = { "tracker.test": "127.0.0.1", [ELSEWHERE]: "127.0.0.1" };

/** A proxy and a runtime confined to it, which must not resolve names. */
async function behindProxy(t: TestContext, kind: "socks5" | "http", options: TestProxyOptions = {}) {
  const proxy = await startProxy({ names: NAMES, login: "me", password: "hunter2", ...options });
  t.after(() => proxy.close());
  const lines: string[] = [];
  const note = (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const log: Log = { error: note, warn: note, info: note, debug: note, named: () => log };
  const lookup = async (name: string) => assert.fail(`looked up ${name}`);
  const confined = (strict: boolean, login = "me:hunter2") =>
    confineRuntime(
      { ...runtime, lookup },
      { bind: "", proxy: `${kind}://${login}@127.0.0.1:${proxy.port}`, proxyStrict: strict },
      log,
    );
  return { proxy, lines, confined };
}

async function webServer(t: TestContext): Promise<number> {
  const server = createServer((question, answer) => answer.end(`hello ${question.headers.host}`));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close());
  return (server.address() as { port: number }).port;
}

async function fetched({ http, lookup }: Runtime, url: URL): Promise<string> {
  const [connectTo] = await lookup(url.hostname);
  const asked = { url, method: "GET", headers: {}, connectTo: connectTo!, timeoutMs: 60_000 } as const;
  return new Response((await http.request(asked)).body).text();
}

/** Writes a request before the connection is open; returns the response or the close reason. */
function called({ net }: Runtime, address: PeerAddress): Promise<string> {
  return new Promise((resolve) => {
    let response = "";
    const received = (bytes: Uint8Array) => {
      response += latin1Text(bytes);
    };
    const closed = (reason: string) => resolve(response || reason);
    const socket = net.connect(address, { received, drained() {}, closed }, { timeoutMs: 60_000 });
    socket.write(latin1Bytes("GET / HTTP/1.0\r\nHost: x\r\n\r\n"));
  });
}

for (const kind of ["socks5", "http"] as const) {
  test(`confineRuntime, ${kind}: HTTP sends the name, which the proxy resolves`, {
    timeout: 60_000,
  }, async (t) => {
    const { proxy, confined } = await behindProxy(t, kind);
    const url = new URL(`http://tracker.test:${await webServer(t)}/announce`);
    assert.equal(await fetched(confined(true), url), `hello ${url.host}`);
    assert.deepEqual(proxy.asked, [`connect ${url.host}`]);
  });

  test(`confineRuntime, ${kind}: a peer connection behaves like any other`, {
    timeout: 60_000,
  }, async (t) => {
    const { proxy, confined } = await behindProxy(t, kind);
    const port = await webServer(t);
    const address = { host: ELSEWHERE, port };
    assert.match(await called(confined(true), address), /hello x$/);
    assert.deepEqual(proxy.asked, [`connect ${ELSEWHERE}:${port}`]);
  });

  test(`confineRuntime, ${kind}: a wrong password is reported, tried once, and never logged`, {
    timeout: 60_000,
  }, async (t) => {
    const { proxy, lines, confined } = await behindProxy(t, kind);
    const wrong = confined(true, "me:secretly");
    const reasons = [
      await called(wrong, { host: ELSEWHERE, port: 9 }),
      await called(wrong, { host: ELSEWHERE, port: 9 }),
    ];
    assert.match(reasons[0]!, /rejected the login and password/);
    assert.equal(reasons[1], reasons[0]);
    assert.deepEqual(proxy.asked, ["refused login"]);
    assert.doesNotMatch([...lines, ...reasons].join("\n"), /hunter2|secretly/);
    assert.equal(lines.filter((line) => line.includes("the proxy does not work")).length, 1);
  });
}

/** Replies to each datagram with its text in upper case. */
async function echo(t: TestContext): Promise<number> {
  const socket = createSocket("udp4");
  socket.on("message", (bytes, from) => socket.send(bytes.toString().toUpperCase(), from.port, from.address));
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  t.after(() => void socket.close());
  return socket.address().port;
}

interface Heard {
  readonly text: string;
  readonly from: PeerAddress;
  readonly actual: PeerAddress | undefined;
}

/** Sends a datagram repeatedly until a response arrives. */
async function udpSocket(t: TestContext, { net }: Runtime) {
  let resolve = (_heard: Heard) => {};
  const socket: UdpSocket = await net.bindUdp({ host: "0.0.0.0", port: 0 }, (bytes, from, actual) =>
    resolve({ text: latin1Text(bytes), from, actual }),
  );
  t.after(() => socket.close());
  const ask = (text: string, to: PeerAddress) =>
    new Promise<Heard>((done) => {
      socket.send(latin1Bytes(text), to);
      const again = setInterval(() => socket.send(latin1Bytes(text), to), 250);
      resolve = (response) => {
        if (response.text !== text.toUpperCase()) return;
        clearInterval(again);
        done(response);
      };
    });
  return { socket, ask };
}

test("confineRuntime, socks5: datagrams go through the proxy, to addresses and names", {
  timeout: 60_000,
}, async (t) => {
  const { proxy, confined } = await behindProxy(t, "socks5");
  const machine = confined(true);
  const port = await echo(t);
  const { ask } = await udpSocket(t, machine);
  const here = { host: "127.0.0.1", port };
  assert.deepEqual(await ask("one", { host: ELSEWHERE, port }), {
    text: "ONE",
    from: here,
    actual: undefined,
  });
  const [placeholder] = await machine.lookup("tracker.test");
  const named = { host: placeholder!, port };
  assert.deepEqual(await ask("two", named), { text: "TWO", from: named, actual: here });
  assert.ok(proxy.asked.includes(`datagram ${ELSEWHERE}:${port}`));
  assert.ok(proxy.asked.includes(`datagram tracker.test:${port}`));
});

test("confineRuntime, socks5: establishes a broken association again", {
  timeout: 60_000,
}, async (t) => {
  const { proxy, confined } = await behindProxy(t, "socks5");
  const port = await echo(t);
  const { ask } = await udpSocket(t, confined(true));
  await ask("one", { host: ELSEWHERE, port });
  proxy.cut();
  assert.equal((await ask("two", { host: ELSEWHERE, port })).text, "TWO");
  assert.equal(proxy.asked.filter((what) => what === "associate").length, 2);
});

test("confineRuntime, socks5: UDP bypasses a proxy without UDP support if allowed, logged once", {
  timeout: 60_000,
}, async (t) => {
  const { lines, confined } = await behindProxy(t, "socks5", { udp: false });
  const port = await echo(t);
  const { ask } = await udpSocket(t, confined(false));
  assert.equal((await ask("one", { host: "127.0.0.1", port })).from.port, port);
  assert.equal(
    lines.filter((line) => line.includes("does not support UDP, which is sent directly")).length,
    1,
  );
});

test("confineRuntime, strict: only this machine can connect, and local networks are not used", async (t) => {
  const { confined } = await behindProxy(t, "http");
  const { net } = confined(true);
  const nothing = { received() {}, drained() {}, closed() {} };
  const listener = await net.listen({ host: "::", port: 0 }, () => nothing);
  t.after(() => listener.close());
  assert.equal(listener.address.host, "127.0.0.1");
  const anywhere = { host: "0.0.0.0", port: 0 };
  const group = { multicast: { group: "239.192.152.143" } };
  for (const options of [{}, group])
    await assert.rejects(
      net.bindUdp(anywhere, () => {}, options),
      { code: "bad_configuration" },
    );
});

test("confineRuntime: localhost is this machine; reports a server that is no proxy", {
  timeout: 60_000,
}, async (t) => {
  const { confined } = await behindProxy(t, "socks5");
  assert.deepEqual(await confined(true).lookup("localhost"), ["127.0.0.1"]);
  const web = await webServer(t);
  const settings = { bind: "", proxy: `socks5://127.0.0.1:${web}`, proxyStrict: true };
  const log: Log = { error() {}, warn() {}, info() {}, debug() {}, named: () => log };
  assert.match(
    await called(confineRuntime(runtime, settings, log), { host: ELSEWHERE, port: 9 }),
    /this is an HTTP proxy|closed/,
  );
});
