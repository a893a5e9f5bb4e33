import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { Redis } from "ioredis";
import type { KeyValueStore } from "../../src/runtime/contract.ts";
import { openStore } from "../../src/runtime/open-store.ts";
import { keyValueSuite } from "../contract/key-value-suite.ts";
import { until } from "../library/until.ts";
import { freePort } from "../parts/engine.ts";
import { testsThatNeed, whyMissing } from "../parts/needs.ts";
import { run, startProcess } from "../parts/process.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";

const { after, before, describe, test } = await testsThatNeed("redis", "openssl");
const missing = await whyMissing("redis", "openssl");

let folder: TempFolder;

before(async () => {
  folder = await tempFolder("redis-addresses");
});
after(async () => {
  await folder?.remove();
});

function open(url: string, warnings: string[] = []): Promise<KeyValueStore> {
  const warn = (message: string) => void warnings.push(message);
  return openStore({ folder: "", kind: "redis", url, shared: false, warn });
}

/** Checks that two engines at these addresses have the same records and get each other's changes. */
async function areShared(one: KeyValueStore, two: KeyValueStore): Promise<void> {
  const value = Math.random();
  assert.equal(await one.commit({ set: [["shared", value]] }), true);
  await until(async () => (await two.get("shared")) === value, "the change of the other engine");
}

/** Makes a certificate authority and certificates for the server (127.0.0.1) and a client. */
async function makeCertificates(path: string): Promise<void> {
  await mkdir(path);
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  const names = (name: string) => ["-keyout", `${path}/${name}.key`, "-out", `${path}/${name}.crt`];
  await run("openssl", ["req", "-x509", ...newKey, ...names("ca"), "-subj", "/CN=test authority"]);
  for (const name of ["server", "client"]) {
    const address = name === "server" ? ["-addext", "subjectAltName=IP:127.0.0.1"] : [];
    const authority = ["-CA", `${path}/ca.crt`, "-CAkey", `${path}/ca.key`];
    const subject = ["-subj", `/CN=${name}`, "-addext", "basicConstraints=critical,CA:FALSE"];
    await run("openssl", ["req", "-x509", ...newKey, ...names(name), ...authority, ...subject, ...address]);
  }
}

test("redis: TLS with an own authority and a client certificate; without them the start says what is wrong", async () => {
  const path = folder.file("tls");
  await makeCertificates(path);
  const port = await freePort();
  const tls = {
    ...{ port: "0", "tls-port": String(port), "tls-cert-file": `${path}/server.crt` },
    ...{ "tls-key-file": `${path}/server.key`, "tls-ca-cert-file": `${path}/ca.crt` },
  };
  const server = await startRedis(path, tls, port);
  try {
    const at = `rediss://127.0.0.1:${port}`;
    const own = `ca=${path}/ca.crt&cert=${path}/client.crt&key=${path}/client.key`;
    const one = await open(`${at}?${own}`);
    const two = await open(`${at}/0?name=main&${own}`);
    await areShared(one, two);
    await Promise.all([one.close(), two.close()]);
    await assert.rejects(open(`${at}?ca=${path}/none.crt`), {
      code: "bad_configuration",
      message: /none\.crt/,
    });
    for (const options of ["?sentinel-password=x", "?other=1", "?ca="])
      await assert.rejects(open(at + options), { code: "bad_configuration" });
    await assert.rejects(open(at), { code: "store_unavailable", message: /certificate/ });
  } finally {
    await server.stop();
  }
});

test("redis: an ACL user with only the documented rights", async () => {
  const rights = ["~{sluice:*", "+@read", "+@write", "+@scripting", "+@connection", "+info", "+config|get"];
  const users = folder.file("users.acl");
  await writeFile(
    users,
    `user sluice on >pa:ss@1 ${rights.join(" ")}
`,
  );
  const server = await startRedis(folder.file("acl"), { aclfile: users });
  try {
    const warnings: string[] = [];
    const url = `redis://sluice:pa%3Ass%401@127.0.0.1:${server.port}`;
    const [one, two] = [await open(url, warnings), await open(url, warnings)];
    await areShared(one, two);
    assert.equal(await one.commit({ check: [["shared", "other"]], set: [["a", 1]] }), false);
    await Promise.all([one.close(), two.close()]);
    assert.deepEqual(warnings, []);
    const wrong = `redis://sluice:wrong@127.0.0.1:${server.port}`;
    await assert.rejects(open(wrong), { code: "store_unavailable", message: /WRONGPASS/ });
  } finally {
    await server.stop();
  }
});

test("redis: Sentinel: after kill -9 of the master, engines write to the replica that is promoted", async () => {
  const servers: { stop(): Promise<unknown> }[] = [];
  try {
    const password = { requirepass: "pw", masterauth: "pw" };
    const master = await startRedis(folder.file("master"), password);
    const replica = await startRedis(folder.file("replica"), {
      ...password,
      replicaof: `127.0.0.1 ${master.port}`,
    });
    servers.push(master, replica);
    const port = await freePort();
    await mkdir(folder.file("sentinel"));
    const config = [
      ...[`port ${port}`, "bind 127.0.0.1", `dir ${folder.file("sentinel")}`, "requirepass guard"],
      `sentinel monitor tv 127.0.0.1 ${master.port} 1`,
      ...["sentinel auth-pass tv pw", "sentinel down-after-milliseconds tv 1000"],
    ];
    await writeFile(folder.file("sentinel/conf"), config.join("\n"));
    const sentinel = startProcess("redis-server", [folder.file("sentinel/conf"), "--sentinel"]);
    servers.push(sentinel);
    await sentinel.line((line) => line.includes("+slave "));
    const url = `redis+sentinel://:pw@127.0.0.1:${port}/tv?sentinel-password=guard`;
    const [one, two] = [await open(url), await open(url)];
    await areShared(one, two);
    await one.commit({ set: [["before", 1]] });
    const reader = new Redis(replica.port, "127.0.0.1", { password: "pw" });
    await until(async () => (await reader.hexists("{sluice:main}:records", "before")) === 1, "replication");
    reader.disconnect();
    master.child.kill("SIGKILL");
    await once(master.child, "close");
    await sentinel.line((line) => line.includes("+switch-master"));
    for (const store of [one, two])
      await until(
        () => store.commit({ set: [["after", 2]] }).catch(() => false),
        "a commit on the new master",
      );
    await areShared(two, one);
    assert.equal(await two.get("before"), 1);
    await Promise.all([one.close(), two.close()]);
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
});

describe("redis: a cluster of three masters", () => {
  const servers: RedisServer[] = [];
  const clusterPorts: string[] = [];
  let url = "";
  const startNode = (n: number, port?: number) => {
    const options = { "cluster-enabled": "yes", "cluster-port": clusterPorts[n]! };
    return startRedis(folder.file(`node-${n}`), options, port);
  };

  before(async () => {
    for (let n = 0; n < 3; n++) {
      clusterPorts.push(String(await freePort()));
      servers.push(await startNode(n));
    }
    const addresses = servers.map(({ port }) => `127.0.0.1:${port}`);
    await run("redis-cli", ["--cluster", "create", ...addresses, "--cluster-yes"]);
    // Each node learns a moment later that all slots are there.
    for (const { port } of servers) {
      const info = () => run("redis-cli", ["-p", String(port), "cluster", "info"]);
      await until(async () => (await info()).includes("cluster_state:ok"), "the cluster");
    }
    // One address is enough: the node names the others.
    url = `redis+cluster://${addresses[0]}`;
  });
  after(async () => {
    await Promise.all(servers.map((server) => server.stop()));
  });

  test("engines share records; all keys of a store are in one slot", async () => {
    // Enough names that stores are on every node.
    for (let n = 0; n < 6; n++) {
      const [one, two] = [await open(`${url}?name=s${n}`), await open(`${url}?name=s${n}`)];
      await areShared(one, two);
      await Promise.all([one.close(), two.close()]);
    }
    const counts = await Promise.all(
      servers.map(async ({ port }) => {
        const node = new Redis(port, "127.0.0.1");
        const keys = await node.keys("*");
        node.disconnect();
        return new Set(keys.map((key) => key.replace(/:[a-z]+(:\w+)?$/, "")));
      }),
    );
    const places = counts.flatMap((names) => [...names]);
    assert.equal(places.length, new Set(places).size, "no store is on two nodes");
    assert.ok(
      counts.every((names) => names.size > 0),
      "all nodes are used",
    );
  });

  test("kill -9 of the node that has the records: reads are served, and writes continue when it is back", async () => {
    const store = await open(`${url}?name=killed`);
    await store.commit({ set: [["a", 1]] });
    let at = -1;
    for (const [n, { port }] of servers.entries()) {
      const node = new Redis(port, "127.0.0.1");
      if ((await node.keys("{sluice:killed}:records")).length > 0) at = n;
      node.disconnect();
    }
    const { port, child } = servers[at]!;
    child.kill("SIGKILL");
    await once(child, "close");
    assert.equal(await store.get("a"), 1);
    servers[at] = await startNode(at, port);
    await until(() => store.commit({ set: [["a", 2]] }).catch(() => false), "a commit on the restarted node");
    const fresh = await open(`${url}?name=killed`);
    assert.equal(await fresh.get("a"), 2);
    await Promise.all([store.close(), fresh.close()]);
  });

  // The addresses are known after `before`, when the tests run.
  if (missing === undefined)
    keyValueSuite("redis cluster", (path) => open(`${url}?name=${path.replace(/\W/g, "-").slice(-40)}`), {
      test,
    });
});
