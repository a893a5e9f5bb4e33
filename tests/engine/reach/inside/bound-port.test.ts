import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../../../src/base/errors.ts";
import { BoundAddresses } from "../../../../src/engine/reach/inside/bound-addresses.ts";
import { BoundPort, openBoundPort } from "../../../../src/engine/reach/inside/bound-port.ts";
import { stayInside } from "../../../../src/engine/reach/inside.ts";
import type { TcpHandlers } from "../../../../src/runtime/contract.ts";
import { deferred } from "../../deferred.ts";
import { SILENT } from "../../fake-house.ts";
import { fakeMachine } from "./fake-machine.ts";

const NETWORKS = { wg0: ["10.2.0.2/32"] };
const ACCEPT = (): TcpHandlers => ({ received() {}, drained() {}, closed() {} });

function house() {
  const fake = fakeMachine(NETWORKS);
  const inside = stayInside(fake.runtime, { bind: "wg0", proxy: "", proxyStrict: true }, SILENT);
  return { ...fake, inside, addresses: new BoundAddresses("wg0", fake.runtime, SILENT) };
}

/** Something that cannot be open; counts how often it was tried and closed. */
function impossible(addresses: BoundAddresses, error: Error) {
  const seen = { opened: 0, closed: 0 };
  const open = async () => {
    seen.opened++;
    const boundPort = new BoundPort(addresses, () => Promise.reject(error));
    return { boundPort, close: () => void seen.closed++ };
  };
  return { seen, open };
}

test("openBoundPort: where any port will do, another one is taken for one that is not free at all addresses", async () => {
  const { inside, runtime, bound } = house();
  await runtime.net.listen({ host: "10.2.0.2", port: 40_000 }, ACCEPT);
  const listener = await inside.net.listen({ host: "::", port: 0 }, ACCEPT);
  assert.equal(listener.address.port, 40_001);
  await runtime.net.bindUdp({ host: "10.2.0.2", port: 40_002 }, () => {});
  const socket = await inside.net.bindUdp({ host: "::", port: 0 }, () => {});
  assert.equal(socket.address.port, 40_003);
  for (const left of ["tcp 127.0.0.1:40000", "udp 127.0.0.1:40002"]) assert.ok(!bound.has(left), left);
});

test("openBoundPort: gives up after five ports, and at once where one was asked for", async () => {
  const { addresses } = house();
  const { seen, open } = impossible(addresses, new SluiceError("port_busy", "taken"));
  await assert.rejects(openBoundPort(0, open), { code: "port_busy" });
  assert.deepEqual(seen, { opened: 5, closed: 5 });
  await assert.rejects(openBoundPort(8621, open), { code: "port_busy" });
  assert.deepEqual(seen, { opened: 6, closed: 6 });
});

test("openBoundPort: an address that cannot be listened at yet holds up nothing", async () => {
  const { addresses } = house();
  const { seen, open } = impossible(addresses, new Error("EADDRNOTAVAIL"));
  await openBoundPort(8621, open);
  assert.deepEqual(seen, { opened: 1, closed: 0 });
});

test("BoundPort: looks one after the other, goes on after one that failed, and stops when the last is done", async () => {
  const { clock, addresses } = house();
  const looks = [deferred(), deferred(), deferred()];
  let begun = 0;
  const port = new BoundPort(addresses, () => looks[begun++]!.promise);
  looks[0]!.resolve();
  await port.begin();
  await clock.advance(2_000);
  assert.equal(begun, 2, "the second look is not over");
  looks[1]!.reject(new Error("gone"));
  await clock.advance(0);
  assert.equal(begun, 3);
  let isStopped = false;
  const stopped = port.stop().then(() => {
    isStopped = true;
  });
  await clock.advance(5_000);
  assert.ok(!isStopped && begun === 3);
  looks[2]!.resolve();
  await stopped;
});
