import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import type { ByteStreamOpener, TcpHandlers, TcpSocket } from "../../src/runtime/contract.ts";
import { parseLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { TRANSPORT_FILE } from "../wire/live-vectors.ts";
import { sha1 } from "../wire/make-torrent.ts";
import { fakeApp, LOCAL } from "./client.ts";

const file = parseLiveTransportFile(TRANSPORT_FILE, sha1, runtime.ed25519Verifier);
const PATH = `/swarm/${file.infohash}`;

/** An engine that broadcasts the stream of the test vectors. */
function engineOnAir() {
  const app = fakeApp();
  app.transfers.prepare = (transfer) => {
    transfer.bringFiles([]);
    if (transfer.infohash === file.infohash)
      transfer.live = { content: { file, role: "source" }, figures: () => ({}) } as never;
  };
  return app;
}

test("GET /swarm/<infohash>: the transport file of a live stream; an error for other content", async () => {
  const { call } = engineOnAir();
  const response = await call(PATH);
  assert.equal(response.status, 200);
  assert.deepEqual(new Uint8Array(await response.arrayBuffer()), new Uint8Array(TRANSPORT_FILE));
  assert.equal((await call(`/swarm/${"ab".repeat(20)}`)).status, 415);
  assert.equal((await call("/swarm/nothing")).status, 400);
});

test("GET /swarm/<infohash> as a WebSocket: the client's connection goes to the stream, which stays open until it closes", async () => {
  const { engine, transfers, call, ...app } = engineOnAir();
  await call(PATH);
  const socket = { remote: LOCAL.remote, close() {} } as unknown as TcpSocket;
  let handlers: TcpHandlers | undefined;
  const acceptWebSocket = ({ remote, open }: ByteStreamOpener) => {
    assert.deepEqual(remote, LOCAL.remote);
    handlers = open(socket);
    return new Response(null);
  };
  const ask = (headers: Record<string, string>) =>
    app.fetch(
      new Request(`http://127.0.0.1:6878${PATH}`, { headers: { host: "127.0.0.1:6878", ...headers } }),
      {
        ...{ origin: LOCAL, acceptWebSocket: acceptWebSocket as never },
      },
    );
  assert.equal((await ask({ origin: "https://evil.example" })).status, 403);
  assert.equal(transfers.accepted.length, 0);
  assert.equal((await ask({ origin: "http://127.0.0.1:6878" })).status, 200);
  assert.deepEqual(transfers.accepted, [{ infohash: file.infohash, socket }]);
  const holders = () => engine.figures().transfers.map((each) => each.holders);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(holders(), [1]);
  handlers!.closed("closed by the peer");
  assert.deepEqual(holders(), [0]);
});
