import assert from "node:assert/strict";
import { chmod, copyFile, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { freePort, runtimeCommand } from "../parts/engine.ts";
import { fixturePath } from "../parts/media-fixtures.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type RunningProcess, run, startProcess } from "../parts/process.ts";
import { inRealTime } from "../parts/real-time.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { checkTs } from "../remux/ts-checker.ts";

const { after, afterEach, before, describe, test } = await testsThatNeed("time");

const { test: ffmpegTest } = await testsThatNeed("ffmpeg");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const [RUNTIME, ...RUNTIME_ARGS] = runtimeCommand();

/** What `--json` prints. */
interface Facts {
  readonly name: string;
  readonly title: string;
  readonly infohash: string;
  readonly content_id: string;
  readonly link: string;
  readonly magnet: string;
  readonly transport_file: string;
  readonly addresses: readonly string[];
  readonly p2p_port: number;
  readonly http_url: string;
}

describe("sluice broadcast, relay and play", { timeout: 600_000 }, () => {
  let scratch: TempFolder;
  const running = new Set<RunningProcess>();

  before(async () => {
    scratch = await tempFolder("broadcast");
  });
  afterEach(async () => {
    await Promise.all([...running].map((each) => each.stop()));
    running.clear();
  });
  after(() => scratch?.remove());

  /** Starts the program on loopback with a data folder of the test. */
  function start(dataDir: string, ...args: string[]): RunningProcess {
    const env = {
      SLUICE_P2P_HOST: "127.0.0.1",
      SLUICE_DATA_DIR: scratch.file(dataDir),
      XDG_CONFIG_HOME: scratch.path,
    };
    const each = startProcess(RUNTIME, [...RUNTIME_ARGS, "src/main.ts", ...args], { cwd: ROOT, env });
    running.add(each);
    return each;
  }

  /** Runs the program to its end. */
  async function ran(dataDir: string, ...args: string[]) {
    const each = start(dataDir, ...args);
    const code = await new Promise<number | null>((resolve) => each.child.on("close", resolve));
    return { code, output: each.output() };
  }

  async function onAir(dataDir: string, ...args: string[]) {
    const process = start(dataDir, "broadcast", "--test-pattern", "--json", ...args);
    const line = await process.line((each) => each.startsWith("{"));
    return { process, facts: JSON.parse(line) as Facts };
  }

  /** Sends the signal of Ctrl-C, and resolves to the exit code. */
  function interrupted({ child, pid }: RunningProcess, signal: "SIGINT" | "SIGTERM" = "SIGINT") {
    const closed = new Promise<number | null>((resolve) => child.on("close", resolve));
    process.kill(pid, signal);
    return closed;
  }

  /** Watches a broadcast of the test pattern by its link; `judge` looks at the file that `play` wrote. */
  const watched = (judge: (path: string) => Promise<void>) =>
    inRealTime(async () => {
      const { process: source, facts } = await onAir("source", "--title", "A clock");
      assert.deepEqual([facts.name, facts.title], ["test-pattern", "A clock"]);
      assert.deepEqual(facts.addresses, [`127.0.0.1:${facts.p2p_port}`]);
      assert.ok((await stat(facts.transport_file)).size < 1000);

      const out = scratch.file("watched.ts");
      const viewer = start("viewer", "play", facts.link, "--output", out);
      await viewer.line((line) => /^A clock · .* behind live · 1 peer · /.test(line));
      await written(`${out}.part`, 100_000);
      assert.equal(await interrupted(viewer), 0, viewer.output());
      await judge(out);

      assert.equal(await interrupted(source, "SIGTERM"), 0, source.output());
      assert.match(source.output(), /stopping/);
    });

  test(
    "broadcast --test-pattern: play needs only its link, and receives valid MPEG-TS",
    watched(async (path) => {
      const report = checkTs(await readFile(path), { isPassThrough: true });
      assert.deepEqual(report.faults, []);
      assert.ok(report.keyframes > 0);
      assert.equal(report.units.size, 2, "picture and sound");
    }),
  );

  ffmpegTest(
    "broadcast --test-pattern: ffmpeg decodes what play wrote without an error",
    watched(async (path) => {
      const query = ["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", path];
      const streams = await run("ffprobe", query);
      assert.deepEqual(new Set(streams.split(/\s+/).filter(Boolean)), new Set(["h264", "aac"]));
      const complaints = await run("ffmpeg", ["-v", "error", "-xerror", "-i", path, "-f", "null", "-"]);
      assert.equal(complaints, "");
    }),
  );

  /** Plays a live stream in a player, which a shell command is, and into a pipe. */
  const playedBy = (command: string) =>
    inRealTime(async () => {
      const { facts } = await onAir("players");
      const player = scratch.file("player");
      await writeFile(player, `#!/bin/sh\nexec ${command}\n`);
      await chmod(player, 0o755);
      const played = await ran("viewer", "play", facts.link, "--player", player);
      assert.equal(played.code, 0, played.output);
      assert.doesNotMatch(played.output, /error|invalid/i);

      const program = [RUNTIME, ...RUNTIME_ARGS, "src/main.ts", "play", `'${facts.link}'`, "-o", "-"].join(
        " ",
      );
      const env = { SLUICE_P2P_HOST: "127.0.0.1", SLUICE_DATA_DIR: scratch.file("viewer") };
      const piped = startProcess("sh", ["-c", `${program} | head -c 60000 | wc -c`], { cwd: ROOT, env });
      running.add(piped);
      assert.equal((await piped.line((line) => /^\s*\d+$/.test(line))).trim(), "60000");
      await new Promise((resolve) => piped.child.on("close", resolve));
    });
  const takeBytes = `${[RUNTIME, ...RUNTIME_ARGS].join(" ")} ${ROOT}tests/parts/take-bytes.ts "$1" 50000`;
  test("play: a live stream in a player, and into a pipe whose reader closes", playedBy(takeBytes));
  ffmpegTest(
    "play: a live stream in ffmpeg, and into a pipe",
    playedBy('ffmpeg -v error -t 1 -i "$1" -f null -'),
  );

  test("broadcast: has a preview over HTTP; the second start is the same stream", async () => {
    const first = await onAir("again", "--name", "A clock");
    const { http_url, infohash } = first.facts;
    const body = (await fetch(`${http_url}/ace/getstream?infohash=${infohash}`)).body!.getReader();
    const { value } = await body.read();
    assert.equal(value?.[0], 0x47);
    await body.cancel();
    assert.equal(await interrupted(first.process), 0);
    const second = await onAir("again", "--name", "A clock");
    assert.deepEqual({ ...second.facts, http_url }, first.facts);

    const twice = await ran("again", "broadcast", "--test-pattern", "--name", "A clock", "--p2p-port", "0");
    assert.notEqual(twice.code, 0);
    assert.match(twice.output, /^sluice: A clock is being broadcast/m);
    const list = await ran("again", "broadcast", "--list");
    assert.match(list.output, new RegExp(`^${infohash} {2}\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d {2}A clock$`));
    assert.deepEqual(await readdir(scratch.file("again/broadcasts")), ["A clock"]);
  });

  test("broadcast: http_url of a wildcard host is a reachable address", async () => {
    const { facts } = await onAir("everywhere", "--host", "0.0.0.0");
    assert.doesNotMatch(facts.http_url, /0\.0\.0\.0/);
    assert.equal(
      (await fetch(`${facts.http_url}/ace/getstream?infohash=${facts.infohash}&format=json`)).status,
      200,
    );
  });

  test("broadcast FILE: ends with the file; another format is refused with the ffmpeg command that converts it", async () => {
    const film = scratch.file("film.ts");
    await copyFile(fixturePath("tables.mpegts"), film);
    const shown = await ran("file", "broadcast", film);
    assert.equal(shown.code, 0, shown.output);
    assert.match(shown.output, /^On air: film$/m);
    assert.match(shown.output, /the source has ended/);

    await writeFile(scratch.file("film.txt"), "no packets here\n".repeat(1000));
    const refused = await ran("file", "broadcast", scratch.file("film.txt"));
    assert.equal(refused.code, 1);
    assert.match(
      refused.output,
      /^sluice: .*MPEG-TS.*\. ffmpeg can convert it: ffmpeg -re -i '.*film\.txt' .* sluice broadcast -$/m,
    );
    await writeFile(scratch.file("empty.ts"), "");
    const empty = await ran("file", "broadcast", scratch.file("empty.ts"));
    assert.deepEqual([empty.code, empty.output.includes("the file is empty")], [1, true], empty.output);
    const absent = await ran("file", "broadcast", scratch.file("none.ts"));
    assert.deepEqual(
      [absent.code, /none\.ts.*there is no such file/.test(absent.output)],
      [1, true],
      absent.output,
    );
  });

  /** Broadcasts what a shell command writes. */
  const pipedFrom = (feeding: string) =>
    inRealTime(async () => {
      const program = [RUNTIME, ...RUNTIME_ARGS, "src/main.ts", "broadcast", "-", "--json"].join(" ");
      const env = { SLUICE_P2P_HOST: "127.0.0.1", SLUICE_DATA_DIR: scratch.file("pipe") };
      const broadcast = startProcess("sh", ["-c", `${feeding} | ${program}`], { cwd: ROOT, env });
      running.add(broadcast);
      const { name } = JSON.parse(await broadcast.line((line) => line.startsWith("{"))) as Facts;
      assert.equal(name, "piped-in");
      await broadcast.line((line) => line.includes("the source has ended"));
    });
  test("broadcast -: reads standard input", pipedFrom(`cat '${fixturePath("tables.mpegts")}'`));
  ffmpegTest(
    "broadcast -: reads the output of ffmpeg",
    pipedFrom(
      "ffmpeg -v error -f lavfi -i testsrc2=size=320x180:rate=25:duration=3 -c:v libx264 -g 25 -f mpegts -",
    ),
  );

  test(
    "relay: receives a private stream, and viewers receive it only from the relay",
    inRealTime(async () => {
      const port = await freePort();
      const relay = `127.0.0.1:${port}`;
      const args = ["--name", "private", "--private", "--relay", relay];
      // The first start creates the transport file, which the relay needs.
      const { process: first, facts } = await onAir("private", ...args);
      assert.equal(await interrupted(first), 0);
      assert.ok(!facts.link.includes(String(facts.p2p_port)), "the source is not named to viewers");
      const relaying = start("relay", "relay", facts.transport_file, "--p2p-port", String(port));
      await relaying.line((line) => line.includes(`--relay ${relay}`));
      await onAir("private", ...args);
      const out = scratch.file("relayed.ts");
      const viewer = start("viewer", "play", facts.link, "--output", out);
      await written(`${out}.part`, 100_000);
      assert.equal(await interrupted(viewer), 0, viewer.output());
      assert.equal(await interrupted(relaying), 0, relaying.output());
    }),
  );

  test("broadcast: failures are one line and exit code 1", async () => {
    await writeFile(scratch.file("no-folder"), "");
    const cases: readonly (readonly [dataDir: string, args: string[], message: RegExp])[] = [
      ["no-folder", [], /cannot use .*no-folder.*--data-dir/],
      ["refused", ["--relay", "nosuch.invalid:80"], /relay: cannot resolve nosuch\.invalid/],
      ["refused", ["--private"], /private: .*add one with relay/],
      ["refused", ["--name", "../x"], /name: expected/],
    ];
    for (const [dataDir, args, message] of cases) {
      const { code, output } = await ran(
        dataDir,
        "broadcast",
        "--test-pattern",
        "--dht",
        "off",
        "--p2p-port",
        "0",
        ...args,
      );
      assert.deepEqual([code, output.split("\n").length], [1, 1], output);
      assert.match(output, message);
    }
  });

  test("broadcast: usage errors are one line and exit code 2", async () => {
    const cases: readonly (readonly [args: string[], message: RegExp])[] = [
      [[], /expected a source/],
      [["--test-pattern", "film.ts"], /remove "film\.ts"/],
      [["-", "--bitrate", "fast"], /--bitrate: expected bits/],
      [["--test-patern"], /did you mean --test-pattern\?/],
    ];
    for (const [args, message] of cases) {
      const { code, output } = await ran("usage", "broadcast", ...args);
      assert.deepEqual([code, output.split("\n").length], [2, 1], output);
      assert.match(output, message);
    }
  });

  test(
    "broadcast_start: on air again after a restart of the engine, until broadcast_stop",
    inRealTime(async () => {
      const ports = ["--http-port", String(await freePort()), "--p2p-port", String(await freePort())];
      const base = `http://127.0.0.1:${ports[1]}/server/api?api_version=3`;
      const ask = async (query: string) => {
        const { result, error } = await (await fetch(`${base}&${query}`)).json();
        if (error) throw new Error(JSON.stringify(error));
        return result;
      };
      const engine = async () => {
        const process = start("engine", "serve", ...ports);
        await process.line((line) => line.includes("Ctrl-C"));
        return process;
      };
      let serving = await engine();
      const { token } = await ask("method=get_api_access_token");
      const made = await ask(`method=broadcast_start&token=${token}&test_pattern=1&name=clock`);
      assert.match(made.link, new RegExp(`x\\.pe.*${ports[3]}`));
      assert.equal(await interrupted(serving), 0, serving.output());

      serving = await engine();
      const again = async () => (await ask(`method=broadcast_list&token=${token}`)).broadcasts[0];
      let now = await again();
      while (now.status === "waiting" && now.infohash === null) now = await again();
      assert.deepEqual([now.name, now.infohash], ["clock", made.infohash]);
      await ask(`method=broadcast_stop&token=${token}&name=clock`);
      assert.equal(await interrupted(serving), 0);
      serving = await engine();
      assert.equal(await again(), undefined);
    }),
  );
});

/** Waits until a file has at least `bytes` bytes; the time limit of the test ends it. */
async function written(path: string, bytes: number): Promise<void> {
  for (;;) {
    const size = await stat(path).then(
      (facts) => facts.size,
      () => 0,
    );
    if (size >= bytes) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
