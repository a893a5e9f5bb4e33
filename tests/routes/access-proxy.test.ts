import assert from "node:assert/strict";
import { test } from "node:test";
import { parseNetwork } from "../../src/base/network.ts";
import { fakeApp } from "./client.ts";

const TRUSTED = ["127.0.0.1", "10.5.0.0/24"].map((text) => parseNetwork(text)!);
const NETWORKS = [
  { host: "127.0.0.1", bits: 8 },
  { host: "192.168.1.2", bits: 24 },
];

/** Sends a request over a connection from `from`; resolves to the status and the Location of the session. */
async function ask(from: string, headers: Record<string, string>, trustedProxies = TRUSTED) {
  const local = { host: from.startsWith("127.") ? "127.0.0.1" : "10.5.0.9", port: 6878 };
  const origin = { remote: { host: from, port: 1 }, local, networks: NETWORKS };
  const dependencies = { allowedHosts: ["tv.example"], access: { trustedProxies } };
  const host = headers.host ?? `${local.host}:6878`;
  const { call } = fakeApp({ dependencies });
  const answer = await call(`/ace/manifest.m3u8?infohash=${"a".repeat(40)}`, { origin, host, headers });
  return { status: answer.status, location: answer.headers.get("location") ?? "" };
}

const FORWARDED: readonly (readonly [
  name: string,
  from: string,
  value: string | undefined,
  isIn: boolean,
])[] = [
  ["a neighbour of this machine", "127.0.0.1", "192.168.1.7", true],
  ["this machine's own address", "127.0.0.1", "192.168.1.2", true],
  ["a client on the Internet", "127.0.0.1", "8.8.8.8", false],
  ["a private address of another network", "127.0.0.1", "192.168.2.7", false],
  ["a forged neighbour before the real client", "127.0.0.1", "192.168.1.7, 8.8.8.8", false],
  ["forged loopback before the real client", "127.0.0.1", "127.0.0.1, 8.8.8.8", false],
  ["a second trusted proxy", "127.0.0.1", "192.168.1.7, 10.5.0.3", true],
  ["a second trusted proxy for the Internet", "127.0.0.1", "192.168.1.7, 8.8.8.8, 10.5.0.3", false],
  ["a neighbour with a port", "127.0.0.1", "192.168.1.7:4711", true],
  ["a mapped neighbour", "127.0.0.1", "::ffff:192.168.1.7", true],
  ["an IPv6 address with a port", "127.0.0.1", "[2001:db8::1]:4711", false],
  ["an IPv6 address near ::", "127.0.0.1", "::5", false],
  ["no header", "127.0.0.1", undefined, true],
  ["an invalid address", "127.0.0.1", "unknown", false],
  ["an empty list", "127.0.0.1", "", false],
  ["an octal address", "127.0.0.1", "0300.0250.1.7", false],
  ["a list that is too long", "127.0.0.1", Array(30).fill("127.0.0.1").join(","), false],
  ["a neighbour, reported by a proxy in another network", "10.5.0.3", "192.168.1.7", true],
  ["loopback, reported by an untrusted proxy", "10.5.1.3", "127.0.0.1", false],
  ["a neighbour, reported by an untrusted proxy", "8.8.8.8", "192.168.1.7", false],
];

for (const [name, from, value, isIn] of FORWARDED) {
  test(`X-Forwarded-For: ${name} is ${isIn ? "admitted" : "refused"}`, async () => {
    const headers: Record<string, string> = value === undefined ? {} : { "x-forwarded-for": value };
    assert.equal((await ask(from, headers)).status, isIn ? 302 : 403);
  });
}

test("X-Forwarded-*: without a trusted proxy all of them are ignored", async () => {
  const headers = {
    "x-forwarded-for": "8.8.8.8",
    "x-forwarded-host": "evil.example",
    "x-forwarded-proto": "https",
  };
  const { status, location } = await ask("127.0.0.1", headers, []);
  assert.equal(status, 302);
  assert.match(location, /^http:\/\/127\.0\.0\.1:6878\/ace\/m\//);
});

test("X-Forwarded-Host and -Proto: a trusted proxy sets the base of URLs, and both hosts are checked", async () => {
  const seen = { "x-forwarded-for": "192.168.1.7", "x-forwarded-proto": "https" };
  const through = await ask("127.0.0.1", { ...seen, "x-forwarded-host": "tv.example" });
  assert.match(through.location, /^https:\/\/tv\.example\/ace\/m\//);
  assert.equal((await ask("127.0.0.1", { ...seen, "x-forwarded-host": "evil.example" })).status, 421);
  assert.equal((await ask("127.0.0.1", { ...seen, host: "evil.example" })).status, 421);
  assert.match(
    (await ask("127.0.0.1", { ...seen, host: "tv.example" })).location,
    /^https:\/\/tv\.example\//,
  );
  const odd = await ask("127.0.0.1", { ...seen, "x-forwarded-proto": "javascript" });
  assert.match(odd.location, /^http:\/\/127/);
});

test("X-Forwarded-Prefix, X-Ingress-Path: URLs begin with a valid prefix of a trusted proxy only", async () => {
  const path = async (from: string, headers: Record<string, string>, trusted = TRUSTED) =>
    new URL((await ask(from, headers, trusted)).location).pathname.replace(/\/ace\/.*/, "");
  const client = { "x-forwarded-for": "192.168.1.7" };
  assert.equal(await path("127.0.0.1", { ...client, "x-forwarded-prefix": "/sluice/" }), "/sluice");
  const ingress = "/api/hassio_ingress/a-b_C9";
  assert.equal(await path("127.0.0.1", { ...client, "x-ingress-path": ingress }), ingress);
  for (const prefix of ["//evil.example", "sluice", '/a"b', "/a/../b?", `/${"a".repeat(300)}`])
    assert.equal(await path("127.0.0.1", { ...client, "x-forwarded-prefix": prefix }), "", prefix);
  assert.equal(await path("127.0.0.1", { "x-forwarded-prefix": "/sluice" }, []), "");
});
