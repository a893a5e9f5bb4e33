import assert from "node:assert/strict";
import { chmod, readFile, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { createServer } from "node:tls";
import { fileURLToPath } from "node:url";
import { runtime } from "#runtime";
import { castDevice } from "../../src/devices/chromecast.ts";
import { FakeChromecast } from "../devices/fake-chromecast.ts";
import { freePort } from "../parts/engine.ts";
import { PYTHON } from "../parts/libtorrent.ts";
import { patternTs } from "../parts/media-fixtures.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run, startProcess } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("openssl", "pychromecast");
const { test: vlcTest } = await testsThatNeed("openssl", "vlc");

const SENDER = fileURLToPath(new URL("./pychromecast_sender.py", import.meta.url));

/** A fake Chromecast on loopback, with a certificate that no authority has signed, as real ones have. */
async function serveChromecast() {
  const scratch = await tempFolder("cast");
  const [key, cert] = [scratch.file("key.pem"), scratch.file("cert.pem")];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  await run("openssl", [
    "req",
    "-x509",
    ...kind,
    "-keyout",
    key,
    "-out",
    cert,
    "-subj",
    "/CN=cast",
    "-days",
    "2",
  ]);
  const fake = new FakeChromecast();
  const sockets = new Set<{ destroy(): void }>();
  const server = createServer({ key: await readFile(key), cert: await readFile(cert) }, (socket) => {
    sockets.add(socket);
    socket.on(
      "data",
      fake.connection((bytes) => void socket.write(bytes)),
    );
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    fake,
    port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await scratch.remove();
    },
  };
}

/** Runs pychromecast until it loads: now and then it waits for ever for the answer to its launch, which it has received. */
async function playByPychromecast({ port, fake }: { port: number; fake: FakeChromecast }): Promise<string> {
  for (let left = 3; ; left--) {
    try {
      return await run(PYTHON, [SENDER, String(port)]);
    } catch (error) {
      if (left === 0) throw new Error(`the device heard ${fake.heard.join(", ")}`, { cause: error });
    }
  }
}

test("the fake Chromecast: pychromecast launches the player, loads, pauses, seeks and quits", async () => {
  await using served = await serveChromecast();
  const { reports, url } = JSON.parse(await playByPychromecast(served)) as {
    reports: unknown[];
    url: string;
  };
  assert.deepEqual(reports, [
    ["PLAYING", 0, 120],
    ["PAUSED", 0, 120],
    ["PLAYING", 61, 120],
  ]);
  assert.equal(url, "http://127.0.0.1/film.m3u8");
  assert.equal(served.fake.volume, 0.25);
  assert.equal(served.fake.loaded, undefined);
});

vlcTest(
  "the fake Chromecast: VLC launches the player, loads a film, and sends it",
  {
    timeout: 60_000,
  },
  async () => {
    await using served = await serveChromecast();
    const scratch = await tempFolder("vlc");
    const film = scratch.file("film.ts");
    await writeFile(film, patternTs(20));
    await chmod(scratch.path, 0o755);
    // VLC does not run as root.
    const user =
      process.getuid?.() === 0 ? ["runuser", "-u", "nobody", "--", "env", "HOME=/nonexistent"] : [];
    const sout = `--sout=#chromecast{ip=127.0.0.1,port=${served.port},http-port=${await freePort()}}`;
    const [command, ...args] = [...user, "cvlc", film, sout, "--demux-filter=demux_chromecast"];
    const vlc = startProcess(command!, args);
    try {
      for (let left = 400; served.fake.loads.length === 0; left--) {
        assert.ok(left > 0, vlc.output());
        await pause(100);
      }
      const { contentId, contentType } = served.fake.loads[0]!.media as Record<string, string>;
      const answer = await fetch(contentId!);
      assert.equal(answer.headers.get("content-type"), contentType);
      const reader = answer.body!.getReader();
      assert.ok((await reader.read()).value!.length > 0);
      await reader.cancel();
    } finally {
      await vlc.stop();
      await scratch.remove();
    }
  },
);

test("CastControl: sends the same LOAD as pychromecast, over a real TLS connection", async () => {
  await using served = await serveChromecast();
  await playByPychromecast(served);
  const loopback = {
    host: "127.0.0.1",
    bits: 8,
    interfaceName: "lo",
    isLoopback: true,
    multicastAddress: "127.0.0.1",
  };
  const service = {
    type: "_googlecast._tcp.local",
    ...{ instance: "Chromecast", port: served.port, addresses: ["127.0.0.1"], isAlive: true },
    texts: new Map([["id", "1"]]),
  };
  const device = castDevice(runtime, { kind: "mdns", service, host: "127.0.0.1", network: loopback })!;
  const control = await device.connect();
  await control.play({
    url: "http://127.0.0.1/film.m3u8",
    mime: "application/vnd.apple.mpegurl",
    title: "Film",
    isLive: false,
    bytes: undefined,
    pictureUrl: undefined,
    subtitles: [{ language: "en-US", title: "English", vttUrl: "http://127.0.0.1/1.vtt", srtUrl: "" }],
  });
  await control.pause();
  await control.seek(61);
  assert.deepEqual(
    { ...(await control.status()), volume: 0 },
    { state: "paused", volume: 0, positionSeconds: 61, durationSeconds: 120 },
  );
  await control.stop();
  control.close();
  const loads = served.fake.loads as { media: Record<string, unknown> }[];
  assert.ok(loads.length >= 2);
  const [theirs, ours] = [loads[0], loads.at(-1)];
  for (const name of ["contentId", "contentType", "streamType"])
    assert.equal(ours!.media[name], theirs!.media[name], name);
  const track = ({ media }: { media: Record<string, unknown> }) => {
    const [{ trackId, type, subtype, trackContentId, trackContentType, language }] = media.tracks as [
      Record<string, unknown>,
    ];
    return { trackId, type, subtype, trackContentId, trackContentType, language };
  };
  assert.deepEqual(track(ours!), track(theirs!));
});
