import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { kodiDevice } from "../../src/devices/kodi.ts";
import type { TcpHandlers } from "../../src/runtime/contract.ts";
import { ETH, fakeLan, TV } from "./fake-lan.ts";

type Answers = Record<string, unknown>;

const PLAYING: Answers = {
  "JSONRPC.Ping": "pong",
  "Player.GetActivePlayers": [{ playerid: 1, type: "video" }],
  "Player.GetProperties": {
    time: { hours: 1, minutes: 2, seconds: 3, milliseconds: 500 },
    totaltime: { hours: 2, minutes: 0, seconds: 0, milliseconds: 0 },
    speed: 1,
  },
  "Application.GetProperties": { volume: 40 },
};

function service(type: string) {
  return {
    type,
    instance: "Kodi",
    port: 9090,
    addresses: [TV],
    texts: new Map<string, string>(),
    isAlive: true,
  };
}

function answerTo(request: string, answers: Answers, calls: { method: string; params: object }[]): string {
  const { method, params, id } = JSON.parse(request);
  calls.push({ method, params });
  return JSON.stringify({ jsonrpc: "2.0", id, result: answers[method] ?? "OK" });
}

function kodi(answers: Answers = PLAYING, type = "_xbmc-jsonrpc-h._tcp.local") {
  const lan = fakeLan();
  const calls: { method: string; params: object }[] = [];
  lan.respond = (_, body) => ({ text: answerTo(body, answers, calls) });
  const device = kodiDevice(lan.runtime, { kind: "mdns", service: service(type), host: TV, network: ETH })!;
  return { device, calls, lan };
}

test("Kodi: plays, pauses, seeks and reports through JSON-RPC over HTTP", async () => {
  const { device, calls } = kodi();
  const control = await device.connect();
  const media = {
    url: "http://192.168.1.5:6878/x",
    mime: "",
    title: "",
    isLive: false,
    bytes: 1,
    pictureUrl: "",
    subtitles: [],
  };
  await control.play(media);
  await control.pause();
  await control.seek(3_725.25);
  await control.setVolume(0.5);
  assert.deepEqual(
    calls.filter(({ method }) => !/Get|Ping/.test(method)),
    [
      { method: "Player.Open", params: { item: { file: media.url } } },
      { method: "Player.PlayPause", params: { playerid: 1, play: false } },
      {
        method: "Player.Seek",
        params: { playerid: 1, value: { time: { hours: 1, minutes: 2, seconds: 5, milliseconds: 250 } } },
      },
      { method: "Application.SetVolume", params: { volume: 50 } },
    ],
  );
  assert.deepEqual(await control.status(), {
    state: "playing",
    volume: 0.4,
    positionSeconds: 3_723.5,
    durationSeconds: 7_200,
  });
});

test("Kodi: is idle without a player, and says so when it is asked to pause", async () => {
  const control = await kodi({ ...PLAYING, "Player.GetActivePlayers": [] }).device.connect();
  assert.equal((await control.status()).state, "idle");
  await assert.rejects(control.pause(), /plays nothing/);
});

test("Kodi: a password, a refusal and an address outside of the network are errors", async () => {
  const locked = kodi();
  locked.lan.respond = () => ({ status: 401, text: "" });
  await assert.rejects(locked.device.connect(), /password/);
  const refusing = kodi();
  refusing.lan.respond = () => ({ text: '{"id":1,"error":{"message":"Invalid params."}}' });
  await assert.rejects(refusing.device.connect(), /Invalid params/);
  const sighting = { kind: "mdns", service: service("_xbmc-jsonrpc-h._tcp.local"), network: ETH } as const;
  assert.equal(kodiDevice(fakeLan().runtime, { ...sighting, host: "203.0.113.1" }), undefined);
});

/** A Kodi that answers over TCP with these chunks; `id` is that of the request. */
function tcpKodi(chunksOf: (request: string, id: number) => readonly string[]) {
  const { device, lan } = kodi(PLAYING, "_xbmc-jsonrpc._tcp.local");
  let [open, opened] = [0, 0];
  Object.assign(lan.runtime.net, {
    connect(_: unknown, handlers: TcpHandlers) {
      open++;
      opened++;
      queueMicrotask(() => handlers.opened?.());
      const write = (bytes: Uint8Array) => {
        const request = Buffer.from(bytes).toString();
        for (const chunk of chunksOf(request, JSON.parse(request).id)) handlers.received(encodeUtf8(chunk));
        return true;
      };
      return { write, close: () => void open-- };
    },
  });
  return { device, lan, open: () => open, opened: () => opened };
}

test("Kodi over TCP: one connection, answers in parts, after notifications, with braces in their texts", async () => {
  const { device, lan, open, opened } = tcpKodi((request, id) => [
    '{"method":"Player.OnPlay","params":{"a":"}\\""}}{"id"',
    `:${id},"result":${request.includes("Ping") ? '"pong"' : "[]"}}`,
  ]);
  const control = await device.connect();
  await assert.rejects(control.pause(), /plays nothing/);
  await assert.rejects(control.stop(), /plays nothing/);
  assert.deepEqual([open(), opened()], [1, 1]);
  await lan.clock.advance(60_000);
  assert.equal(open(), 0);
  await assert.rejects(control.pause(), /plays nothing/);
  assert.deepEqual([open(), opened()], [1, 2]);
  control.close();
  assert.equal(open(), 0);
});

test("Kodi over TCP: silence, a flood and text that is not JSON are errors", async () => {
  const silent = tcpKodi(() => []);
  const waiting = assert.rejects(silent.device.connect(), /did not answer/);
  await silent.lan.clock.advance(8_000);
  await waiting;
  for (const [text, problem] of [
    ["x".repeat(300_000), /too much/],
    ["{x}", /not JSON/],
  ] as const) {
    const { device, open } = tcpKodi(() => [text]);
    await assert.rejects(device.connect(), problem);
    assert.equal(open(), 0);
  }
});
