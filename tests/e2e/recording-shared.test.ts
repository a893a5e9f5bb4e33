import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { type EngineProcess, runtimeCommand, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startProcess } from "../parts/process.ts";
import { sha1OfStream, tempFolder } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("time");

const SERVER = fileURLToPath(new URL("../parts/pattern-server.ts", import.meta.url));
const ENV = { SLUICE_DHT: "off", SLUICE_LSD: "off", SLUICE_PORT_MAPPING: "off" };

test("a recording is shared as a torrent, which another engine fetches, also after a restart", {
  timeout: 120_000,
}, async (t) => {
  const scratch = await tempFolder("shared-recording");
  t.after(() => scratch.remove());
  const [command, ...args] = runtimeCommand();
  const source = startProcess(command, [...args, SERVER, "0"]);
  t.after(() => source.stop());
  const port = Number((await source.line((line) => line.startsWith("port "))).slice(5));
  const dataDir = scratch.file("data");
  const first = await startEngine({ dataDir, env: ENV });
  const url = `http://127.0.0.1:${port}/live.ts`;
  const item = await call(first, "playlist_add_item", { url, title: "News", is_live: "1" });
  const { id } = await call(first, "recording_add", { id: item });
  await until(async () => (await recording(first)).bytes > 100_000);
  await call(first, "recording_stop", { id });
  await call(first, "recording_share", { id, value: "1" });
  await until(async () => (await recording(first)).torrent.state === "shared");
  const { magnet } = (await recording(first)).torrent;
  await first.stop();

  const second = await startEngine({ dataDir, env: ENV });
  t.after(() => second.stop());
  const shared = await recording(second);
  assert.equal(infohashOf(shared.torrent.magnet), infohashOf(magnet));
  const other = await startEngine({ env: ENV });
  t.after(() => other.stop());
  await call(other, "download_add", { magnet: shared.torrent.magnet });
  await until(async () => (await call(other, "download_list"))[0].state === "complete");
  const file = await fetch(`${other.url}/files/${infohashOf(magnet)}/0/x.ts`);
  const original = await fetch(shared.url);
  assert.deepEqual(await sha1OfStream(file.body!), await sha1OfStream(original.body!));
  assert.ok((await recording(second)).torrent.uploaded >= shared.bytes);
  await call(second, "recording_share", { id, value: "0" });
  assert.equal((await recording(second)).torrent, null);
  await call(second, "recording_delete", { id });
});

async function recording(engine: EngineProcess) {
  return (await call(engine, "recording_list"))[0];
}

function infohashOf(magnet: string): string {
  return /btih:([0-9a-f]{40})/.exec(magnet)![1]!;
}

/** Calls a control method with the token of the engine. */
async function call(engine: EngineProcess, method: string, parameters: Record<string, string> = {}) {
  const answer = async (query: { method: string } & Record<string, string>) => {
    const response = await fetch(`${engine.url}/server/api?${new URLSearchParams(query)}`);
    // biome-ignore lint/suspicious/noExplicitAny: the tests read members by name.
    const { result, error } = (await response.json()) as any;
    assert.equal(error, null, query.method);
    return result;
  };
  const { token } = await answer({ method: "get_api_access_token" });
  return answer({ method, token, ...parameters });
}

/** Waits until `is` returns true; the test's timeout bounds it. */
async function until(is: () => Promise<boolean>): Promise<void> {
  while (!(await is())) await new Promise((resolve) => setTimeout(resolve, 100));
}
