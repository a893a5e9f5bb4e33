import assert from "node:assert/strict";
import { test } from "node:test";
import type { PeerAddress } from "../../src/base/address.ts";
import { fromHex } from "../../src/base/bytes.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { startTunerDiscovery, type TunerDiscoveryDependencies } from "../../src/net/tuner-discovery.ts";
import { FakeClock } from "../engine/fake-clock.ts";

const ANY = fromHex("0002000c0104000000010204ffffffff4e507f35")!;
const NETWORK = {
  host: "192.168.1.5",
  bits: 24,
  interfaceName: "eth0",
  isLoopback: false,
  multicastAddress: "192.168.1.5",
};

/** Discovery on a fake socket; `ask` delivers a datagram and returns the host of the answer's recipient, if there is one. */
function discovery() {
  const sent: { text: string; to: PeerAddress }[] = [];
  const clock = new FakeClock();
  let receive: (bytes: Uint8Array, from: PeerAddress) => void = () => {};
  let isAllowed = true;
  let closed = 0;
  const bindUdp: TunerDiscoveryDependencies["runtime"]["net"]["bindUdp"] = async (address, received) => {
    receive = received;
    const send = (bytes: Uint8Array, to: PeerAddress) =>
      void sent.push({ text: Buffer.from(bytes).toString("latin1"), to });
    return { address, send, close: () => void closed++ };
  };
  const runtime = { clock, net: { bindUdp }, surroundings: { networks: () => [NETWORK] } };
  const stop = startTunerDiscovery({
    runtime: runtime as unknown as TunerDiscoveryDependencies["runtime"],
    ...{ tunerId: "1012345A", tunerCount: 4, httpPort: 6878, isAllowed: () => isAllowed, log: SILENT_LOG },
  });
  const ask = async (host: string, bytes = ANY) => {
    const before = sent.length;
    receive(bytes, { host, port: 40_000 });
    await new Promise((resolve) => setImmediate(resolve));
    return sent[before];
  };
  const allow = (value: boolean) => {
    isAllowed = value;
  };
  return { ask, clock, stop, allow, closed: () => closed };
}

test("startTunerDiscovery: answers its own network with its address there, and no other sender", async () => {
  const { ask, allow } = discovery();
  const answer = await ask("192.168.1.77");
  assert.equal(answer!.to.host, "192.168.1.77");
  assert.match(answer!.text, /http:\/\/192\.168\.1\.5:6878/);
  assert.equal(await ask("203.0.113.9"), undefined);
  assert.equal(await ask("192.168.1.77", ANY.slice(1)), undefined);
  allow(false);
  assert.equal(await ask("192.168.1.77"), undefined);
});

test("startTunerDiscovery: at most 20 answers a second, and none after it has stopped", async () => {
  const { ask, clock, stop, closed } = discovery();
  let answers = 0;
  for (let i = 0; i < 100; i++) if (await ask("192.168.1.77")) answers++;
  assert.equal(answers, 20);
  await clock.advance(1_000);
  assert.ok(await ask("192.168.1.77"));
  stop();
  assert.equal(closed(), 1);
});
