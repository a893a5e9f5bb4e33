import assert from "node:assert/strict";
import { resolve } from "node:path";
import { test } from "node:test";
import { broadcastRequest, defaultName } from "../../src/cli/broadcast-request.ts";
import type { BroadcastOptions } from "../../src/library/contract.ts";
import { checkedBroadcastName } from "../../src/live/broadcast/broadcast-name.ts";
import { fakeBroadcastOptions } from "../routes/fake-broadcasts.ts";

const WISH = { ...fakeBroadcastOptions("news"), source: "-" };

const OWN = { host: "192.168.1.5", port: 20_001 };
const PARTS = {
  ownAddresses: [OWN],
  tracker: "off" as const,
  lookup: async (name: string) => (name === "relay.example" ? ["203.0.113.7"] : []),
};
const request = (wish: Partial<BroadcastOptions>) => broadcastRequest({ ...WISH, ...wish }, PARTS);

test("broadcastRequest: what is not said has its default", async () => {
  assert.deepEqual(await request({}), {
    name: "news",
    place: { kind: "pipe" },
    isLooped: false,
    meta: { title: "news" },
    trackers: [],
    relays: [],
    isPrivate: false,
    uploadLimit: undefined,
    bytesPerSecond: undefined,
    manifests: [],
    addresses: [OWN],
  });
});

test("broadcastRequest: converts sources, texts, addresses, names and rates", async () => {
  const made = await request({
    source: "film.ts",
    isLooped: true,
    isStandby: true,
    title: "News",
    categories: ["sport"],
    languages: ["eng"],
    countries: ["us"],
    logo: "https://x.example/logo.png",
    trackers: ["udp://tracker.example:6969/announce", "http://tracker.example/announce"],
    relays: ["relay.example:8621", "[2001:DB8::7]:1"],
    isPrivate: true,
    uploadLimit: 1000,
    bitsPerSecond: 8_000_001,
    manifests: ["https://x.example/a.m3u8"],
    addresses: ["203.0.113.9:20001"],
  });
  assert.equal(made.isStandby, true);
  assert.deepEqual(made.place, { kind: "file", path: resolve("film.ts") });
  assert.deepEqual(made.meta, {
    title: "News",
    categories: ["sport"],
    languages: ["eng"],
    countries: ["us"],
    logo: "https://x.example/logo.png",
  });
  assert.deepEqual(made.relays, [
    { host: "203.0.113.7", port: 8621 },
    { host: "2001:db8::7", port: 1 },
  ]);
  assert.deepEqual(made.addresses, [{ host: "203.0.113.9", port: 20_001 }, OWN]);
  assert.deepEqual([made.uploadLimit, made.bytesPerSecond], [1000, 1_000_001]);
  assert.equal((await request({ source: null })).place.kind, "test-pattern");
});

test("broadcastRequest: adds the own tracker after those of the user, but not for a private source", async () => {
  const parts = { ...PARTS, tracker: "own" as const };
  const wish = { ...WISH, trackers: ["http://t.example/"], addresses: ["203.0.113.9:20001"] };
  assert.deepEqual((await broadcastRequest(wish, parts)).trackers, [
    "http://t.example/",
    "udp://203.0.113.9:20001/announce",
    "udp://192.168.1.5:20001/announce",
  ]);
  const hidden = { ...wish, isPrivate: true, relays: ["relay.example:8621"] };
  assert.deepEqual((await broadcastRequest(hidden, parts)).trackers, ["http://t.example/"]);
});

const REFUSED: readonly [Partial<BroadcastOptions>, RegExp][] = [
  [{ isLooped: true }, /^loop: only a file/],
  [{ isPrivate: true }, /^private: .*relay/],
  [{ source: "gopher://x/" }, /^gopher: sources are not supported/],
  [{ title: "x".repeat(257) }, /^title: expected at most 256 characters, got 257/],
  [{ languages: ["english"] }, /^language: expected two or three letters, such as eng, got "english"/],
  [{ countries: ["usa"] }, /^country: expected two letters, such as us, got "usa"/],
  [{ logo: "file:///etc/passwd" }, /^logo: expected an http/],
  [{ trackers: ["tracker.example"] }, /^tracker: expected an announce URL/],
  [{ trackers: ["http://tracker.example/ä"] }, /^tracker: expected an announce URL/],
  [{ trackers: Array(17).fill("http://t.example/") }, /^tracker: expected at most 16, got 17/],
  [{ relays: ["relay.example"] }, /^relay: expected HOST:PORT/],
  [{ relays: ["relay.example:65536"] }, /^relay: expected HOST:PORT/],
  [{ relays: ["nowhere.example:1"] }, /^relay: nowhere\.example has no address/],
  [{ addresses: ["1.2.3.4:0"] }, /^address: expected HOST:PORT/],
  [{ manifests: ["ftp://x"] }, /^hls: expected an http/],
  [{ bitsPerSecond: 1e12 }, /^bitrate: expected at most/],
  [{ bitsPerSecond: 8 }, /^bitrate: expected bits a second, at least 4000, such as 8Mbit/],
];

for (const [wish, message] of REFUSED) {
  test(`broadcastRequest refuses ${JSON.stringify(wish).slice(0, 60)}`, async () => {
    await assert.rejects(request(wish), { code: "bad_parameter", message });
  });
}

test("defaultName: derives a valid name from the source", () => {
  const names: readonly [string | null, string][] = [
    [null, "test-pattern"],
    ["-", "piped-in"],
    ["/videos/Über uns.ts", "Über uns"],
    ["http://tv.example:8080/live/news.m3u8", "tv.example 8080 live news"],
    ["udp://@239.1.1.1:1234", "239.1.1.1 1234"],
    ["/", "stream"],
    [`/${"x".repeat(300)}.ts`, "x".repeat(64)],
  ];
  for (const [source, name] of names) {
    assert.equal(defaultName(source), name);
    assert.equal(checkedBroadcastName(name), name);
  }
});

test("broadcastRequest: the error of a name that cannot be resolved names its parameter", async () => {
  const wish = { ...WISH, relays: ["nosuch.example:80"] };
  const lookup = async () => {
    throw Object.assign(new Error("getaddrinfo ENOTFOUND nosuch.example"), { code: "ENOTFOUND" });
  };
  await assert.rejects(broadcastRequest(wish, { ...PARTS, lookup }), {
    name: "SluiceError",
    code: "bad_parameter",
    message: /^relay: cannot resolve nosuch\.example \(.*ENOTFOUND/,
  });
});

test("broadcastRequest: refuses a name that is not a valid folder name", async () => {
  await assert.rejects(request({ name: "../x" }), { code: "bad_parameter", message: /^name: / });
});
