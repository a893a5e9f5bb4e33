import assert from "node:assert/strict";
import { test } from "node:test";
import type { PeerAddress } from "../../src/base/address.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { announceMediaServer } from "../../src/devices/ssdp-announcer.ts";
import type { OwnNetwork, Runtime } from "../../src/runtime/contract.ts";
import { encodeSsdpSearch, SSDP_GROUP } from "../../src/wire/upnp/ssdp.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { ETH, TV } from "./fake-lan.ts";

const DOCKER: OwnNetwork = {
  ...ETH,
  ...{ interfaceName: "docker0", host: "172.17.0.1", multicastAddress: "172.17.0.1" },
};
const WLAN: OwnNetwork = {
  ...ETH,
  ...{ interfaceName: "wlan0", host: "192.168.2.5", multicastAddress: "192.168.2.5" },
};

/** Announces on these networks; a search is delivered to every socket, as systems do. */
async function announced(networks: readonly OwnNetwork[], interfaces = "") {
  const clock = new FakeClock();
  const sent: { from: string; to: PeerAddress; text: string }[] = [];
  const sockets = new Map<string, (bytes: Uint8Array, from: PeerAddress) => void>();
  const state = { isAllowed: true, networks };
  const net = {
    async bindUdp(
      address: PeerAddress,
      received: (bytes: Uint8Array, from: PeerAddress) => void,
      { multicast }: { multicast: { networkAddress: string } },
    ) {
      const at = multicast.networkAddress;
      sockets.set(at, received);
      const send = (bytes: Uint8Array, to: PeerAddress) =>
        void sent.push({ from: at, to, text: Buffer.from(bytes).toString("latin1") });
      return { address, send, close: () => void sockets.delete(at) };
    },
  };
  const stop = announceMediaServer({
    runtime: { clock, net, surroundings: { networks: () => state.networks } } as unknown as Runtime,
    ...{ interfaces, udn: "uuid:1", isAllowed: () => state.isAllowed, log: SILENT_LOG },
    locationAt: (host) => `http://${host}:6878/dlna/description.xml`,
  });
  await clock.advance(0);
  const search = (target: string, host: string) => {
    const before = sent.length;
    for (const received of sockets.values())
      received(encodeSsdpSearch(target, SSDP_GROUP), { host, port: 50_000 });
    return sent.slice(before);
  };
  return { clock, sent, sockets, state, stop, search };
}

test("announceMediaServer: announces five targets on chosen networks only, and says goodbye", async () => {
  const { sent, sockets, stop } = await announced([ETH, DOCKER, WLAN], "wlan0");
  assert.deepEqual([...new Set(sent.map(({ from }) => from))], ["192.168.2.5"]);
  assert.equal(sent.length, 5);
  assert.ok(sent.every(({ to, text }) => to.host === SSDP_GROUP && text.includes("NTS: ssdp:alive")));
  assert.ok(
    sent.every(({ text }) => text.includes("LOCATION: http://192.168.2.5:6878/dlna/description.xml\r\n")),
  );
  stop();
  assert.deepEqual(
    sent.slice(5).map(({ text }) => text.includes("NTS: ssdp:byebye") && !text.includes("LOCATION")),
    Array(5).fill(true),
  );
  assert.equal(sockets.size, 0);
});

test("announceMediaServer: answers a search from the network of its sender, with the address there", async () => {
  const { search } = await announced([ETH, WLAN, DOCKER]);
  const answers = search("urn:schemas-upnp-org:device:MediaServer:1", TV);
  assert.equal(answers.length, 1);
  assert.deepEqual([answers[0]!.from, answers[0]!.to.host], [ETH.host, TV]);
  assert.match(answers[0]!.text, /LOCATION: http:\/\/192\.168\.1\.5:6878\//);
  assert.equal(search("ssdp:all", TV).length, 5);
  assert.equal(search("urn:schemas-upnp-org:device:MediaRenderer:1", TV).length, 0);
  assert.equal(search("ssdp:all", "172.17.0.2").length, 0);
  assert.equal(search("ssdp:all", "203.0.113.9").length, 0);
});

test("announceMediaServer: is silent while the network has no access, repeats itself, and limits its answers", async () => {
  const { clock, sent, search, state } = await announced([ETH]);
  let answers = 0;
  for (let i = 0; i < 100; i++) answers += search("upnp:rootdevice", TV).length;
  assert.equal(answers, 20);
  sent.length = 0;
  await clock.advance(600_000);
  assert.equal(sent.length, 5);
  state.isAllowed = false;
  assert.equal(search("ssdp:all", TV).length, 0);
  await clock.advance(600_000);
  assert.equal(sent.length, 5);
});

test("announceMediaServer: follows networks that come and go", async () => {
  const { clock, sockets, state } = await announced([ETH]);
  state.networks = [WLAN];
  await clock.advance(30_000);
  assert.deepEqual([...sockets.keys()], [WLAN.host]);
});
