import assert from "node:assert/strict";
import { test } from "node:test";
import type { AnsweredRequest, OperationsService, ReadinessCheck } from "../../routes/http/dependencies.ts";
import { readinessSchema } from "../../routes/operations.ts";
import { fakeApp } from "./client.ts";

const NEIGHBOUR = {
  host: "192.168.1.5:6878",
  origin: { remote: { host: "192.168.1.9", port: 50000 }, local: { host: "192.168.1.5", port: 6878 } },
};

function app(checks: readonly ReadinessCheck[] = []) {
  const answered: AnsweredRequest[] = [];
  const operations: OperationsService = {
    readiness: async () => checks,
    metrics: async () => "sluice_sessions 2\n",
    answered: (request) => void answered.push(request),
  };
  return { ...fakeApp({ dependencies: { operations } }), answered };
}

test("/healthz: answers while the process runs", async () => {
  const response = await app().call("/healthz", NEIGHBOUR);
  assert.equal(response.status, 200);
  assert.equal(await response.text(), "ok\n");
});

test("/readyz: 200 if every check passes, else 503, with each check", async () => {
  const good = { name: "disk", isOk: true, text: "5 GB are free" };
  const bad = { name: "database", isOk: false, text: "it does not answer" };
  const ready = await app([good]).call("/readyz");
  assert.equal(ready.status, 200);
  assert.deepEqual(readinessSchema.parse(await ready.json()), {
    status: "ready",
    checks: [{ name: "disk", ok: true, text: "5 GB are free" }],
  });
  const unready = await app([good, bad]).call("/readyz");
  assert.equal(unready.status, 503);
  assert.equal(readinessSchema.parse(await unready.json()).status, "not ready");
});

test("/metrics: this host reads it without a token, other hosts with it, pages of other sites never", async () => {
  const { call, library } = app();
  const local = await call("/metrics");
  assert.match(local.headers.get("content-type")!, /^text\/plain; version=0\.0\.4/);
  assert.match(await local.text(), /^sluice_sessions 2$/m);
  assert.equal((await call("/metrics", NEIGHBOUR)).status, 401);
  const authorization = `Bearer ${await library.access.token()}`;
  assert.equal((await call("/metrics", { ...NEIGHBOUR, headers: { authorization } })).status, 200);
  const page = { headers: { origin: "https://evil.example", "sec-fetch-site": "cross-site" } };
  assert.equal((await call("/metrics", page)).status, 403);
});

test("each request is reported without its query; the id of a proxy is returned, an invalid one is ignored", async () => {
  const { call, answered } = app();
  const id = { "x-request-id": "4bf92f35-77b3" };
  const response = await call("/healthz?token=secret", { headers: id });
  assert.equal(response.headers.get("x-request-id"), "4bf92f35-77b3");
  const other = await call("/nothing", { headers: { "x-request-id": "a b" } });
  assert.equal(other.headers.has("x-request-id"), false);
  assert.deepEqual(answered, [
    { method: "GET", path: "/healthz", requestId: "4bf92f35-77b3", status: 200 },
    { method: "GET", path: "/nothing", requestId: undefined, status: 404 },
  ]);
});
