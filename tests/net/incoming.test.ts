import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SILENT_LOG } from "../../src/base/log.ts";
import { confineRuntime } from "../../src/net/confined/confined.ts";
import { limitAccepted } from "../../src/net/incoming.ts";
import type { Net } from "../../src/runtime/contract.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { fakeMachine } from "./confined/fake-machine.ts";

const HANDLERS = { received() {}, drained() {}, closed() {} };

test("limitAccepted: a household gets 64 connections and then 8 a second; others are not affected", async () => {
  const clock = new FakeClock();
  const listen = limitAccepted(runtime.net.listen, clock);
  const accepted: string[] = [];
  const sockets: Socket[] = [];
  const listener = await listen({ host: "127.0.0.1", port: 0 }, (socket) => {
    accepted.push(socket.remote.host);
    socket.write(Uint8Array.of(1));
    return HANDLERS;
  });
  /** Opens connections one after another; resolves to the number of those that received a byte before they closed. */
  const open = async (count: number, localAddress: string) => {
    let open = 0;
    for (let i = 0; i < count; i++) {
      const socket = connect({ ...listener.address, localAddress });
      sockets.push(socket);
      socket.on("error", () => {});
      open += await new Promise<number>((resolve) => {
        socket.once("data", () => resolve(1));
        socket.once("close", () => resolve(0));
      });
    }
    return open;
  };
  try {
    assert.equal(await open(80, "127.9.0.1"), 64);
    assert.equal(await open(3, "127.9.0.2"), 3);
    await clock.advance(1_000);
    assert.equal(await open(20, "127.9.0.1"), 8);
    // A refused connection reaches no other code.
    assert.equal(accepted.length, 64 + 3 + 8);
  } finally {
    for (const socket of sockets) socket.destroy();
    await listener.close();
  }
});

test("limitAccepted: applies to the listeners of a confined engine as well", async () => {
  const { runtime: machine } = fakeMachine({ wg0: ["10.2.0.2/32"] });
  const limits: unknown[] = [];
  const listen: Net["listen"] = (address, accept, admits) => {
    limits.push(admits?.("10.2.0.9"));
    return machine.net.listen(address, accept);
  };
  const spied = { ...machine, net: { ...machine.net, listen } };
  const settings = { bind: "", proxy: "socks5://10.2.0.1:1080", proxyStrict: true };
  for (const setting of [settings, { ...settings, bind: "wg0", proxy: "" }]) {
    const { net } = confineRuntime(spied, setting, SILENT_LOG);
    const listener = await limitAccepted(net.listen, machine.clock)({ host: "::", port: 0 }, () => HANDLERS);
    await listener.close();
  }
  // One of the proxied engine; loopback and the address of the interface of the bound one.
  assert.deepEqual(limits, [true, true, true]);
});
