import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { type EngineProcess, startEngine, startSession } from "../parts/engine.ts";
import { type BroadcastProcess, startBroadcast, watchUrl } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { inRealTime } from "../parts/real-time.ts";
import { MarkReader } from "../parts/timed-stream.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { hasFfmpeg, lavfi } from "../remux/make-media.ts";

const { after, before, describe, test } = await testsThatNeed("ffmpeg");

const SLOW = { timeout: 90_000 };
const WITH_FFMPEG = { ...SLOW, skip: (await hasFfmpeg()) ? false : "ffmpeg is not installed" };
/** 8 Mbit/s: sockets hold some seconds of it. */
const BYTES_PER_SECOND = 1_000_000;
/** More than the sockets of a player that has stopped reading hold. */
const STALL_BYTES = 10_000_000;
/** The time checked after a viewer is killed: longer than the wait for missing data. */
const AFTER_KILL_BYTES = 5_000_000;

describe("viewers of one live stream, by real processes", { timeout: 240_000 }, () => {
  let source: BroadcastProcess;
  let engines: EngineProcess[] = [];

  before(async () => {
    // Upload for slightly more than two copies: three viewers must also share with each other.
    const uploadLimit = `${2.2 * BYTES_PER_SECOND}`;
    const flags = ["--upload-limit", uploadLimit];
    source = await startBroadcast({ timedBytesPerSecond: BYTES_PER_SECOND }, { flags });
    // A long wait for missing data: a machine that is busy for seconds must not count as loss.
    const patient = { env: { SLUICE_LIVE_LAG: "safe" } };
    engines = await Promise.all([startEngine(patient), startEngine(patient), startEngine(patient)]);
  }, SLOW);
  after(async () => {
    await Promise.all(engines.map((engine) => engine.stop()));
    await source?.stop();
  });

  /** A player that has watched for a while: this test does not measure the cost of joining. */
  const settled = async (engine: EngineProcess): Promise<Player> => {
    const player = await Player.start(watchUrl(engine, source.magnet));
    await player.read(3 * BYTES_PER_SECOND);
    return player;
  };

  test(
    "a player that stops reading delays no other player, and misses nothing when it continues",
    SLOW,
    inRealTime(async () => {
      const first = await settled(engines[0]!);
      const { playback_url } = await startSession(engines[0]!, "getstream", { magnet: source.magnet });
      const stalled = await StalledPlayer.start(playback_url);
      const other = await Player.start(watchUrl(engines[0]!, source.magnet));
      await other.read(STALL_BYTES);
      assert.equal(other.missing, 0);
      stalled.resume();
      await stalled.reaches(other.last);
      assert.equal(stalled.missing, 0);
      await other.read(BYTES_PER_SECOND);
      assert.equal(other.missing, 0);
      stalled.close();
      await Promise.all([first.close(), other.close()]);
    }),
  );

  test(
    "a viewer that is killed costs the others nothing",
    SLOW,
    inRealTime(async () => {
      const players: Player[] = [];
      for (const engine of engines) players.push(await settled(engine));
      const [killed, ...others] = players;
      for (const player of players) player.forget();
      engines[0]!.child.kill("SIGKILL");
      await Promise.all(others.map((player) => player.read(AFTER_KILL_BYTES)));
      assert.deepEqual(
        others.map(({ missing }) => missing),
        [0, 0],
      );
      await Promise.all(others.map((player) => player.close()));
      await killed!.close();
    }),
  );
});

describe("a broadcast of a file, to its end", { timeout: 120_000 }, () => {
  let scratch: TempFolder;

  before(async () => {
    scratch = await tempFolder("live-end");
  });
  after(() => scratch?.remove());

  test(
    "ends MPEG-TS and HLS playback after the last frame",
    WITH_FFMPEG,
    inRealTime(async () => {
      const film = scratch.file("film.ts");
      await run("ffmpeg", [
        ...["-v", "error", ...lavfi(12), "-c:v", "libx264", "-preset", "ultrafast", "-g", "25"],
        ...["-c:a", "aac", "-f", "mpegts", film],
      ]);
      const [source, engine] = await Promise.all([startBroadcast({ place: film }), startEngine()]);
      try {
        const ends = ["getstream", "manifest.m3u8"].map((output) =>
          run("ffmpeg", [
            ...["-v", "warning", "-i", watchUrl(engine, source.magnet, output), "-map", "0:v", "-c", "copy"],
            ...["-f", "framecrc", "-"],
          ]),
        );
        const last = (
          await run("ffmpeg", ["-v", "error", "-i", film, "-map", "0:v", "-c", "copy", "-f", "framecrc", "-"])
        )
          .trimEnd()
          .split("\n")
          .at(-1)!;
        for (const said of await Promise.all(ends)) {
          const lines = said.trimEnd().split("\n");
          assert.deepEqual(
            lines.filter((line) => !/^(#|0,)/.test(line)),
            [],
          );
          assert.equal(sizeAndHash(lines.at(-1)!), sizeAndHash(last));
        }
      } finally {
        await Promise.all([engine.stop(), source.stop()]);
      }
    }),
  );
});

/** The fields of a framecrc line: `stream, dts, pts, duration, size, hash`. */
function sizeAndHash(line: string): string {
  return line.split(",").slice(4).join(",");
}

/** Counts what is missing between the first mark and the last. */
class Marks {
  readonly #reader = new MarkReader();
  missing = 0;
  last = -1;

  push(bytes: Uint8Array): void {
    for (const { index } of this.#reader.push(bytes)) {
      if (this.last >= 0) this.missing += Math.abs(index - this.last - 1);
      this.last = index;
    }
  }
}

/** Reads a stream as it comes. */
class Player {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #marks = new Marks();

  private constructor(reader: ReadableStreamDefaultReader<Uint8Array>) {
    this.#reader = reader;
  }

  static async start(url: string): Promise<Player> {
    const response = await fetch(url);
    assert.equal(response.status, 200);
    return new Player(response.body!.getReader());
  }

  get missing(): number {
    return this.#marks.missing;
  }

  get last(): number {
    return this.#marks.last;
  }

  /** Counts missing marks from here on. */
  forget(): void {
    this.#marks.missing = 0;
  }

  async read(bytes: number): Promise<void> {
    for (let got = 0; got < bytes; ) {
      const { done, value } = await this.#reader.read();
      assert.ok(!done, "the stream ended");
      got += value.length;
      this.#marks.push(value);
    }
  }

  async close(): Promise<void> {
    // The engine may have stopped.
    await this.#reader.cancel().catch(() => {});
  }
}

/** Requests a stream and does not read until the caller starts it. */
class StalledPlayer {
  readonly #socket: Socket;
  readonly #marks = new Marks();
  #head = Buffer.alloc(0);
  #isBody = false;
  #heard: () => void = () => {};

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  static async start(url: string): Promise<StalledPlayer> {
    const { hostname, port, pathname, search } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port) });
    await new Promise<void>((resolve) => socket.once("connect", resolve));
    // HTTP/1.0: the body comes without chunks.
    socket.write(`GET ${pathname}${search} HTTP/1.0\r\nHost: ${hostname}:${port}\r\n\r\n`);
    socket.pause();
    return new StalledPlayer(socket);
  }

  get missing(): number {
    return this.#marks.missing;
  }

  resume(): void {
    this.#socket.on("data", (bytes: Buffer) => {
      if (this.#isBody) this.#marks.push(bytes);
      else {
        this.#head = Buffer.concat([this.#head, bytes]);
        const end = this.#head.indexOf("\r\n\r\n");
        if (end < 0) return;
        this.#isBody = true;
        this.#marks.push(this.#head.subarray(end + 4));
      }
      this.#heard();
    });
    this.#socket.on("close", () => this.#heard());
    this.#socket.resume();
  }

  /** Resolves when the player has received that mark. */
  async reaches(index: number): Promise<void> {
    while (this.#marks.last < index) {
      assert.ok(
        !this.#socket.destroyed,
        `let go at ${this.#marks.last} of ${index}: ${this.#head.subarray(0, 500)}`,
      );
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
    }
  }

  close(): void {
    this.#socket.destroy();
  }
}
