import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes } from "../../src/base/bytes.ts";
import type { Log, LogFields } from "../../src/base/log.ts";
import { RouterError } from "../../src/net/port-mapping/contract.ts";
import { findRouter } from "../../src/net/port-mapping/find-router.ts";
import { type PortMapping, startPortMapping } from "../../src/net/port-mapping/port-mapping.ts";
import { descriptionUrl, serviceEndpoints } from "../../src/net/port-mapping/upnp-urls.ts";
import type { OwnNetwork } from "../../src/runtime/contract.ts";
import { FakeRouter, OWN, type RouterBehavior } from "./fake-router.ts";

const MINUTE = 60_000;

/** A log that records messages of `info` and above. */
function lineLog(): Log & { readonly lines: string[] } {
  const lines: string[] = [];
  const keep = (message: string, fields: LogFields = {}) => {
    const values = Object.entries(fields).map(([name, value]) => `${name}=${value}`);
    lines.push([message, ...values].join(" "));
  };
  const log = { lines, error: keep, warn: keep, info: keep, debug() {}, named: () => log };
  return log;
}

async function start(behavior: Partial<RouterBehavior>, change: (router: FakeRouter) => void = () => {}) {
  const router = new FakeRouter();
  Object.assign(router.behavior, behavior);
  change(router);
  const log = lineLog();
  const mapping = startPortMapping({
    ...router.parts,
    log,
    requests: [
      { protocol: "tcp", internalPort: 6881 },
      { protocol: "udp", internalPort: 6881 },
    ],
    mayUse: () => true,
  });
  // Enough for the timeouts of PCP and NAT-PMP and a UPnP search.
  await router.clock.advance(10_000);
  return { router, mapping, log };
}

/** Closes `mapping`; the clock must advance if the router does not respond. */
async function end(mapping: PortMapping, router: FakeRouter): Promise<void> {
  const closed = mapping.close();
  await router.clock.advance(5_000);
  await closed;
  assert.equal(router.clock.waiting, 0, "no timer is left");
  assert.equal(router.openSockets, 0, "no socket is left");
}

const PROTOCOLS: readonly [behavior: Partial<RouterBehavior>, by: string][] = [
  [{ pcp: true, natPmp: true, upnp: 2 }, "PCP"],
  [{ natPmp: true, upnp: 1 }, "NAT-PMP"],
  [{ upnp: 1 }, "UPnP"],
  [{ upnp: 2 }, "UPnP"],
];
for (const [behavior, by] of PROTOCOLS) {
  test(`startPortMapping: maps TCP and UDP by ${by} in a router with ${JSON.stringify(behavior)}, and deletes the mappings at the end`, async () => {
    const { router, mapping, log } = await start(behavior);
    assert.deepEqual([...router.mapped.keys()], ["tcp 6881", "udp 6881"]);
    assert.equal(mapping.externalPort("tcp"), 6881);
    const { state, externalAddress, externalPort, by: protocol, router: at, problem } = mapping.figures();
    assert.deepEqual(
      { state, externalAddress, externalPort, protocol, at, problem },
      {
        state: "mapped",
        externalAddress: "93.184.216.1",
        externalPort: 6881,
        protocol: by,
        at: "192.168.1.1",
        problem: undefined,
      },
    );
    assert.equal(log.lines.length, 1);
    assert.match(log.lines[0]!, /^peer port mapped by the router at=93\.184\.216\.1:6881 by=/);
    await end(mapping, router);
    assert.equal(router.mapped.size, 0);
  });
}

test("startPortMapping: renews every five minutes without logging", async () => {
  const { router, mapping, log } = await start({ natPmp: true });
  const before = router.asked.length;
  await router.clock.advance(20 * MINUTE);
  const renewals = router.asked.slice(before).filter((asked) => asked === "NAT-PMP tcp 3600").length;
  assert.equal(renewals, 4);
  assert.equal(log.lines.length, 1);
  await end(mapping, router);
});

test("startPortMapping: after a restart of the router the ports are mapped within five minutes, immediately if it announces the restart", async () => {
  const { router, mapping, log } = await start({ pcp: true });
  await router.clock.advance(30 * MINUTE);
  router.restart();
  await router.clock.advance(5 * MINUTE);
  assert.equal(router.mapped.size, 2);
  assert.match(log.lines[1]!, /has restarted/);
  router.restart();
  router.announce!();
  await router.clock.advance(100);
  assert.equal(router.mapped.size, 2);
  const asked = router.asked.length;
  for (let i = 0; i < 100; i++) router.announce!();
  await router.clock.advance(100);
  assert.equal(router.asked.length, asked, "repeated announcements do not each cause a round");
  await end(mapping, router);
});

test("startPortMapping: logs a changed external address once", async () => {
  const { router, mapping, log } = await start({ upnp: 1 });
  router.behavior.externalAddress = "93.184.216.9";
  await router.clock.advance(11 * MINUTE);
  assert.equal(mapping.figures().externalAddress, "93.184.216.9");
  assert.equal(log.lines.filter((line) => line.includes("93.184.216.9:6881")).length, 1);
  await end(mapping, router);
});

for (const [what, behavior] of [
  ["NAT-PMP assigns another", { natPmp: true }],
  ["UPnP IGD 1 refuses it", { upnp: 1 }],
  ["UPnP IGD 2 chooses another", { upnp: 2 }],
] as const) {
  test(`startPortMapping: the port is taken: ${what}, the same for TCP and UDP`, async () => {
    const { router, mapping } = await start({ ...behavior, taken: new Set([6881]) });
    const port = mapping.externalPort("tcp")!;
    assert.notEqual(port, 6881);
    assert.equal(mapping.externalPort("udp"), port);
    assert.deepEqual([...router.mapped.keys()], [`tcp ${port}`, `udp ${port}`]);
    await router.clock.advance(30 * MINUTE);
    assert.equal(mapping.externalPort("tcp"), port, "the announced port stays");
    await end(mapping, router);
    assert.equal(router.mapped.size, 0);
  });
}

for (const [version, isCalled] of [
  [1, false],
  [2, true],
] as const) {
  test(`startPortMapping: UPnP IGD ${version} is ${isCalled ? "" : "not "}asked to choose a port`, async () => {
    const { router, mapping } = await start({ upnp: version, taken: new Set([6881]) });
    assert.equal(
      router.asked.some((line) => line.startsWith("AddAnyPortMapping")),
      isCalled,
    );
    await end(mapping, router);
  });
}

test("startPortMapping: a port taken for UDP only is replaced by one that is free for both", async () => {
  for (const behavior of [{ natPmp: true }, { upnp: 1 as const }, { upnp: 2 as const }]) {
    const { router, mapping } = await start({ ...behavior, takenUdp: new Set([6881]) });
    const port = mapping.externalPort("tcp")!;
    assert.deepEqual([...router.mapped.keys()], [`tcp ${port}`, `udp ${port}`]);
    await end(mapping, router);
    assert.equal(router.mapped.size, 0);
  }
});

for (const behavior of [{ pcp: true }, { natPmp: true }]) {
  test(`startPortMapping: forged responses are ignored (${Object.keys(behavior)})`, async () => {
    const { router, mapping } = await start({ ...behavior, isOvertaken: true });
    assert.equal(mapping.externalPort("tcp"), 6881);
    assert.equal(mapping.externalPort("udp"), 6881);
    await end(mapping, router);
  });
}

test("startPortMapping: a router without lease support gets permanent mappings, which are deleted at the end", async () => {
  const { router, mapping } = await start({ upnp: 1, permanentOnly: true });
  assert.deepEqual(
    [...router.mapped.values()],
    ["tcp 6881 for 0 to 192.168.1.2", "udp 6881 for 0 to 192.168.1.2"],
  );
  await end(mapping, router);
  assert.equal(router.mapped.size, 0);
});

test("startPortMapping: mappings in progress at close are deleted", async () => {
  const router = new FakeRouter();
  router.behavior.pcp = true;
  const mapping = startPortMapping({
    ...router.parts,
    log: lineLog(),
    requests: Array.from({ length: 20 }, (_, i) => ({ protocol: "tcp" as const, internalPort: 7000 + i })),
    mayUse: () => true,
  });
  for (let turn = 0; turn < 10_000 && router.mapped.size === 0; turn++) await Promise.resolve();
  assert.ok(router.mapped.size < 20);
  await end(mapping, router);
  assert.equal(router.mapped.size, 0);
});

test("startPortMapping: a refusal is logged once, and retried at growing intervals", async () => {
  const { router, mapping, log } = await start({ natPmp: true, refuses: true });
  assert.deepEqual(log.lines, [
    "the router does not map the peer port: peers cannot connect reason=port mapping is disabled on the router",
  ]);
  assert.equal(mapping.figures().state, "failed");
  const asked = () => router.asked.filter((text) => text === "NAT-PMP tcp 3600").length;
  await router.clock.advance(60 * MINUTE);
  const inFirstHour = asked();
  assert.ok(inFirstHour >= 4 && inFirstHour <= 8, `asked ${inFirstHour} times in an hour`);
  await router.clock.advance(3 * 60 * MINUTE);
  assert.ok(asked() - inFirstHour <= 7, `${asked() - inFirstHour} times in three more`);
  assert.equal(log.lines.length, 1);
  router.behavior.refuses = false;
  await router.clock.advance(31 * MINUTE);
  assert.equal(mapping.figures().state, "mapped");
  await end(mapping, router);
});

test("startPortMapping: a silent router delays neither the start nor the end", async () => {
  const { router, mapping } = await start({ pcp: true, isSilent: true });
  assert.equal(mapping.figures().problem, "no router responds to a UPnP search");
  await end(mapping, router);
  const responding = await start({ pcp: true });
  responding.router.behavior.isSilent = true;
  await end(responding.mapping, responding.router);
});

test("startPortMapping: after a change of network the new router is asked immediately", async () => {
  const { router, mapping } = await start({ natPmp: true }, (before) => {
    before.gateway = "10.0.0.1";
    before.networks = [{ ...OWN, host: "10.0.0.2" }];
  });
  assert.equal(mapping.figures().state, "failed");
  router.gateway = "192.168.1.1";
  router.networks = [OWN];
  await router.clock.advance(35_000);
  assert.equal(mapping.figures().state, "mapped");
  router.networks = [];
  await router.clock.advance(5 * MINUTE);
  assert.equal(mapping.externalPort("tcp"), undefined);
  await end(mapping, router);
});

test("startPortMapping: reports a router behind another router", async () => {
  const { router, mapping, log } = await start({ pcp: true, externalAddress: "100.64.3.7" });
  assert.equal(mapping.figures().isBehindAnother, true);
  assert.match(log.lines[1]!, /behind another router/);
  await end(mapping, router);
});

const ELSEWHERE: readonly [what: string, change: Partial<RouterBehavior>][] = [
  ["a description elsewhere", { location: "http://192.168.1.66:5000/root.xml" }],
  ["a description on the Internet", { location: "http://93.184.216.34/root.xml" }],
  ["a description with a host name", { location: "http://router.lan:5000/root.xml" }],
  ["a description in a file", { location: "file:///etc/passwd" }],
  ["a description on this machine", { location: "http://127.0.0.1:6878/root.xml" }],
];
for (const [what, change] of ELSEWHERE) {
  test(`startPortMapping: ${what} is never requested`, async () => {
    const { router, mapping } = await start({ upnp: 1, ...change });
    assert.deepEqual(router.called, []);
    await end(mapping, router);
  });
}

test("startPortMapping: an endless description is rejected", async () => {
  const { router, mapping } = await start({ upnp: 1, isEndless: true });
  assert.match(mapping.figures().problem ?? "", /exceeds 65536 bytes/);
  await end(mapping, router);
});

test("startPortMapping: rejects a description that is too large or malformed", async () => {
  for (const description of [`<root>${"<a/>".repeat(30_000)}</root>`, "<html></html>", "<root/>"]) {
    const { router, mapping } = await start({ upnp: 1, description });
    assert.equal(router.called.filter((url) => !url.endsWith("/root.xml")).length, 0);
    assert.equal(mapping.figures().state, "failed");
    await end(mapping, router);
  }
});

const TYPE = "urn:schemas-upnp-org:service:WANIPConnection:1";
const CONTROLS: readonly [controlUrl: string, baseUrl: string | undefined, expected: string | undefined][] = [
  ["/ctl", undefined, "http://192.168.1.1:5000/ctl"],
  ["ctl/ip", undefined, "http://192.168.1.1:5000/a/ctl/ip"],
  ["/ctl", "http://192.168.1.1:80/", "http://192.168.1.1/ctl"],
  ["http://192.168.1.1:2869/ctl", undefined, "http://192.168.1.1:2869/ctl"],
  ["http://192.168.1.9/ctl", undefined, undefined],
  ["//evil.example/ctl", undefined, undefined],
  ["/ctl", "http://evil.example/", "http://192.168.1.1:5000/ctl"],
  ["http://u:p@192.168.1.1/ctl", undefined, undefined],
  ["https://192.168.1.1/ctl", undefined, undefined],
];
for (const [controlUrl, baseUrl, expected] of CONTROLS) {
  test(`serviceEndpoints: ${controlUrl} with base ${baseUrl} becomes ${expected}`, () => {
    const location = new URL("http://192.168.1.1:5000/a/root.xml");
    const services = serviceEndpoints(
      { name: "", baseUrl, services: [{ type: TYPE, controlUrl }] },
      location,
    );
    assert.deepEqual(
      services.map(({ url }) => url.href),
      expected === undefined ? [] : [expected],
    );
  });
}

test("descriptionUrl: accepts only the router; if the router is guessed, any host of its network", () => {
  const answer = (host: string) => latin1Bytes(`HTTP/1.1 200 OK\r\nLOCATION: http://${host}:5000/x\r\n\r\n`);
  const location = { router: "192.168.1.1", isGuessed: false, own: OWN };
  const at = (host: string, isGuessed: boolean) =>
    descriptionUrl(answer(host), { host, port: 1900 }, { ...location, isGuessed })?.href;
  assert.equal(at("192.168.1.1", false), "http://192.168.1.1:5000/x");
  assert.equal(at("192.168.1.9", false), undefined);
  assert.equal(at("192.168.1.9", true), "http://192.168.1.9:5000/x");
  assert.equal(at("192.168.2.9", true), undefined);
  assert.equal(at("93.184.216.34", true), undefined);
  const publicRouter = { ...location, router: "93.184.216.34" };
  const from = { host: "93.184.216.34", port: 1900 };
  assert.equal(descriptionUrl(answer(from.host), from, publicRouter), undefined);
});

const own = (host: string, bits = 24): OwnNetwork => ({ ...OWN, host, bits });
const LOCATIONS: readonly [
  what: string,
  gateway: string | "none" | undefined,
  networks: readonly OwnNetwork[],
  location: string,
][] = [
  [
    "reported by the system",
    "192.168.1.254",
    [own("10.0.0.2"), own("192.168.1.2")],
    "192.168.1.254 of 192.168.1.2",
  ],
  ["guessed", undefined, [own("192.168.1.130", 25)], "192.168.1.129 of 192.168.1.130, guessed"],
  ["no router", "none", [own("192.168.1.2")], "unneeded"],
  ["a router outside the local networks", "10.9.0.1", [own("192.168.1.2")], "unneeded"],
  ["a public address", "93.184.216.1", [own("93.184.216.34")], "unneeded"],
  ["only loopback and IPv6", undefined, [own("127.0.0.1", 8), own("fd00::2", 64)], "unneeded"],
];
for (const [what, gateway, networks, expected] of LOCATIONS) {
  test(`findRouter: ${what}: ${expected}`, async () => {
    const surroundings = { networks: () => networks, gateway: async () => gateway, run: async () => "" };
    const result = await findRouter(surroundings, () => true).then(
      (place) => `${place.router} of ${place.own.host}${place.isGuessed ? ", guessed" : ""}`,
      (error: unknown) => (error instanceof RouterError ? error.kind : String(error)),
    );
    assert.equal(result, expected);
  });
}
