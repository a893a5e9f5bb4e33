import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { serveFetch } from "../../examples/serve-fetch.ts";
import { type EmbeddedEngine, startEngine } from "../../src/embed.ts";
import { MapStore } from "../library/map-store.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";

/** Settings of an engine that meets no other. */
const ALONE = { "p2p-host": "127.0.0.1", "p2p-port": 0, dht: "off", lsd: "off", "port-mapping": "off" };
const TOKEN = "/server/api?api_version=3&method=get_api_access_token";
const STRANGER = { remote: { host: "203.0.113.9", port: 4000 } };

describe("startEngine: fetch", () => {
  let folder: TempFolder;
  let engine: EmbeddedEngine;

  before(async () => {
    folder = await tempFolder("embed");
    engine = await startEngine({
      settings: { ...ALONE, "data-dir": folder.path, store: "memory" },
    });
  });
  after(async () => {
    await engine?.close();
    await folder?.remove();
  });

  test("mounts in the server of this runtime, beside other paths", async () => {
    const server = await serveFetch((request, client) =>
      new URL(request.url).pathname === "/own" ? new Response("own") : engine.fetch(request, client),
    );
    try {
      assert.equal(await (await fetch(`${server.url}/own`)).text(), "own");
      const page = await fetch(server.url);
      assert.match(await page.text(), /<html/);
      const { result } = await (await fetch(server.url + TOKEN)).json();
      assert.match(result.token, /^[0-9a-f]{64}$/);
      const form = new URLSearchParams({ infohash: "a".repeat(40), title: "film", token: result.token });
      const added = await fetch(`${server.url}/server/api/playlist_add_item`, { method: "POST", body: form });
      assert.equal(typeof (await added.json()).result, "number");
    } finally {
      await server.close();
    }
  });

  test("a stream reaches the player in chunks, and ends when the player hangs up", async () => {
    const { infohash } = (await engine.call("broadcast_start", { name: "embed", test_pattern: 1 })) as {
      infohash: string;
    };
    const bodies: Promise<unknown>[] = [];
    const server = await serveFetch(async (request, client) => {
      const response = await engine.fetch(request, client);
      if (!response.body) return response;
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      bodies.push(response.body.pipeTo(writable).catch((thrown) => thrown));
      return new Response(readable, response);
    });
    try {
      const response = await fetch(`${server.url}/ace/getstream?infohash=${infohash}`);
      assert.equal(response.headers.get("content-type"), "video/mp2t");
      const reader = response.body!.getReader();
      assert.equal((await reader.read()).value?.[0], 0x47);
      await reader.cancel();
      await Promise.all(bodies);
    } finally {
      await server.close();
      await engine.call("broadcast_stop", { name: "embed" });
    }
  });

  test("the access rules apply to the client that info names", async () => {
    const ask = (info?: Parameters<EmbeddedEngine["fetch"]>[1], host = "127.0.0.1") =>
      engine.fetch(new Request(`http://${host}${TOKEN}`), info);
    assert.equal((await ask()).status, 200);
    assert.equal((await ask({ remote: { host: "::ffff:127.0.0.1", port: 9 } })).status, 200);
    assert.equal((await ask(STRANGER, "localhost")).status, 403);
    const local = { host: "203.0.113.1", port: 80 };
    const neighbour = await ask({ ...STRANGER, local }, "203.0.113.1");
    assert.match(await neighbour.text(), /access denied/);
    assert.equal(neighbour.status, 200);
    assert.equal((await ask(undefined, "other.example")).status, 421);
  });

  test("rejects an address that is none", async () => {
    const request = new Request(`http://127.0.0.1${TOKEN}`);
    await assert.rejects(
      engine.fetch(request, { remote: { host: "nas.lan", port: 1 } }),
      /expected an IP address/,
    );
  });
});

test("startEngine: records of a newer version are refused and not changed; those of this version say so", async () => {
  const folder = await tempFolder("format");
  const store = new MapStore();
  store.records.set("meta/format", "2");
  const start = () => startEngine({ settings: { ...ALONE, "data-dir": folder.path }, store });
  try {
    await assert.rejects(start(), {
      code: "bad_configuration",
      message: /newer Sluice \(format 2, supported: 1\)/,
    });
    assert.equal(store.commits, 0);
    store.records.clear();
    await (await start()).close();
    assert.equal(await store.get("meta/format"), 1);
  } finally {
    await folder.remove();
  }
});
