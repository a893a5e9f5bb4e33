import assert from "node:assert/strict";
import { test } from "node:test";
import { Hono } from "hono";
import { clusterMiddleware } from "../../routes/cluster.ts";
import { engineMiddleware } from "../../routes/cluster-proxy.ts";
import type { RouteEnv } from "../../routes/http/dependencies.ts";
import { SluiceError } from "../../src/base/errors.ts";
import type { Cluster, ClusterEngine, EngineProxy } from "../../src/cluster/cluster-contract.ts";
import { LOCAL } from "./client.ts";

const INFOHASH = "ab".repeat(20);
const ADDRESS = "http://10.0.0.2:6878";

/** Routes of an engine in a cluster whose other engine answers as `request` does. */
function site(request: EngineProxy["request"]) {
  const facts = { isDraining: false, players: 0, contents: 0, version: "1" };
  const engines: ClusterEngine[] = [
    { ...facts, id: "one", address: "http://10.0.0.1:6878", isThis: true },
    { ...facts, id: "two", address: ADDRESS, isThis: false },
  ];
  const cluster = { engines: () => engines, place: async () => ADDRESS } as unknown as Cluster;
  const app = new Hono<RouteEnv>();
  app.use("/ace/getstream", clusterMiddleware(cluster, { request }));
  app.use("/engine/*", engineMiddleware(cluster, { request }));
  app.get("/ace/getstream", (c) => c.text("played here"));
  const call = (path: string, { headers, ...init }: RequestInit = {}) =>
    app.request(
      `http://127.0.0.1:6878${path}`,
      { ...init, headers: { host: "127.0.0.1:6878", ...headers } as Record<string, string> },
      { origin: LOCAL },
    );
  return { call };
}

test("/engine/<id>/: an answer without a body is passed on, and the connection to the engine is closed", async () => {
  let status = 304;
  let cancelled = 0;
  const { call } = site(async () => {
    const body = new ReadableStream<Uint8Array>({ cancel: () => void cancelled++ });
    return { status, headers: new Headers({ etag: '"a"' }), body };
  });
  const path = `/engine/two/files/${INFOHASH}/0/film.mkv`;
  const held = await call(path, { headers: { "if-none-match": '"a"' } });
  assert.deepEqual([held.status, held.headers.get("etag"), cancelled], [304, '"a"', 1]);
  status = 200;
  const head = await call(path, { method: "HEAD" });
  assert.deepEqual([head.status, head.body, cancelled], [200, null, 2]);
  const whole = await call(path);
  assert.deepEqual([whole.status, cancelled], [200, 2]);
  await whole.body?.cancel();
  assert.equal(cancelled, 3);
});

test("/ace/getstream: this engine plays the content of an engine that has just died", async () => {
  const { call } = site(() => Promise.reject(new SluiceError("url_unreachable", "it does not answer")));
  const path = `/ace/getstream?infohash=${INFOHASH}`;
  assert.equal(await (await call(path)).text(), "played here");
  const session = await call(`/engine/two/ace/r/${INFOHASH}/1`);
  assert.equal(session.status, 302);
  assert.match(session.headers.get("location")!, /\/ace\/getstream\?infohash=/);
});
