import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import type { PeerAddress } from "../../src/base/address.ts";
import { familyOf } from "../../src/base/address.ts";
import { SluiceError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import type { LocalFinderDependencies } from "../../src/net/lsd.ts";
import { isLocalNetwork, startLocalFinder } from "../../src/net/lsd.ts";
import type { OwnNetwork, UdpOptions } from "../../src/runtime/contract.ts";
import { decodeLsdAnnounce, encodeLsdAnnounce, LSD_GROUPS, LSD_PORT } from "../../src/wire/lsd.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";
import { keepingLog } from "../engine/parts.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { seededRandom } from "../seeded-random.ts";

const { test: multicastTest } = await testsThatNeed("multicast");

const A = "a1".repeat(20) as Infohash;

function own(host: string, bits: number, interfaceName: string, isLoopback = false): OwnNetwork {
  const multicastAddress = familyOf(host) === 4 ? host : `::%${interfaceName}`;
  return { host, bits, interfaceName, isLoopback, multicastAddress };
}

const CABLE = own("192.168.1.2", 24, "eth0");
const RADIO = own("10.1.0.2", 16, "wlan0");
const CABLE6 = own("fd00:1::2", 64, "eth0");

/** A runtime with changeable networks that records sent datagrams. */
function fakeMachine(networks: OwnNetwork[]) {
  const clock = new FakeClock();
  const sent: { readonly by: string; readonly to: PeerAddress; readonly bytes: Uint8Array }[] = [];
  const open = new Map<string, (bytes: Uint8Array, from: PeerAddress) => void>();
  const parts: LocalFinderDependencies = {
    runtime: {
      clock,
      net: {
        ...runtime.net,
        async bindUdp(address, received, { multicast }: UdpOptions = {}) {
          const by = multicast!.networkAddress!;
          if (by === "10.9.9.9") throw new SluiceError("port_busy", "another program has it");
          assert.equal(multicast!.group, LSD_GROUPS[familyOf(by)]);
          assert.equal(address.port, LSD_PORT);
          open.set(by, received);
          return {
            address,
            send: (bytes, to) => void sent.push({ by, to, bytes }),
            close: () => void open.delete(by),
          };
        },
      },
      surroundings: { ...runtime.surroundings, networks: () => networks },
      randomBytes: (length) => new Uint8Array(length).fill(7),
    },
    mayUse: (network) => isLocalNetwork(network, ""),
    random: seededRandom(1),
    log: SILENT_LOG,
  };
  return { clock, sent, open, parts, networks };
}

const neighbourSays = (port = 7000) => encodeLsdAnnounce(4, { port, infohashes: [A], cookie: "other" });

function search(found: string[], announces = true) {
  return {
    infohash: A,
    announces,
    peers: () => 0,
    found: (addresses: readonly PeerAddress[], origin: string) =>
      void found.push(...addresses.map(({ host, port }) => `${origin} ${host}:${port}`)),
  };
}

test("startLocalFinder: announces on every local network, each in its own group", async () => {
  const { clock, sent, parts } = fakeMachine([CABLE, RADIO, CABLE6, own("127.0.0.1", 8, "lo", true)]);
  const finder = startLocalFinder(parts);
  finder.opened(6881);
  finder.join(search([]));
  await clock.advance(1_000);
  assert.deepEqual(
    sent.map(({ by, to }) => `${by} > ${to.host}:${to.port}`),
    [
      "192.168.1.2 > 239.192.152.143:6771",
      "10.1.0.2 > 239.192.152.143:6771",
      "::%eth0 > ff15::efc0:988f:6771",
    ],
  );
  assert.deepEqual(decodeLsdAnnounce(sent[0]!.bytes), {
    port: 6881,
    infohashes: [A],
    cookie: "07070707",
  });
  assert.deepEqual(finder.figures(), { networks: 3, announcesSent: 1, announcesReceived: 0 });
  finder.close();
  assert.equal(clock.waiting, 0);
});

test("startLocalFinder: accepts announcements only from hosts of the network they arrive on", async () => {
  const { open, parts } = fakeMachine([CABLE, RADIO]);
  const found: string[] = [];
  const finder = startLocalFinder(parts);
  await settled();
  const leave = finder.join(search(found, false));
  open.get("192.168.1.2")!(neighbourSays(), { host: "192.168.1.9", port: 6771 });
  open.get("192.168.1.2")!(neighbourSays(), { host: "10.1.0.9", port: 6771 });
  open.get("192.168.1.2")!(neighbourSays(), { host: "203.0.113.9", port: 6771 });
  open.get("192.168.1.2")!(new Uint8Array([1, 2, 3]), { host: "192.168.1.9", port: 6771 });
  assert.deepEqual(found, ["lsd 192.168.1.9:7000"]);
  leave();
  leave();
  open.get("192.168.1.2")!(neighbourSays(), { host: "192.168.1.9", port: 6771 });
  assert.equal(found.length, 1);
  finder.close();
});

test("startLocalFinder: announces on a new network, leaves a removed one, and tolerates a port in use", async () => {
  const networks = [CABLE, own("10.9.9.9", 24, "eth9")];
  const { clock, sent, open, parts } = fakeMachine(networks);
  const finder = startLocalFinder(parts);
  finder.opened(6881);
  finder.join(search([]));
  await clock.advance(25_000);
  const before = sent.length;
  networks.splice(0, 1, RADIO);
  await clock.advance(15_000);
  assert.deepEqual([...open.keys()], ["10.1.0.2"]);
  assert.ok(sent.length > before);
  for (const { by } of sent.slice(before)) assert.equal(by, "10.1.0.2");
  finder.close();
  assert.deepEqual([...open.keys()], []);
});

const PLACES: readonly [network: OwnNetwork, bind: string, isUsed: boolean][] = [
  [CABLE, "", true],
  [CABLE, "eth0", true],
  [CABLE, "192.168.1.2", true],
  [CABLE, "wlan0", false],
  [RADIO, "192.168.1.2", false],
  [CABLE6, "eth0", true],
  [own("127.0.0.1", 8, "lo", true), "", false],
  [own("fe80::1", 64, "eth0"), "", false],
  [own("10.8.0.2", 32, "tun0"), "", false],
  [own("2001:db8::1", 128, "tun0"), "", false],
];
for (const [network, bind, isUsed] of PLACES) {
  test(`isLocalNetwork: ${network.host}/${network.bits}, bound to ${bind || "nothing"}: ${isUsed}`, () =>
    assert.equal(isLocalNetwork(network, bind), isUsed));
}

multicastTest(
  "startLocalFinder: two of one machine find each other by real multicast",
  {
    timeout: 60_000,
  },
  async (context) => {
    const parts = { runtime, mayUse: ({ host }: OwnNetwork) => host === "127.0.0.1", log: keepingLog() };
    const finders = [1, 2].map((seed) => startLocalFinder({ ...parts, random: seededRandom(seed) }));
    context.after(() => {
      for (const finder of finders) finder.close();
    });
    const met = finders.map((finder, i) => {
      finder.opened(7001 + i);
      return new Promise<readonly PeerAddress[]>((found) => {
        finder.join({ infohash: A, announces: true, peers: () => 0, found });
      });
    });
    assert.deepEqual(await Promise.all(met), [
      [{ host: "127.0.0.1", port: 7002 }],
      [{ host: "127.0.0.1", port: 7001 }],
    ]);
  },
);
