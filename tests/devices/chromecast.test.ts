import assert from "node:assert/strict";
import { test } from "node:test";
import { castDevice } from "../../src/devices/chromecast.ts";
import type { DeviceMedia } from "../../src/devices/contract.ts";
import type { TcpHandlers } from "../../src/runtime/contract.ts";
import { FakeChromecast } from "./fake-chromecast.ts";
import { ETH, fakeLan, TV } from "./fake-lan.ts";

const FILM: DeviceMedia = {
  url: "http://192.168.1.5:6878/ace/m/1/2.m3u8",
  mime: "application/vnd.apple.mpegurl",
  title: "Film",
  isLive: false,
  bytes: undefined,
  pictureUrl: undefined,
  subtitles: [{ language: "de", title: "Deutsch", vttUrl: "http://192.168.1.5:6878/1.vtt", srtUrl: "" }],
};

function chromecast(texts: Readonly<Record<string, string>> = { id: "0123", fn: "Den", md: "Chromecast" }) {
  const lan = fakeLan();
  const fake = new FakeChromecast();
  let open = 0;
  let connections = 0;
  let end: (reason: string) => void = () => {};
  Object.assign(lan.runtime, {
    connectTls(_: unknown, handlers: TcpHandlers) {
      connections++;
      open++;
      const take = fake.connection((bytes) => queueMicrotask(() => handlers.received(bytes)));
      end = (reason) => handlers.closed(reason);
      queueMicrotask(() => handlers.opened?.());
      const write = (bytes: Uint8Array) => {
        take(bytes);
        return true;
      };
      return { write, close: () => void open-- };
    },
  });
  const service = {
    type: "_googlecast._tcp.local",
    ...{ instance: "Chromecast-0123", port: 8009, addresses: [TV], isAlive: true },
    texts: new Map(Object.entries(texts)),
  };
  const device = castDevice(lan.runtime, { kind: "mdns", service, host: TV, network: ETH });
  return {
    lan,
    fake,
    device: device!,
    open: () => open,
    connections: () => connections,
    end: () => end("reset"),
  };
}

test("castDevice: has the id and the name of the TXT record; without an id it is not listed", () => {
  const { device } = chromecast();
  assert.deepEqual([device.id, device.name, device.model], ["chromecast:0123", "Den", "Chromecast"]);
  assert.equal(chromecast({ fn: "Den" }).device, undefined);
});

test("CastControl.play: loads a film as HLS with its subtitles", async () => {
  const { device, fake } = chromecast();
  const control = await device.connect();
  await control.play(FILM);
  const [load] = fake.loads as Record<string, unknown>[];
  assert.deepEqual(
    { ...load, requestId: 0 },
    {
      type: "LOAD",
      sessionId: "session-1",
      requestId: 0,
      autoplay: true,
      currentTime: 0,
      activeTrackIds: [],
      media: {
        contentId: FILM.url,
        contentType: FILM.mime,
        streamType: "BUFFERED",
        hlsSegmentFormat: "ts",
        hlsVideoSegmentFormat: "mpeg2_ts",
        metadata: { metadataType: 0, title: "Film", images: [] },
        tracks: [
          {
            trackId: 1,
            type: "TEXT",
            subtype: "SUBTITLES",
            trackContentId: "http://192.168.1.5:6878/1.vtt",
            trackContentType: "text/vtt",
            name: "Deutsch",
            language: "de",
          },
        ],
      },
    },
  );
});

test("CastControl.play: a live stream is LIVE, without a time and without tracks", async () => {
  const { device, fake } = chromecast();
  const control = await device.connect();
  await control.play({ ...FILM, isLive: true, subtitles: [] });
  const load = fake.loads[0] as { media: Record<string, unknown> };
  assert.equal(load.media.streamType, "LIVE");
  assert.ok(!("currentTime" in load) && !("tracks" in load.media) && !("activeTrackIds" in load));
});

test("CastControl: pauses, resumes, seeks, sets the volume, and keeps the duration of the first status", async () => {
  const { device, fake } = chromecast();
  const control = await device.connect();
  await control.play(FILM);
  await control.pause();
  await control.seek(61);
  await control.setVolume(0.25);
  const paused = { state: "paused", volume: 0.25, positionSeconds: 61, durationSeconds: 120 };
  assert.deepEqual(await control.status(), paused);
  await control.resume();
  assert.equal((await control.status()).state, "playing");
  await control.stop();
  assert.equal(fake.loaded, undefined);
  assert.equal((await control.status()).state, "idle");
  await assert.rejects(control.pause(), /plays nothing/);
});

test("CastControl: a refused stream is an error that names the answer", async () => {
  const { device, fake } = chromecast();
  fake.refusesLoads = true;
  const control = await device.connect();
  await assert.rejects(control.play(FILM), /LOAD_FAILED/);
});

test("CastControl: one connection serves all calls, and closes a minute after the last one", async () => {
  const { device, lan, open, connections, fake } = chromecast();
  const control = await device.connect();
  await control.play(FILM);
  await control.status();
  assert.deepEqual([open(), connections()], [1, 1]);
  await lan.clock.advance(30_000);
  assert.equal(fake.heard.filter((type) => type === "PING").length, 7);
  assert.equal(open(), 1);
  await lan.clock.advance(35_000);
  assert.equal(open(), 0);
  assert.equal((await control.status()).state, "playing");
  assert.deepEqual([open(), connections()], [1, 2]);
});

test("CastControl: a device that falls silent or hangs up fails the call, and the next call connects again", async () => {
  const { device, lan, fake, open, connections, end } = chromecast();
  const control = await device.connect();
  fake.isSilent = true;
  const silent = assert.rejects(control.status(), /fallen silent/);
  await lan.clock.advance(16_000);
  await silent;
  assert.equal(open(), 0);
  const cut = assert.rejects(control.status(), /closed the connection: reset/);
  await lan.clock.advance(0);
  end();
  await cut;
  fake.isSilent = false;
  assert.equal((await control.status()).state, "idle");
  assert.equal(connections(), 3);
});
