import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { runtime } from "#runtime";
import { createApp } from "../../routes/app.ts";
import { latin1Bytes, latin1Text } from "../../src/base/bytes.ts";
import { listenForTcpClients } from "../../src/cli/tcp-api.ts";
import type { Inspector } from "../../src/transfer/contract.ts";
import { fakeEngine, filmTorrent } from "../engine/fake-engine.ts";
import { keepingLog } from "../engine/parts.ts";
import { fakeLibrary } from "../library/fake-library.ts";

const film = filmTorrent("film");
const HTTP_PORT = 6878;

/** An engine with one film, its TCP API on a free port, and a scripted client. */
async function opened(
  work: (client: ScriptedClient, engine: ReturnType<typeof fakeEngine>) => Promise<void>,
) {
  const house = fakeEngine();
  house.transfers.prepare = (transfer) => transfer.bringData();
  const inspect: Partial<Inspector> = {
    describe: (selector) =>
      Promise.resolve({
        ...{ name: "film", infohash: film.infohash, contentId: film.infohash as never, type: "vod" },
        ...{
          transportType: "bt",
          transportFile: selector.kind === "transport_file" ? film.bytes : undefined,
        },
        files: [
          { index: 0, name: "a film.mp4", size: 9, offset: 0, mime: "video/mp4", isPlayable: true },
          { index: 1, name: "другой.mkv", size: 9, offset: 9, mime: "video/x-matroska", isPlayable: true },
        ],
      } as const),
    contentIdOf: () => Promise.resolve(film.infohash as never),
  };
  const engine = { ...house.engine, inspect: inspect as Inspector };
  const app = createApp({ engine, version: "1.2.3", library: fakeLibrary() });
  const listener = await listenForTcpClients(
    {
      runtime,
      fetch: (request, origin) => app.fetch(request, { origin }),
      httpPort: HTTP_PORT,
      networks: () => [],
      log: keepingLog(),
    },
    { host: "127.0.0.1", port: 0 },
  );
  const client = new ScriptedClient(listener.address.port);
  try {
    await work(client, house);
  } finally {
    client.close();
    await listener.close();
    await house.engine.stop();
  }
}

/** Sends lines, and waits for lines that begin with a word. */
class ScriptedClient {
  readonly lines: string[] = [];
  #isClosed = false;
  #text = "";
  #wake: () => void = () => {};
  readonly #socket: ReturnType<typeof runtime.net.connect>;

  constructor(port: number) {
    this.#socket = runtime.net.connect(
      { host: "127.0.0.1", port },
      {
        received: (bytes) => {
          this.#text += latin1Text(bytes);
          const lines = this.#text.split("\r\n");
          this.#text = lines.pop()!;
          this.lines.push(...lines);
          this.#wake();
        },
        drained() {},
        closed: () => {
          this.#isClosed = true;
          this.#wake();
        },
      },
      { timeoutMs: 5_000 },
    );
  }

  send(line: string): void {
    this.#socket.write(latin1Bytes(`${line}\r\n`));
  }

  sendRaw(text: string): void {
    this.#socket.write(latin1Bytes(text));
  }

  /** Returns the next line that begins with `word`, without it. */
  async next(word: string): Promise<string> {
    for (;;) {
      const at = this.lines.findIndex((line) => line.startsWith(word));
      if (at >= 0)
        return this.lines
          .splice(0, at + 1)
          .at(-1)!
          .slice(word.length)
          .trim();
      assert.ok(!this.#isClosed, `closed while waiting for ${word}`);
      await this.#change();
    }
  }

  async closed(): Promise<void> {
    while (!this.#isClosed) await this.#change();
  }

  close(): void {
    this.#socket.close();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** Introduces the client, as programs with a product key do. */
async function introduced(client: ScriptedClient): Promise<void> {
  client.send("HELLOBG version=3");
  const hello = new URLSearchParams((await client.next("HELLOTS")).split(" ").join("&"));
  assert.deepEqual([hello.get("version"), hello.get("http_port")], ["3.2.11", String(HTTP_PORT)]);
  assert.match(hello.get("version_code") ?? "", /^\d+$/);
  const answer = createHash("sha1")
    .update(`${hello.get("key")}product-key`)
    .digest("hex");
  client.send(`READY key=product-${answer}`);
  assert.equal(await client.next("AUTH"), "1");
  client.send("SETOPTIONS use_stop_notifications=1");
  client.send('USERDATA [{"gender": 1}, {"age": 3}]');
}

test("listenForTcpClients: load, start, status, stop, shutdown", () =>
  opened(async (client, { engine }) => {
    await introduced(client);
    client.send(`LOADASYNC 17 INFOHASH ${film.infohash} 0 0 0`);
    const loaded = await client.next("LOADRESP 17");
    assert.ok(!loaded.includes(" "), "clients join the words of the line");
    assert.deepEqual(JSON.parse(loaded), {
      status: 2,
      files: [
        ["a%20film.mp4", 0],
        [encodeURIComponent("другой.mkv"), 1],
      ],
      infohash: film.infohash,
      checksum: film.infohash,
    });
    client.send(`GETCID checksum=${film.infohash} infohash=${film.infohash} developer=0 affilate=0 zone=0`);
    assert.equal(await client.next("##"), film.infohash);
    client.send(`START RAW ${Buffer.from(film.bytes).toString("base64")} 1 0 0 0 output_format=http`);
    assert.equal(await client.next("STATE"), "1");
    const start = new Map(
      (await client.next("START")).split(" ").map((word) => word.split("=") as [string, string]),
    );
    assert.equal(start.get("infohash"), film.infohash);
    const url = start.get("url")!;
    assert.match(url, /^http:\/\/127\.0\.0\.1:6878\/ace\/r\/[0-9a-f]{40}\/[0-9a-f]{32}$/);
    assert.equal(await client.next("STATE"), "2");
    const status = (await client.next("STATUS")).split(";");
    assert.deepEqual([status.length, status[0]], [11, "main:dl"]);
    assert.equal(engine.figures().sessions, 1);
    client.send("STOP");
    assert.equal(await client.next("STOP"), "");
    assert.equal(await client.next("STATE"), "0");
    assert.equal(engine.figures().sessions, 0);
    client.send(`START PID ${film.infohash} 1 output_format=hls`);
    assert.match(await client.next("START"), /url=\S+\/ace\/m\/\S+\.m3u8 /);
    client.send("SHUTDOWN");
    await client.next("SHUTDOWN");
    await client.closed();
    assert.equal(engine.figures().sessions, 0);
  }));

test("listenForTcpClients: a session ends with its connection", () =>
  opened(async (client, { engine }) => {
    await introduced(client);
    client.send(`START RAW ${Buffer.from(film.bytes).toString("base64")} 0 0 0 0 output_format=http`);
    await client.next("START");
    client.close();
    while (engine.figures().sessions > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  }));

test("listenForTcpClients: errors are one line; commands before READY are refused", () =>
  opened(async (client) => {
    client.send("HELLOBG version=3");
    await client.next("HELLOTS");
    client.send(`START PID ${film.infohash} 0`);
    await client.next("NOTREADY");
    client.send("READY key=x");
    await client.next("AUTH");
    client.send("LOADASYNC 1 SOMETHING x");
    assert.equal(JSON.parse(await client.next("LOADRESP 1")).status, 100);
    client.send("START INFOHASH xyz 0 0 0 0");
    assert.match(await client.next("STATUS"), /^main:err;0;failed%20to%20load%20content/);
    assert.equal(await client.next("STATE"), "0");
    client.send("DANCE");
    client.send("LIVESEEK 5");
    client.send("SHUTDOWN");
    await client.next("SHUTDOWN");
  }));

for (const [what, text] of [
  ["another protocol", "GET / HTTP/1.1\r\n"],
  ["a first line without end", "x".repeat(1_500)],
] as const) {
  test(`listenForTcpClients: closes a client that sends ${what}`, () =>
    opened(async (client) => {
      client.sendRaw(text);
      await client.closed();
    }));
}

test("listenForTcpClients: closes a client that sends a long line, or commands faster than they are processed", () =>
  opened(async (client) => {
    await introduced(client);
    client.sendRaw("x".repeat(1_200_000));
    await client.closed();
  }));
