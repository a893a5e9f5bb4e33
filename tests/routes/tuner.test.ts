import assert from "node:assert/strict";
import { test } from "node:test";
import { TUNER_COUNT } from "../../routes/tuner.ts";
import { numberChannels } from "../../src/base/channel-numbers.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { fakeApp } from "./client.ts";

const HASH = "4".repeat(40);

async function tunerApp(dependencies: { tunerId?: string } = { tunerId: "1012345A" }) {
  const app = fakeApp({ dependencies });
  const content = { transport: "bt", contentId: null, magnet: null, url: null } as const;
  const add = (title: string, more: object) =>
    app.library.items.add({ title, content: { ...content, infohash: HASH as Infohash }, ...more });
  await add("One", { isLive: 1, tvgExtra: ["tvg-chno=7"] });
  await add("Two", { isLive: 1, tvgExtra: ["tvg-chno=7"] });
  await add("Film", { isLive: 0 });
  // A second source of a channel.
  await add("Two", { isLive: 1 });
  const read = async (path: string) => (await app.call(path)).json();
  return { ...app, read };
}

test("/discover.json, /lineup_status.json, /lineup.post: describe the tuner", async () => {
  const { read, call } = await tunerApp();
  const facts = (await read("/discover.json")) as Record<string, unknown>;
  assert.equal(facts.DeviceID, "1012345A");
  assert.equal(facts.LineupURL, "http://127.0.0.1:6878/lineup.json");
  assert.equal(((await read("/lineup_status.json")) as Record<string, unknown>).ScanInProgress, 0);
  assert.equal((await call("/lineup.post?scan=start", { method: "POST" })).status, 200);
});

test("/lineup.json: the channels with unique numbers, without films", async () => {
  const { read } = await tunerApp();
  assert.deepEqual(await read("/lineup.json"), [
    { GuideNumber: "7", GuideName: "One", URL: "http://127.0.0.1:6878/auto/v7" },
    { GuideNumber: "2", GuideName: "Two", URL: "http://127.0.0.1:6878/auto/v2" },
  ]);
});

test("numberChannels: numbers of lists first, then ids, each once", () => {
  const items = [
    { id: 1, tvgExtra: [] },
    { id: 2, tvgExtra: ["tvg-shift=1", "tvg-chno=1"] },
    { id: 3, tvgExtra: ["tvg-chno=1"] },
    { id: 4, tvgExtra: ["tvg-chno=7.2"] },
    { id: 5, tvgExtra: ["tvg-chno=seven"] },
  ];
  assert.deepEqual(
    [...numberChannels(items)].map(([number, { id }]) => [number, id]),
    [
      ["100001", 1],
      ["1", 2],
      ["3", 3],
      ["7.2", 4],
      ["5", 5],
    ],
  );
});

test("/auto/v<number>: plays the channel; an unknown number is 404", async () => {
  const { call } = await tunerApp();
  const [tuned, linked] = await Promise.all([call("/auto/v7"), call("/play/0/1")]);
  const targetOf = ({ status, headers }: Response) => [status, headers.get("location")?.slice(0, 20)];
  assert.equal(tuned.status, 302);
  assert.deepEqual(targetOf(tuned), targetOf(linked), "the same answer as that of the channel's play link");
  const { call: callFull, engine } = await tunerApp();
  await engine.stop();
  assert.equal((await callFull("/auto/v7")).status, 410, "an error has the status of the play link");
  for (const path of ["/auto/v9", "/auto/x", "/auto/v"]) assert.equal((await call(path)).status, 404, path);
});

test("/auto/v<number>: 503 with the error of a device while players read as many streams as there are tuners", async () => {
  const { call, engine } = await tunerApp();
  // The second channel has two sources, so it is one body; the first one is a session.
  Object.assign(engine, {
    playChannel: async () =>
      new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(188)) }),
  });
  const bodies = [];
  for (let i = 1; i < TUNER_COUNT; i++) bodies.push((await call("/auto/v2")).body!);
  const [, infohash, key] = /([0-9a-f]{40})\/([0-9a-f]{32})/.exec(
    (await call("/auto/v7")).headers.get("location")!,
  )!;
  const session = engine.session(infohash as Infohash, key!)!;
  assert.equal((await call("/auto/v2", { method: "HEAD" })).status, 200, "no player reads the session yet");
  Object.defineProperty(session, "isPlayed", { value: true });
  for (const path of ["/auto/v2", "/auto/v7"]) {
    const refused = await call(path);
    assert.deepEqual(
      [refused.status, refused.headers.get("x-hdhomerun-error")],
      [503, "805 All Tuners In Use"],
    );
  }
  await bodies[0]!.cancel();
  assert.equal((await call("/auto/v2")).status, 200);
  assert.equal((await call("/auto/v2")).status, 503);
});

test("the tuner is off by default, and closed to pages of other sites", async () => {
  const off = await tunerApp({});
  assert.equal((await off.call("/discover.json")).status, 404);
  const { call } = await tunerApp();
  const foreign = { headers: { origin: "http://evil.example", "sec-fetch-site": "cross-site" } };
  assert.equal((await call("/lineup.json", foreign)).status, 403);
});
