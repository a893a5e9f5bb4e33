import assert from "node:assert/strict";
import { test } from "node:test";
import { deferred } from "../../../src/async/deferred.ts";
import { SluiceError } from "../../../src/base/errors.ts";
import { SILENT_LOG } from "../../../src/base/log.ts";
import { BoundAddresses } from "../../../src/net/confined/bound-addresses.ts";
import { BoundPort, openBoundPort } from "../../../src/net/confined/bound-port.ts";
import { confineRuntime } from "../../../src/net/confined/confined.ts";
import type { TcpHandlers } from "../../../src/runtime/contract.ts";
import { fakeMachine } from "./fake-machine.ts";

const NETWORKS = { wg0: ["10.2.0.2/32"] };
const ACCEPT = (): TcpHandlers => ({ received() {}, drained() {}, closed() {} });

function bench() {
  const fake = fakeMachine(NETWORKS);
  const confined = confineRuntime(fake.runtime, { bind: "wg0", proxy: "", proxyStrict: true }, SILENT_LOG);
  return { ...fake, confined, addresses: new BoundAddresses("wg0", fake.runtime, SILENT_LOG) };
}

/** A listener that fails to open; counts attempts and closes. */
function impossible(addresses: BoundAddresses, error: Error) {
  const seen = { opened: 0, closed: 0 };
  const open = async () => {
    seen.opened++;
    const boundPort = new BoundPort(addresses, () => Promise.reject(error));
    return { boundPort, close: () => void seen.closed++ };
  };
  return { seen, open };
}

test("openBoundPort: with port 0, tries another port if one is not free on all addresses", async () => {
  const { confined, runtime, bound } = bench();
  await runtime.net.listen({ host: "10.2.0.2", port: 40_000 }, ACCEPT);
  const listener = await confined.net.listen({ host: "::", port: 0 }, ACCEPT);
  assert.equal(listener.address.port, 40_001);
  await runtime.net.bindUdp({ host: "10.2.0.2", port: 40_002 }, () => {});
  const socket = await confined.net.bindUdp({ host: "::", port: 0 }, () => {});
  assert.equal(socket.address.port, 40_003);
  for (const left of ["tcp 127.0.0.1:40000", "udp 127.0.0.1:40002"]) assert.ok(!bound.has(left), left);
});

test("openBoundPort: fails after five ports, and immediately if a port was given", async () => {
  const { addresses } = bench();
  const { seen, open } = impossible(addresses, new SluiceError("port_busy", "taken"));
  await assert.rejects(openBoundPort(0, open), { code: "port_busy" });
  assert.deepEqual(seen, { opened: 5, closed: 5 });
  await assert.rejects(openBoundPort(8621, open), { code: "port_busy" });
  assert.deepEqual(seen, { opened: 6, closed: 6 });
});

test("openBoundPort: an address that is not ready yet does not fail the start", async () => {
  const { addresses } = bench();
  const { seen, open } = impossible(addresses, new Error("EADDRNOTAVAIL"));
  await openBoundPort(8621, open);
  assert.deepEqual(seen, { opened: 1, closed: 0 });
});

test("BoundPort: serializes updates, continues after a failed one, and stop waits for the last", async () => {
  const { clock, addresses } = bench();
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
