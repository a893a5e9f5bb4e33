import assert from "node:assert/strict";
import { connect, createServer, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { engineCommand, freePort, startEngine } from "../parts/engine.ts";
import { startBroadcast, watchUrl } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startProcess } from "../parts/process.ts";
import { inRealTime } from "../parts/real-time.ts";
import { tempFolder } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("time");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Some four seconds of the test pattern. */
const SOME_BYTES = 100_000;
/** The upload limit for a refusal: handshakes, the metadata and a few messages, several times. */
const REFUSAL_BYTES = 20_000;

test(
  "a private source sends no media to a viewer that knows its address; its relay sends the stream",
  {
    timeout: 120_000,
  },
  inRealTime(async () => {
    const scratch = await tempFolder("live-relay");
    const relayPort = await freePort();
    const source = await startBroadcast("test-pattern", {
      flags: ["--private", "--relay", `127.0.0.1:${relayPort}`],
    });
    const [command, ...args] = engineCommand();
    const words = ["relay", source.transportFile, "--p2p-port", String(relayPort)];
    const relay = startProcess(command, [...args, ...words], {
      cwd: ROOT,
      env: { SLUICE_DATA_DIR: scratch.file("relay"), XDG_CONFIG_HOME: scratch.path },
    });
    const viewer = await startEngine();
    // The viewer can reach the source only through this forwarder, which counts the bytes of the source.
    const door = await countingDoor(source.p2pPort);
    try {
      await relay.line((line) => line.includes("Ctrl-C"));
      const magnet = `magnet:?xt=urn:btih:${source.infohash}&x.pe=127.0.0.1:${door.port}`;
      const response = await fetch(watchUrl(viewer, `${magnet}&x.pe=127.0.0.1:${relayPort}`));
      assert.equal(response.status, 200);
      let got = 0;
      for await (const bytes of response.body!) {
        got += bytes.length;
        if (got >= SOME_BYTES && door.calls > 0) break;
      }
      assert.ok(got >= SOME_BYTES, `the stream ended after ${got} bytes\n${viewer.output()}`);
      assert.ok(door.fromInside < REFUSAL_BYTES, `the source sent ${door.fromInside} bytes`);
    } finally {
      await Promise.all([viewer.stop(), relay.stop(), source.stop()]);
      await door.close();
      await scratch.remove();
    }
  }),
);

/** Passes connections on to a port of this machine, and counts them and what comes back. */
async function countingDoor(port: number) {
  const sockets = new Set<Socket>();
  let [calls, fromInside] = [0, 0];
  const server = createServer((outer) => {
    calls++;
    const inner = connect(port, "127.0.0.1");
    inner.on("data", (bytes) => {
      fromInside += bytes.length;
    });
    for (const [socket, other] of [
      [outer, inner],
      [inner, outer],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => other.destroy());
      socket.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as { port: number }).port,
    get calls() {
      return calls;
    },
    get fromInside() {
      return fromInside;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
