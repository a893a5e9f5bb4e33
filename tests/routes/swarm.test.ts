import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SluiceError } from "../../src/base/errors.ts";
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

test("GET /swarm/<infohash>/pieces/…: a segment by its number, the recent pieces, and errors for all else", async () => {
  const app = fakeApp();
  const pieces = {
    list: () => [],
    recent: async () => Uint8Array.of(1, 2, 3),
    async segment(number: number) {
      if (number === 7) return Uint8Array.of(7);
      throw new SluiceError("no_such_segment", "the segment has left the live window");
    },
  };
  app.transfers.prepare = (transfer) => {
    transfer.bringFiles([]);
    const live = { content: { file, role: "viewer" }, figures: () => ({}), pieces };
    transfer.live = (transfer.infohash === file.infohash ? live : { ...live, pieces: undefined }) as never;
  };
  const bytesOf = async (path: string) => {
    const response = await app.call(path);
    assert.equal(response.status, 200, path);
    assert.equal(response.headers.get("cache-control"), "no-store");
    return [...new Uint8Array(await response.arrayBuffer())];
  };
  assert.deepEqual(await bytesOf(`${PATH}/pieces/recent`), [1, 2, 3]);
  assert.deepEqual(await bytesOf(`${PATH}/pieces/7`), [7]);
  for (const path of ["8", "-1", "7.5", "x", "%2e%2e"].map((name) => `${PATH}/pieces/${name}`))
    assert.equal((await app.call(path)).status, 404, path);
  assert.equal((await app.call(`/swarm/${"ab".repeat(20)}/pieces/7`)).status, 404);
  assert.equal((await app.call("/swarm/nothing/pieces/7")).status, 400);
});

/** Requests a WebSocket at a path; `opened` gets the handlers of the connection. */
function connect(
  app: Pick<ReturnType<typeof fakeApp>, "fetch">,
  path: string,
  { origin, socket }: { readonly origin: string; readonly socket: TcpSocket },
  opened: (handlers: TcpHandlers) => void = () => {},
): Promise<Response> {
  const acceptWebSocket = ({ remote, open }: ByteStreamOpener) => {
    assert.deepEqual(remote, LOCAL.remote);
    opened(open(socket));
    return new Response(null);
  };
  const request = new Request(`http://127.0.0.1:6878${path}`, {
    headers: { host: "127.0.0.1:6878", origin },
  });
  return Promise.resolve(app.fetch(request, { origin: LOCAL, acceptWebSocket: acceptWebSocket as never }));
}

test("GET /swarm/<infohash> as a WebSocket: the client's connection goes to the stream, which stays open until it closes", async () => {
  const { engine, transfers, call, ...app } = engineOnAir();
  await call(PATH);
  const socket = { remote: LOCAL.remote, close() {} } as unknown as TcpSocket;
  let handlers: TcpHandlers | undefined;
  const origin = "http://127.0.0.1:6878";
  const { status } = await connect(app, PATH, { origin, socket }, (given) => {
    handlers = given;
  });
  assert.equal(status, 200);
  assert.deepEqual(transfers.accepted, [{ infohash: file.infohash, socket }]);
  const holders = () => engine.figures().transfers.map((each) => each.holders);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(holders(), [1]);
  handlers!.closed("closed by the peer");
  assert.deepEqual(holders(), [0]);
});

test("GET /swarm/<infohash> as a WebSocket: pages of other sites share four streams", async () => {
  const { engine, transfers, call, ...app } = engineOnAir();
  await call(PATH);
  let closed = 0;
  const socket = { remote: LOCAL.remote, close: () => closed++ } as unknown as TcpSocket;
  const origin = "https://evil.example";
  for (const digit of "12345") await connect(app, `/swarm/${digit.repeat(40)}`, { origin, socket });
  // The stream that the engine has open anyway does not count.
  await connect(app, PATH, { origin, socket });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(closed, 1);
  assert.equal(engine.figures().transfers.length, 5);
});
