import assert from "node:assert/strict";
import { test } from "node:test";
import { RemoteContact } from "../../src/net/remote-contact.ts";
import type { DatagramReceiver, HttpClient, Net, TcpHandlers } from "../../src/runtime/contract.ts";
import { FakeClock } from "../engine/fake-clock.ts";

const GLOBAL = { host: "93.184.216.34", port: 80 };
const PRIVATE = { host: "192.168.1.1", port: 80 };

function watched() {
  const clock = new FakeClock();
  let opened: TcpHandlers | undefined;
  let receive: DatagramReceiver | undefined;
  const net = {
    connect: (_: unknown, handlers: TcpHandlers) => (opened = handlers),
    bindUdp: async (_: unknown, received: DatagramReceiver) => (receive = received),
  } as unknown as Net;
  const http = { request: async () => ({}) } as unknown as HttpClient;
  const contact = new RemoteContact(clock);
  const runtime = contact.watch({ net, http });
  return {
    contact,
    clock,
    connect: (address: typeof GLOBAL) => {
      const handlers = { received() {}, drained() {}, closed() {} };
      runtime.net.connect(address, handlers, { timeoutMs: 1 });
      return () => opened?.opened?.();
    },
    async hear(from: typeof GLOBAL) {
      await runtime.net.bindUdp({ host: "::", port: 0 }, () => {});
      receive?.(new Uint8Array(), from);
    },
    request: (connectTo: string) =>
      runtime.http.request({ connectTo } as Parameters<HttpClient["request"]>[0]),
  };
}

test("RemoteContact: only an answer of the Internet counts, and for 16 minutes", async () => {
  const { contact, clock, connect, hear, request } = watched();
  assert.equal(contact.isRecent, false);
  const opened = connect(GLOBAL);
  connect(PRIVATE)();
  await hear(PRIVATE);
  await request("127.0.0.1");
  assert.equal(contact.isRecent, false, "an attempt, the router and this machine are no remote hosts");
  await hear(GLOBAL);
  assert.equal(contact.isRecent, true);
  await clock.advance(16 * 60_000);
  assert.equal(contact.isRecent, false);
  await request(GLOBAL.host);
  assert.equal(contact.isRecent, true);
  await clock.advance(16 * 60_000);
  connect(GLOBAL)();
  opened();
  assert.equal(contact.isRecent, true);
});
