import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { engineCommand } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run, startProcess } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { pause, startKodi } from "./kodi-client.ts";

const { test } = await testsThatNeed("kodi", "ffmpeg");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CHANNELS = 200;
const PLAYED = Number(process.env.KODI_PLAYED ?? 4);
const HALF_HOUR = 1_800;
const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

/** Serves a list of channels with numbers, logos, a guide and live streams. */
async function television(film: string) {
  const numbers = Array.from({ length: CHANNELS }, (_, i) => i + 1);
  const server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo;
    const base = `http://127.0.0.1:${port}`;
    if (request.url === "/guide.xml") response.end(guide(numbers));
    else if (request.url?.endsWith(".png"))
      response.writeHead(200, { "content-type": "image/png" }).end(PIXEL);
    else if (request.url?.endsWith(".ts")) {
      response.writeHead(200, { "content-type": "video/mp2t" });
      const args = [
        "-v",
        "quiet",
        "-re",
        "-stream_loop",
        "-1",
        "-i",
        film,
        "-c",
        "copy",
        "-f",
        "mpegts",
        "-",
      ];
      const ffmpeg = spawn("ffmpeg", args);
      ffmpeg.stdout.pipe(response);
      response.on("close", () => ffmpeg.kill("SIGKILL"));
    } else
      response.end(
        `#EXTM3U\n${numbers
          .map(
            (n) =>
              `#EXTINF:-1 tvg-id="c${n}.test" tvg-chno="${1_000 - n}" tvg-logo="${base}/${n}.png",Channel ${n}\n${base}/${n}.ts\n`,
          )
          .join("")}`,
      );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

/** A guide of six hours. */
function guide(numbers: readonly number[]): string {
  const from = HALF_HOUR * (Math.floor(Date.now() / 1000 / HALF_HOUR) - 4);
  const time = (seconds: number) =>
    `${new Date(1000 * seconds).toISOString().replace(/\D/g, "").slice(0, 14)} +0000`;
  const channels = numbers.map(
    (n) => `<channel id="c${n}.test"><display-name>Channel ${n}</display-name></channel>`,
  );
  const programmes = numbers.flatMap((n) =>
    Array.from({ length: 12 }, (_, i) => {
      const [start, stop] = [time(from + i * HALF_HOUR), time(from + (i + 1) * HALF_HOUR)];
      return `<programme channel="c${n}.test" start="${start}" stop="${stop}"><title>Show ${n}-${i}</title></programme>`;
    }),
  );
  return `<?xml version="1.0"?><tv>${channels.join("")}${programmes.join("")}</tv>`;
}

interface Channel {
  readonly channelid: number;
  readonly label: string;
  readonly channelnumber: number;
  readonly thumbnail: string;
  readonly broadcastnow?: { readonly title: string };
}

test("Kodi: 200 channels with numbers, logos and programmes, and plays them", {
  timeout: 400_000,
}, async () => {
  const scratch = await tempFolder("kodi");
  const stops: (() => unknown)[] = [() => scratch.remove()];
  try {
    const film = scratch.file("film.ts");
    const picture = ["-f", "lavfi", "-i", "testsrc=s=320x180:r=25", "-f", "lavfi", "-i", "sine=440"];
    const codecs = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-c:a", "aac"];
    await run("ffmpeg", ["-v", "error", ...picture, "-t", "20", ...codecs, film]);
    const { url, server } = await television(film);
    stops.push(
      () => server.close(),
      () => server.closeAllConnections(),
    );
    const [command, ...args] = engineCommand();
    const engine = startProcess(command, [...args, "serve"], {
      cwd: ROOT,
      env: {
        ...{ SLUICE_DHT: "off", SLUICE_LSD: "off", SLUICE_PORT_MAPPING: "off", SLUICE_STORE: "memory" },
        ...{ SLUICE_HTTP_PORT: "0", SLUICE_P2P_PORT: "0", SLUICE_HOST: "127.0.0.1" },
        ...{ SLUICE_DATA_DIR: scratch.file("data"), XDG_CONFIG_HOME: scratch.path },
      },
    });
    stops.push(() => engine.stop());
    const base = /http:\/\/127\.0\.0\.1:\d+/.exec(await engine.line((line) => line.includes("Open")))![0];
    const call = async (method: string, values: Readonly<Record<string, string>> = {}) => {
      const query = new URLSearchParams({ ...values, method });
      const answer = await (await fetch(`${base}/server/api?${query}`)).json();
      assert.equal(answer.error, null, method);
      return answer as { result: never };
    };
    const { token } = (await call("get_api_access_token")).result as { token: string };
    const list = { type: "content", name: "tv", category: "", url: `${url}/list.m3u`, update_interval: "0" };
    await call("external_playlist_add", { token, ...list });
    await call("epg_source_add", { token, url: `${url}/guide.xml` });
    for (let left = 120; ; left--) {
      const text = await (await fetch(`${base}/epg.xml`)).text();
      if (text.split("<channel ").length > CHANNELS) break;
      assert.ok(left > 0, "the guide was not read");
      await pause(500);
    }
    const kodi = await startKodi(scratch.file("home"), base, 20_000 + (process.pid % 20_000));
    stops.push(() => kodi.stop());
    await kodi.call("Addons.SetAddonEnabled", { addonid: "pvr.iptvsimple", enabled: true });
    let channels: readonly Channel[] = [];
    for (let left = 60; left > 0; left--) {
      const properties = ["thumbnail", "channelnumber", "broadcastnow"];
      const found = await kodi
        .call<{ channels?: Channel[] }>("PVR.GetChannels", { channelgroupid: "alltv", properties })
        .catch(() => undefined);
      channels = found?.channels ?? [];
      if (channels.length === CHANNELS && channels.every(({ broadcastnow }) => broadcastnow)) break;
      await pause(1_000);
    }
    assert.equal(channels.length, CHANNELS);
    for (const { label, channelnumber, thumbnail, broadcastnow } of channels) {
      const n = Number(label.split(" ")[1]);
      // Kodi counts from 1, in the order of the list's numbers.
      assert.equal(channelnumber, CHANNELS + 1 - n, label);
      assert.ok(thumbnail !== "" && broadcastnow?.title.startsWith(`Show ${n}-`), label);
    }
    for (let i = 0; i < PLAYED; i++) {
      const { channelid, label } = channels[(37 * i) % CHANNELS]!;
      await kodi.call("Player.Open", { item: { channelid } });
      for (let left = 120; ; left--) {
        const [player] = await kodi.call<{ playerid: number }[]>("Player.GetActivePlayers");
        const on = player && { playerid: player.playerid };
        const item = on && (await kodi.call<{ item: { id?: number } }>("Player.GetItem", on));
        const properties = ["speed", "currentvideostream"];
        const state =
          on &&
          (await kodi.call<{ speed: number; currentvideostream: { width?: number } | null }>(
            "Player.GetProperties",
            { ...on, properties },
          ));
        if (item?.item.id === channelid && state?.speed === 1 && state.currentvideostream?.width === 320)
          break;
        assert.ok(left > 0, `${label} does not play`);
        await pause(500);
      }
    }
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
});
