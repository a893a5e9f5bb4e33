import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";

const { test } = await testsThatNeed("time");

const COUNT = 10_000;

function list(token: number): string {
  const entries = Array.from(
    { length: COUNT },
    (_, i) =>
      `#EXTINF:-1 tvg-id="c${i}" group-title="g${i % 9}",Channel ${i}\nhttp://tv.example/${i}.ts?k=${token}\n`,
  );
  return `#EXTM3U\n${entries.join("")}`;
}

/** The control methods of an engine, with its token. */
async function control(engine: EngineProcess) {
  const call = async <T>(
    method: string,
    parameters: Record<string, string | number> = {},
    body?: FormData,
  ) => {
    const query = new URLSearchParams({ method, api_version: "3", token });
    for (const [name, value] of Object.entries(parameters)) query.set(name, String(value));
    const response = await fetch(`${engine.url}/server/api?${query}`, body ? { method: "POST", body } : {});
    const { result, error } = (await response.json()) as { result: T; error: { message: string } | null };
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  };
  let token = "";
  ({ token } = await call<{ token: string }>("get_api_access_token"));
  return call;
}

type Call = Awaited<ReturnType<typeof control>>;

interface TaskStatus {
  readonly status: "running" | "done" | "failed";
  readonly problem: string | null;
  readonly msg: string;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1_500; tries++) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail("what was waited for did not come");
}

async function upload(call: Call): Promise<number> {
  const form = new FormData();
  form.set("file", new Blob([list(1)]), "channels.m3u");
  const { task_id } = await call<{ task_id: number }>("playlist_import", {}, form);
  return task_id;
}

async function done(call: Call, task: number): Promise<void> {
  await until(async () => {
    const { status, problem } = await call<TaskStatus>("get_playlist_task_status", { task_id: task });
    assert.notEqual(status, "failed", problem ?? "");
    return status === "done";
  });
}

async function total(call: Call): Promise<number> {
  return (await call<{ total_items: number }>("playlist_get", { limit: 1 })).total_items;
}

async function killed(engine: EngineProcess): Promise<void> {
  engine.child.kill("SIGKILL");
  await engine.stop();
}

test("import: after repeated kills the list is complete and has no duplicates", {
  timeout: 120_000,
}, async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "sluice-import-"));
  try {
    let least = 0;
    for (const share of [0, 0.1, 0.4, 0.7]) {
      const engine = await startEngine({ dataDir });
      const call = await control(engine);
      assert.ok((await total(call)) >= least, "what was there is there");
      await upload(call);
      await until(async () => {
        least = await total(call);
        return least >= share * COUNT;
      });
      await killed(engine);
    }
    const engine = await startEngine({ dataDir });
    const call = await control(engine);
    assert.ok((await total(call)) >= least, "what was there is there");
    await done(call, await upload(call));
    assert.equal(await total(call), COUNT);
    const exported = await (await fetch(`${engine.url}/playlist/get?format=m3u`)).text();
    const titles = [...exported.matchAll(/^#EXTINF:.*,(.*)$/gm)].map(([, title]) => title);
    assert.equal(new Set(titles).size, COUNT);
    assert.equal(titles.length, COUNT);
    await engine.stop();
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
});

/** A server of one list, whose version is its token. */
async function serve(): Promise<{ url: string; server: Server; say(token: number): void; asked(): number }> {
  let token = 1;
  let asked = 0;
  const server = createServer((request, response) => {
    asked++;
    const etag = `"${token}"`;
    if (request.headers["if-none-match"] === etag) return response.writeHead(304).end();
    return response.writeHead(200, { etag, "content-type": "audio/x-mpegurl" }).end(list(token));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const say = (now: number) => {
    token = now;
  };
  return { url: `http://127.0.0.1:${port}/list.m3u`, server, say, asked: () => asked };
}

test("external playlist: a refresh that is killed completes after the next start, and favourites stay", {
  timeout: 120_000,
}, async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "sluice-refresh-"));
  const source = await serve();
  try {
    let engine = await startEngine({ dataDir });
    let call = await control(engine);
    const id = await call<number>("external_playlist_add", {
      ...{ type: "content", category: "tv", name: "list", url: source.url, update_interval: 0 },
    });
    await until(async () => (await total(call)) === COUNT);
    type Page = { playlist: { id: number; title: string; url: string; is_favorite: boolean }[] };
    const [item] = (await call<Page>("playlist_get", { name: "Channel 7345" })).playlist;
    assert.equal(item?.title, "Channel 7345");
    await call("playlist_item_set_favorite", { id: item!.id, value: 1 });
    const urlOf = async (name: string) => (await call<Page>("playlist_get", { name })).playlist[0]!.url;

    for (let token = 2; token <= 3; token++) {
      source.say(token);
      // Request the refresh again in each round: a refresh still in progress also answers new requests.
      await until(async () => {
        await call("external_playlist_update", { id });
        return (await urlOf("Channel 10")).endsWith(`k=${token}`);
      });
      await killed(engine);
      engine = await startEngine({ dataDir });
      call = await control(engine);
      await until(async () => (await urlOf(`Channel ${COUNT - 1}`)).endsWith(`k=${token}`));
    }
    await until(async () => (await total(call)) === COUNT);
    const [again] = (await call<Page>("playlist_get", { name: "Channel 7345" })).playlist;
    assert.deepEqual(
      [again?.id, again?.is_favorite, again?.url],
      [item!.id, true, "http://tv.example/7345.ts?k=3"],
    );
    await call("external_playlist_delete", { id });
    assert.equal(await total(call), 0);
    await engine.stop();
  } finally {
    source.server.close();
    source.server.closeAllConnections();
    await rm(dataDir, { recursive: true, force: true });
  }
});
