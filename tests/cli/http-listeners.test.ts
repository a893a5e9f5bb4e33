import assert from "node:assert/strict";
import { test } from "node:test";
import { createAccessControl } from "../../src/accounts/access-control.ts";
import { SluiceError } from "../../src/base/errors.ts";
import { HttpListeners } from "../../src/cli/http-listeners.ts";
import type { HttpListener, RequestOrigin, ServeOptions } from "../../src/runtime/contract.ts";
import { readConfig } from "../../src/settings/config.ts";
import { settingsTable } from "../../src/settings/settings.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { MapStore } from "../library/map-store.ts";

const ME = { host: "192.168.1.2", port: 6878 };
const from = (host: string): RequestOrigin => ({
  remote: { host, port: 5 },
  local: host === "127.0.0.1" ? { host, port: 6878 } : ME,
  networks: [{ host: ME.host, bits: 24 }],
});
const CLIENTS = ["127.0.0.1", "192.168.1.9", "8.8.8.8", "192.168.1.3"];

async function listening(refused?: SluiceError) {
  const table = settingsTable({ dataDir: "/data" });
  const flags = new Map([["trusted-proxies", "192.168.1.3"]]);
  const config = readConfig(table, { flags, environment: {}, file: undefined });
  const access = await createAccessControl({ store: new MapStore(), randomBytes: (n) => new Uint8Array(n) });
  const open = new Set(CLIENTS);
  const hosts: string[] = [];
  const serve = async (_: unknown, { host, port }: ServeOptions): Promise<HttpListener> => {
    hosts.push(host);
    if (refused !== undefined && host === "::") throw refused;
    const disconnect = (mayStay: (origin: RequestOrigin) => boolean) => {
      for (const client of open) if (!mayStay(from(client))) open.delete(client);
    };
    return { address: { host, port }, disconnect, close: async () => {} };
  };
  const clock = new FakeClock();
  const runtime = { serve, lookup: async () => [], clock };
  const listeners = new HttpListeners(runtime, config, () => new Response(), access);
  return { listeners, access, open, hosts, clock, host: table.host.default };
}

test("HttpListeners: a change of a switch closes at once what it no longer admits, and a little later connections of proxies", async () => {
  const { listeners, access, open, clock, host } = await listening();
  const listener = await listeners.listen({ host, port: 6878 });
  await access.setAllowsIntranet(false);
  assert.deepEqual([...open], ["127.0.0.1", "192.168.1.3"]);
  // The response to the client that turned the switch may leave through the proxy.
  await clock.advance(500);
  assert.deepEqual([...open], ["127.0.0.1"]);
  for (const client of CLIENTS) open.add(client);
  await access.setAllowsRemote(true);
  await clock.advance(500);
  assert.deepEqual([...open], ["127.0.0.1", "8.8.8.8"]);
  await listener.close();
  await access.setAllowsRemote(false);
  assert.equal(open.size, 2);
});

test("HttpListeners: by default all networks, and IPv4 only on a system without IPv6", async () => {
  const both = await listening();
  assert.equal((await both.listeners.listen({ host: both.host, port: 1 })).address.host, "::");
  const without = await listening(new SluiceError("bad_parameter", "no IPv6"));
  assert.equal((await without.listeners.listen({ host: without.host, port: 1 })).address.host, "0.0.0.0");
  const busy = await listening(new SluiceError("port_busy", "in use"));
  await assert.rejects(busy.listeners.listen({ host: busy.host, port: 1 }), /Stop the other program/);
  assert.deepEqual(busy.hosts, ["::"]);
});
