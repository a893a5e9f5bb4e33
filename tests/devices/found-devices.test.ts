import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT_LOG } from "../../src/base/log.ts";
import { deviceNetworks } from "../../src/devices/device-networks.ts";
import { FoundDevices } from "../../src/devices/found-devices.ts";
import { mdnsAnswer } from "../wire/mdns-answer.ts";
import { ETH, type FakeLan, fakeLan, rendererDescription, ssdpAnswer, TV } from "./fake-lan.ts";

const LOCATION = `http://${TV}:1400/d.xml`;

async function listed(devices: FoundDevices, { clock }: FakeLan) {
  const list = devices.list();
  await clock.advance(2_600);
  return list;
}

function withRenderer(lan: FakeLan, host = TV, location = LOCATION): void {
  lan.answers.set(1900, [{ host, bytes: ssdpAnswer(location) }]);
  lan.respond = () => ({ text: rendererDescription() });
}

test("FoundDevices: sends nothing until it is asked, then finds a renderer by its description", async () => {
  const lan = fakeLan();
  withRenderer(lan);
  const devices = new FoundDevices(lan.runtime, "", SILENT_LOG);
  await lan.clock.advance(60_000);
  assert.equal(lan.sent.length, 0);
  const [tv, ...others] = await listed(devices, lan);
  assert.equal(others.length, 0);
  assert.deepEqual(
    [tv!.id, tv!.kind, tv!.name, tv!.model, tv!.iconUrl],
    ["dlna:uuid:1", "dlna", "TV", "X1", `http://${TV}:1400/big.png`],
  );
  // Three rounds of SSDP and of multicast DNS, one description, and no socket stays open.
  assert.deepEqual(
    lan.sent.map(({ to }) => to.port),
    [1900, 5353, 1900, 5353, 1900, 5353],
  );
  assert.equal(lan.requests.length, 1);
  assert.equal(lan.open, 0);
});

test("FoundDevices: searches at most once in ten seconds, and forgets a device that does not answer for 35 s", async () => {
  const lan = fakeLan();
  withRenderer(lan);
  const devices = new FoundDevices(lan.runtime, "", SILENT_LOG);
  await listed(devices, lan);
  await listed(devices, lan);
  assert.equal(lan.sent.length, 6);
  lan.answers.clear();
  await lan.clock.advance(25_000);
  assert.equal((await devices.list()).length, 1);
  await lan.clock.advance(10_000);
  assert.equal((await listed(devices, lan)).length, 0);
  assert.equal(devices.find("dlna:uuid:1"), undefined);
});

test("FoundDevices: refuses descriptions and services that are not at the address that announced them", async () => {
  for (const location of [
    "http://192.168.1.1/d.xml",
    "https://192.168.1.77/d.xml",
    "http://127.0.0.1/d.xml",
    "http://tv.example/d.xml",
    `http://user@${TV}/`,
  ]) {
    const lan = fakeLan();
    withRenderer(lan, TV, location);
    assert.deepEqual(await listed(new FoundDevices(lan.runtime, "", SILENT_LOG), lan), [], location);
    assert.equal(lan.requests.length, 0, location);
  }
  const lan = fakeLan();
  withRenderer(lan);
  lan.respond = () => ({
    text: rendererDescription().replaceAll("<controlURL>", "<controlURL>http://192.168.1.1"),
  });
  assert.deepEqual(await listed(new FoundDevices(lan.runtime, "", SILENT_LOG), lan), []);
  const outside = fakeLan();
  withRenderer(outside, "203.0.113.9", "http://203.0.113.9/d.xml");
  assert.deepEqual(await listed(new FoundDevices(outside.runtime, "", SILENT_LOG), outside), []);
});

test("FoundDevices: one address cannot fill the list", async () => {
  const lan = fakeLan();
  lan.answers.set(
    1900,
    Array.from({ length: 15 }, (_, i) => ({ host: TV, bytes: ssdpAnswer(`http://${TV}/${i}.xml`) })),
  );
  lan.respond = ({ url }) => ({ text: rendererDescription("TV", "X", `uuid:${url.pathname}`) });
  assert.equal((await listed(new FoundDevices(lan.runtime, "", SILENT_LOG), lan)).length, 8);
});

test("FoundDevices: Kodi is found by multicast DNS, and its DLNA renderer is not listed twice", async () => {
  const lan = fakeLan();
  withRenderer(lan);
  lan.respond = () => ({ text: rendererDescription("Kodi", "Kodi") });
  const bytes = mdnsAnswer({
    type: "_xbmc-jsonrpc._tcp.local",
    instance: "Kodi (den)",
    port: 9090,
    address: TV,
  });
  lan.answers.set(5353, [{ host: TV, bytes }]);
  const devices = await listed(new FoundDevices(lan.runtime, "", SILENT_LOG), lan);
  assert.deepEqual(
    devices.map(({ id, name }) => [id, name]),
    [[`kodi:${TV}`, "Kodi (den)"]],
  );
});

test("deviceNetworks: private IPv4 networks, but containers, VPNs and loopback only if they are named", () => {
  const named = (interfaceName: string, host: string, part = {}) => ({
    ...ETH,
    ...{ interfaceName, host, multicastAddress: host },
    ...part,
  });
  const networks = [
    ETH,
    named("docker0", "172.17.0.1"),
    named("br-0123456789ab", "172.18.0.1"),
    named("br-lan", "192.168.2.1"),
    named("veth1", "10.1.0.1"),
    named("wg0", "10.2.0.1"),
    named("eth1", "203.0.113.5"),
    named("eth2", "10.3.0.1", { bits: 32 }),
    named("eth0", "fd00::1", { bits: 64 }),
    named("lo", "127.0.0.1", { isLoopback: true }),
  ];
  const names = (chosen: string) =>
    deviceNetworks(networks, chosen).map(({ interfaceName }) => interfaceName);
  assert.deepEqual(names(""), ["eth0", "br-lan"]);
  assert.deepEqual(names("wg0, 192.168.1.5"), ["eth0", "wg0"]);
  assert.deepEqual(names("lo"), ["lo"]);
  assert.deepEqual(names("eth1"), []);
});

test("FoundDevices: one sender that floods the search hides no other device", async () => {
  const lan = fakeLan();
  const flood = Array.from({ length: 2_000 }, (_, i) => ({
    host: "192.168.1.66",
    bytes: ssdpAnswer(`http://192.168.1.66:1400/${i}`),
  }));
  lan.answers.set(1900, [...flood, { host: TV, bytes: ssdpAnswer(LOCATION) }]);
  lan.respond = ({ url }) => (url.hostname === TV ? { text: rendererDescription() } : undefined);
  const devices = await listed(new FoundDevices(lan.runtime, "", SILENT_LOG), lan);
  assert.deepEqual(
    devices.map(({ host }) => host),
    [TV],
  );
  // 64 datagrams of the flood, of which four at a time lead to a request.
  assert.ok(lan.requests.length <= 3 * 5, `${lan.requests.length} requests`);
});

test("FoundDevices: another address cannot take the place of a listed device until that has vanished", async () => {
  const lan = fakeLan();
  withRenderer(lan);
  const devices = new FoundDevices(lan.runtime, "", SILENT_LOG);
  await listed(devices, lan);
  const thief = { host: "192.168.1.66", bytes: ssdpAnswer("http://192.168.1.66:1400/d.xml") };
  lan.answers.set(1900, [thief, { host: TV, bytes: ssdpAnswer(LOCATION) }]);
  await lan.clock.advance(10_000);
  await listed(devices, lan);
  assert.equal(devices.find("dlna:uuid:1")?.host, TV);
  lan.answers.set(1900, [thief]);
  await lan.clock.advance(40_000);
  await listed(devices, lan);
  assert.equal(devices.find("dlna:uuid:1")?.host, thief.host);
});
