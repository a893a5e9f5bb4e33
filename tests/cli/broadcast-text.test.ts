import assert from "node:assert/strict";
import { test } from "node:test";
import { broadcastJson, broadcastStatus, broadcastText, startCommand } from "../../src/cli/broadcast-text.ts";
import { relayStatus, relayText } from "../../src/cli/relay-text.ts";
import { fakeBroadcast } from "../routes/fake-broadcasts.ts";

const PLACES = { p2pPort: 20_001, httpUrl: "http://127.0.0.1:40001", program: "npm start --", hasDht: false };

test("broadcastText: names, files, addresses, and how to preview and watch", () => {
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

test("broadcastText: says how viewers of the transport file find this machine", () => {
  const { request, ...rest } = fakeBroadcast("news");
  const remark = (trackers: string[], hasDht: boolean) => {
    const broadcast = { ...rest, request: { ...request, trackers, relays: [] } };
    return /news\.sluice {2}\((.*)\)/.exec(broadcastText(broadcast, { ...PLACES, hasDht }))?.[1];
  };
  assert.equal(remark([], false), "viewers find this machine only with a tracker or relay");
  assert.match(remark([], true) ?? "", /through the DHT/);
  assert.equal(remark(["udp://tracker.example:6969"], false), undefined);
});

test("broadcastText, broadcastJson, broadcastStatus: a standby is marked", () => {
  const { request, ...rest } = fakeBroadcast("news");
  const standby = { ...rest, request: { ...request, isStandby: true } };
  assert.match(broadcastText(standby, PLACES), /^Standby: About news\n/);
  assert.equal(JSON.parse(broadcastJson(standby, PLACES)).standby, true);
  const figures = {
    ...rest.figures(),
    health: "standby",
    remark: "another source is on air: epoch 5, piece 7",
  } as const;
  assert.match(broadcastStatus(figures), /^standby: another source is on air: epoch 5, piece 7 · 12 peers/);
});

test("broadcastText: RTMP has a server and a key, SRT a server with the key in it", () => {
  const rows = (url: string) =>
    broadcastText({ ...fakeBroadcast("news"), publishing: { urls: [url], key: "0123456789ab" } }, PLACES)
      .split("\n")
      .slice(2, 4);
  const [server, key] = rows("rtmp://192.168.1.5:1935/live");
  assert.deepEqual([server, key], ["  Publish  rtmp://192.168.1.5:1935/live", "  Key      0123456789ab"]);
  const [alone, next] = rows("srt://192.168.1.5:9000");
  assert.equal(alone, "  Publish  srt://192.168.1.5:9000?passphrase=0123456789ab");
  assert.match(next ?? "", /^ {2}Link/);
});

test("broadcastText: escapes control characters in the title", () => {
  const { request, ...rest } = fakeBroadcast("news");
  const text = broadcastText({ ...rest, request: { ...request, meta: { title: "\x1b[2Jx" } } }, PLACES);
  assert.ok(!text.includes("\x1b"), JSON.stringify(text));
});

test("broadcastJson: one line with all facts", () => {
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

test("broadcastStatus: health first; unknown values are omitted", () => {
  const figures = fakeBroadcast("news").figures();
  assert.equal(
    broadcastStatus(figures),
    "good · 12 peers, 3 direct viewers · piece 14283 · 217 kbit/s · upload 651 kbit/s",
  );
  const waiting = { ...figures, health: "waiting", remark: "nothing from the source for 4 s" } as const;
  assert.equal(
    broadcastStatus({ ...waiting, peers: 1, children: 0, seq: undefined, bytesPerSecond: undefined }),
    "waiting: nothing from the source for 4 s · 1 peer, 0 direct viewers · upload 651 kbit/s",
  );
});

test("relayText and relayStatus: the addresses for the source, and the status", () => {
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
    "News · 3 direct viewers, 12 peers · 0.8 s behind · 8.0 Mbit/s · upload 24.0 Mbit/s",
  );
  assert.match(relayStatus("News", { ...figures, lastSeq: undefined }), /^News · waiting for the stream · /);
  assert.match(relayStatus("News", { ...figures, hasEnded: true }), /^News · ended · /);
  assert.match(relayStatus("News", { ...figures, isForked: true }), /key may be stolen/);
  assert.match(relayStatus("News", { ...figures, skippedPieces: 2 }), /2 pieces missed$/);
  assert.match(relayStatus("News", { ...figures, lagMs: 47_100 }), /^News · no new data · .* 47\.1 s behind/);
});

test("startCommand: the command that the user's shell accepts", () => {
  const started = { npm_lifecycle_event: "start" };
  assert.equal(startCommand({}), "sluice");
  assert.equal(startCommand({ npm_lifecycle_event: "test" }), "sluice");
  const npm = { ...started, npm_config_user_agent: "npm/10.2.4 node/v22.13.0" };
  assert.equal(startCommand(npm), "npm start --");
  const bun = { ...started, npm_config_user_agent: "bun/1.4.5 npm/? node/v24" };
  assert.equal(startCommand(bun), "bun run start");
});
