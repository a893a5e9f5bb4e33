import assert from "node:assert/strict";
import { test } from "node:test";
import { broadcastJson, broadcastStatus, broadcastText } from "../../src/cli/broadcast-text.ts";
import { ownAddresses } from "../../src/cli/own-addresses.ts";
import { relayStatus, relayText } from "../../src/cli/relay-text.ts";
import { fakeBroadcast } from "../routes/fake-desk.ts";

const PLACES = { p2pPort: 20_001, httpUrl: "http://127.0.0.1:40001", program: "npm start --", hasDht: false };

test("broadcastText: what it is called, where it lies, how to look and to watch", () => {
  const broadcast = fakeBroadcast("news");
  const text = broadcastText(broadcast, PLACES);
  for (const word of [
    "On air: About news\n",
    broadcast.link,
    broadcast.magnet,
    broadcast.contentId,
    broadcast.infohash,
    broadcast.transportFilePath,
    "port 20001 at 192.168.1.5:20001",
    `http://127.0.0.1:40001/ace/getstream?infohash=${broadcast.infohash}`,
    `npm start -- play '${broadcast.link}'`,
    `http://127.0.0.1:6878/ace/getstream?magnet=${encodeURIComponent(broadcast.magnet)}`,
  ])
    assert.ok(text.includes(word), `${word} in\n${text}`);
});

test("broadcastText: where the transport file alone leads viewers is said as it is", () => {
  const { request, ...rest } = fakeBroadcast("news");
  const told = (trackers: string[], hasDht: boolean) => {
    const broadcast = { ...rest, request: { ...request, trackers, relays: [] } };
    return /news\.sluice {2}\((.*)\)/.exec(broadcastText(broadcast, { ...PLACES, hasDht }))?.[1];
  };
  assert.equal(told([], false), "leads viewers here with a tracker or relay only");
  assert.match(told([], true) ?? "", /by the DHT/);
  assert.equal(told(["udp://tracker.example:6969"], false), undefined);
});

test("broadcastText, broadcastJson, broadcastStatus: who stands by says so", () => {
  const { request, ...rest } = fakeBroadcast("news");
  const standby = { ...rest, request: { ...request, isStandby: true } };
  assert.match(broadcastText(standby, PLACES), /^Standing by: About news\n/);
  assert.equal(JSON.parse(broadcastJson(standby, PLACES)).standby, true);
  const figures = {
    ...rest.figures(),
    health: "standby",
    remark: "on air elsewhere, epoch 5, head 7",
  } as const;
  assert.match(broadcastStatus(figures), /^standby: on air elsewhere, epoch 5, head 7 · 12 peers/);
});

test("broadcastText: a title of strangers drives no terminal", () => {
  const { request, ...rest } = fakeBroadcast("news");
  const text = broadcastText({ ...rest, request: { ...request, meta: { title: "\x1b[2Jx" } } }, PLACES);
  assert.ok(!text.includes("\x1b"), JSON.stringify(text));
});

test("broadcastJson: one line with all of it", () => {
  const line = broadcastJson(fakeBroadcast("news"), PLACES);
  assert.equal(line.split("\n").length, 2);
  const { link, magnet, infohash, contentId, transportFilePath } = fakeBroadcast("news");
  assert.deepEqual(JSON.parse(line), {
    name: "news",
    title: "About news",
    infohash,
    content_id: contentId,
    magnet,
    link,
    transport_file: transportFilePath,
    addresses: ["192.168.1.5:20001"],
    p2p_port: 20_001,
    http_url: "http://127.0.0.1:40001",
  });
});

test("broadcastStatus: health first, and what is not known yet left out", () => {
  const figures = fakeBroadcast("news").figures();
  assert.equal(
    broadcastStatus(figures),
    "good · 12 peers, 3 fed from here · piece 14283 · 217 kbit/s · upload 651 kbit/s",
  );
  const waiting = { ...figures, health: "waiting", remark: "nothing from the source for 4 s" } as const;
  assert.equal(
    broadcastStatus({ ...waiting, peers: 1, children: 0, seq: undefined, bytesPerSecond: undefined }),
    "waiting: nothing from the source for 4 s · 1 peer, 0 fed from here · upload 651 kbit/s",
  );
});

test("relayText and relayStatus: the address for the source, and how it goes", () => {
  const text = relayText(["192.168.1.5:20311", "[fd00::1]:20311"], 20_311);
  assert.match(text, /sluice broadcast … --relay 192\.168\.1\.5:20311 --relay '?\[fd00::1\]:20311'?\n/);
  const figures = {
    peers: 12,
    children: 3,
    lagMs: 840,
    lastSeq: 14_283,
    firstTsMs: 0,
    lastTsMs: 1000,
    skippedPieces: 0,
    hasEnded: false,
    bytesPerSecondDown: 1e6,
    bytesPerSecondUp: 3e6,
    isForked: false,
  };
  assert.equal(
    relayStatus("News", figures),
    "News · 3 fed from here, 12 peers · 0.8 s behind · 8.0 Mbit/s · upload 24.0 Mbit/s",
  );
  assert.match(relayStatus("News", { ...figures, lastSeq: undefined }), /^News · waiting for the stream · /);
  assert.match(relayStatus("News", { ...figures, hasEnded: true }), /^News · has ended · /);
  assert.match(relayStatus("News", { ...figures, isForked: true }), /key is in other hands/);
  assert.match(relayStatus("News", { ...figures, skippedPieces: 2 }), /2 pieces missed$/);
  assert.match(
    relayStatus("News", { ...figures, lagMs: 47_100 }),
    /^News · nothing new comes · .* 47\.1 s behind/,
  );
});

test("ownAddresses: the networks of this machine where it listens everywhere, else what it listens on", () => {
  const lan = ["192.168.1.5", "fd00::5"];
  const hosts = (host: string, addresses: readonly string[]) =>
    ownAddresses(host, 1, addresses).map((each) => each.host);
  assert.deepEqual(hosts("::", lan), lan);
  assert.deepEqual(hosts("0.0.0.0", lan), ["192.168.1.5"]);
  assert.deepEqual(hosts("127.0.0.1", lan), ["127.0.0.1"]);
  assert.deepEqual(hosts("::", []), ["127.0.0.1"]);
  assert.equal(hosts("::", Array(9).fill("10.0.0.1")).length, 4);
});
