import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import type { PeerAddress } from "../../src/base/address.ts";
import type { PeerConnectOptions } from "../../src/net/contract.ts";
import type { Net, TcpHandlers, TcpSocket } from "../../src/runtime/contract.ts";
import { loopbackPeer, someStream } from "./driver-parts.ts";

/** A network where only `reachable` answers, and others after hole punching; `connected` records those. */
function behindRouter(
  reachable: () => PeerAddress | undefined,
  connected: (address: PeerAddress) => void,
): Net {
  const connect = (address: PeerAddress, handlers: TcpHandlers, options: PeerConnectOptions): TcpSocket => {
    if (!options.isPunch && address.port !== reachable()?.port) {
      queueMicrotask(() => handlers.closed("nobody answers"));
      const nothing = () => {};
      return {
        remote: address,
        bufferedBytes: 0,
        write: () => true,
        pause: nothing,
        resume: nothing,
        close: nothing,
      };
    }
    const opened = () => {
      handlers.opened?.();
      if (options.isPunch) connected(address);
    };
    return runtime.net.connect(address, { ...handlers, opened }, options);
  };
  return { ...runtime.net, connect };
}

test("LiveDriver: viewers that are unreachable connect by hole punching through their common source", async (t) => {
  const stream = someStream();
  const source = await loopbackPeer(stream, "source", { punches: true });
  let connected: (address: PeerAddress) => void = () => {};
  const meeting = new Promise<PeerAddress>((resolve) => {
    connected = resolve;
  });
  const net = behindRouter(
    () => source.address,
    (address) => connected(address),
  );
  const machine = { ...runtime, net };
  const viewers = [
    await loopbackPeer(stream, "viewer", { punches: true, runtime: machine }),
    await loopbackPeer(stream, "viewer", { punches: true, runtime: machine }),
  ];
  t.after(() => Promise.all([source, ...viewers].map((peer) => peer.close())));
  for (const viewer of viewers) viewer.driver.found([source.address]);
  const address = await Promise.race([meeting, timeout(60_000)]);
  assert.ok(address && viewers.some((viewer) => viewer.address.port === address.port));
  const peers = () => viewers.map(({ driver }) => driver.figures().peers);
  for (let tries = 0; tries < 3_000 && peers().some((count) => count < 2); tries++) await timeout(20);
  assert.deepEqual(peers(), [2, 2], "the source, and each other");
});

function timeout(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(() => resolve(undefined), ms));
}
