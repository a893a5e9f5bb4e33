import assert from "node:assert/strict";
import { test } from "node:test";
import { someBytes } from "../../engine/parts.ts";
import { makeTorrent } from "../../wire/make-torrent.ts";
import { startSeedServer } from "./seed-server.ts";
import { seededTransfer, until } from "./seeded-transfer.ts";

const PIECE = 64 * 1024;
const FILM = someBytes(20 * PIECE + 777);
const MADE = makeTorrent({
  name: "a film.mp4",
  files: [{ path: "a film.mp4", bytes: FILM }],
  pieceLength: PIECE,
});
const AT = "/a%20film.mp4";

test("WebSeeds: content without other peers is read in long ranges, also after a seek", async () => {
  const server = await startSeedServer({ [AT]: FILM });
  const { transfer, stop } = await seededTransfer(MADE, [`${server.url}/`]);
  try {
    await transfer.ready();
    const source = transfer.source(0);
    const far = 15 * PIECE + 5;
    assert.deepEqual(await source.read({ start: far, end: far + 100 }), FILM.slice(far, far + 100));
    assert.deepEqual(await source.read({ start: 0, end: FILM.length }), FILM);
    const { connectedPeers, webSeeds, peers, wasted } = transfer.figures;
    assert.deepEqual({ connectedPeers, webSeeds, wasted }, { connectedPeers: 1, webSeeds: 1, wasted: 0 });
    assert.equal(peers[0]?.client, `web seed ${server.url.slice("http://".length)}`);
    assert.equal(peers[0]?.origin, "web");
    assert.ok(server.asked.length <= 6, `${server.asked.length} questions`);
    const bytes = server.asked.reduce((sum, { start, end }) => sum + end - start, 0);
    assert.ok(bytes < 2 * FILM.length, `${bytes} bytes asked for`);
  } finally {
    await stop();
    await server.close();
  }
});

test("WebSeeds: reads many files, blocks across two files, and padding", async () => {
  const parts = {
    "a.bin": someBytes(30_000, 2),
    "sub/b c.bin": someBytes(100_000, 3),
    "z.bin": someBytes(5, 4),
  };
  const [a, b, z] = Object.entries(parts).map(([path, bytes]) => ({ path, bytes }));
  const pad = { path: ".pad/2768", bytes: new Uint8Array(2768), attr: "p" };
  const made = makeTorrent({ name: "top", files: [a!, pad, b!, z!], pieceLength: 32_768 });
  const server = await startSeedServer({
    "/d/top/a.bin": parts["a.bin"],
    "/d/top/sub/b%20c.bin": parts["sub/b c.bin"],
    "/d/top/z.bin": parts["z.bin"],
  });
  const { transfer, stop } = await seededTransfer(made, [`${server.url}/d`]);
  try {
    await transfer.ready();
    for (const { index, name, size } of transfer.files) {
      const bytes = await transfer.source(index).read({ start: 0, end: size });
      assert.deepEqual(bytes, parts[name.replace(/^top\//, "") as keyof typeof parts] ?? bytes, name);
    }
    assert.equal(transfer.figures.bannedPeers, 0);
    assert.deepEqual(new Set(server.asked.map(({ path }) => path)).size, 3);
  } finally {
    await stop();
    await server.close();
  }
});

test("WebSeeds: after a lost connection the transfer continues at the next missing byte", async () => {
  const server = await startSeedServer({ [AT]: FILM }, ({ start, end }, response) => {
    response.writeHead(206, {
      "content-range": `bytes ${start}-${end - 1}/${FILM.length}`,
      "content-length": String(end - start),
    });
    response.write(FILM.subarray(start, Math.min(end, start + 300_000)), () => {
      if (end - start > 300_000) response.destroy();
      else response.end();
    });
    return true;
  });
  const { transfer, stop } = await seededTransfer(MADE, [`${server.url}${AT}`]);
  try {
    await transfer.ready();
    assert.deepEqual(await transfer.source(0).read({ start: 0, end: FILM.length }), FILM);
    assert.equal(transfer.figures.wasted, 0);
  } finally {
    await stop();
    await server.close();
  }
});

test("WebSeeds: a redirect is followed once and remembered", async () => {
  const target = await startSeedServer({ "/x": FILM });
  const server = await startSeedServer({}, (_asked, response) => {
    response.writeHead(302, { location: `${target.url}/x` }).end();
    return true;
  });
  const { transfer, stop } = await seededTransfer(MADE, [`${server.url}${AT}`]);
  try {
    await transfer.ready();
    assert.deepEqual(await transfer.source(0).read({ start: 0, end: FILM.length }), FILM);
    assert.equal(server.asked.length, 1);
    assert.ok(target.asked.length > 1);
  } finally {
    await stop();
    await server.close();
    await target.close();
  }
});

test("WebSeeds: a query string is not sent to a private address", async () => {
  const server = await startSeedServer({ [AT]: FILM });
  const redirector = await startSeedServer({}, (_asked, response) => {
    response.writeHead(302, { location: `${server.url}${AT}?do=it` }).end();
    return true;
  });
  const urls = [`${server.url}${AT}?do=it`, `${redirector.url}${AT}`];
  const { transfer, log, stop } = await seededTransfer(MADE, urls);
  try {
    await transfer.ready();
    const read = transfer.source(0).read({ start: 0, end: 1 });
    read.catch(() => {});
    await until(() => log.warnings.length === 2);
    assert.match(transfer.figures.webSeedProblem ?? "", /must not have a query string/);
    assert.deepEqual([redirector.asked.length, server.asked.length], [1, 0]);
  } finally {
    await stop();
    await server.close();
    await redirector.close();
  }
});

test("WebSeeds: a server that lacks one file is used for the others", async () => {
  const bytes = [someBytes(PIECE, 5), someBytes(PIECE, 6)] as const;
  const files = [
    { path: "a", bytes: bytes[0] },
    { path: "b", bytes: bytes[1] },
  ];
  const made = makeTorrent({ name: "top", files, pieceLength: PIECE });
  const half = await startSeedServer({ "/top/b": bytes[1] });
  const other = await startSeedServer({ "/top/a": bytes[0] });
  const { transfer, stop } = await seededTransfer(made, [`${half.url}/`, `${other.url}/`]);
  try {
    await transfer.ready();
    assert.deepEqual(await transfer.source(0).read({ start: 0, end: PIECE }), bytes[0]);
    assert.deepEqual(await transfer.source(1).read({ start: 0, end: PIECE }), bytes[1]);
  } finally {
    await stop();
    await half.close();
    await other.close();
  }
});

test("WebSeeds: requests parts of pieces by parameters (BEP 17)", async () => {
  const queries: string[] = [];
  const server = await startSeedServer({}, ({ path }, response) => {
    const query = /^\/seed\?info_hash=((?:%[0-9A-F]{2}|[\w.~-])+)&piece=(\d+)&ranges=(\d+)-(\d+)$/.exec(path);
    queries.push(query?.[1] ?? path);
    const at = Number(query?.[2]) * PIECE;
    response.writeHead(200).end(FILM.subarray(at + Number(query?.[3]), at + Number(query?.[4]) + 1));
    return true;
  });
  const { transfer, stop } = await seededTransfer(MADE, [`${server.url}/seed`], {}, "pieces");
  try {
    await transfer.ready();
    assert.deepEqual(await transfer.source(0).read({ start: 0, end: FILM.length }), FILM);
    assert.equal(new Set(queries).size, 1);
  } finally {
    await stop();
    await server.close();
  }
});

// What a server does, and the reason why it is dropped.
const DROPPED: readonly (readonly [string, Parameters<typeof startSeedServer>[1], RegExp])[] = [
  ["refuses ranges", (_, response) => !!response.writeHead(200).end(FILM), /refuses ranges/],
  [
    "has a file of another size",
    ({ start, end }, response) =>
      !!response
        .writeHead(206, { "content-range": `bytes ${start}-${end - 1}/5000000` })
        .end(FILM.subarray(start, end)),
    /a file of 5000000 bytes, not/,
  ],
  [
    "sends another range",
    ({ end }, response) =>
      !!response
        .writeHead(206, { "content-range": `bytes 1-${end - 1}/${FILM.length}` })
        .end(FILM.subarray(1, end)),
    /another range/,
  ],
  ["refuses access", (_, response) => !!response.writeHead(403).end(), /answered 403/],
  ["lacks the file", (_, response) => !!response.writeHead(404).end(), /none of the files/],
  [
    "redirects to a forbidden URL",
    (_, response) => !!response.writeHead(302, { location: "file:///etc/passwd" }).end(),
    /expected an http or https URL/,
  ],
  [
    "sends corrupt data",
    ({ start, end }, response) =>
      !!response
        .writeHead(206, {
          "content-range": `bytes ${start}-${Math.min(end, FILM.length) - 1}/${FILM.length}`,
        })
        .end(new Uint8Array(Math.min(end, FILM.length) - start)),
    /corrupt data/,
  ],
];

for (const [what, misbehave, reason] of DROPPED) {
  test(`WebSeeds: a server that ${what} is dropped, and another one is used`, async () => {
    const bad = await startSeedServer({}, misbehave);
    const good = await startSeedServer({ [AT]: FILM });
    const { transfer, log, stop } = await seededTransfer(MADE, [`${bad.url}/`]);
    const reasons: unknown[] = [];
    log.warn = (message: string, facts?: Readonly<Record<string, unknown>>) =>
      void (message.startsWith("web seed") && reasons.push(facts?.reason));
    try {
      await transfer.ready();
      const start = PIECE + 1;
      const read = transfer.source(0).read({ start, end: FILM.length });
      read.catch(() => {}); // An earlier failure of the test is reported instead.
      await until(() => reasons.length > 0);
      assert.match(String(reasons[0]), reason);
      const asked = bad.asked.length;
      transfer.addWebSeeds({
        infohash: MADE.infohash,
        trackers: [],
        peers: [],
        webSeeds: [{ url: `${good.url}/`, kind: "files" }],
        localWebSeeds: [`${good.url}/`],
      });
      assert.deepEqual(await read, FILM.slice(start));
      assert.equal(bad.asked.length, asked, "it gets no further request");
    } finally {
      await stop();
      await bad.close();
      await good.close();
    }
  });
}

test("WebSeeds: a private address is used only if the client that gave the link may use it", async () => {
  const server = await startSeedServer({ [AT]: FILM });
  const { transfer, log, stop } = await seededTransfer(MADE, [`${server.url}/`], { localWebSeeds: [] });
  try {
    await transfer.ready();
    const read = transfer.source(0).read({ start: 0, end: 1 });
    read.catch(() => {});
    await until(() => log.warnings.length > 0);
    assert.equal(server.asked.length, 0);
    assert.match(transfer.figures.webSeedProblem ?? "", /loopback address/);
    const [url] = [`${server.url}/`];
    const named = { webSeeds: [{ url, kind: "files" } as const], localWebSeeds: [url] };
    transfer.addWebSeeds({ infohash: MADE.infohash, trackers: [], peers: [], ...named });
    assert.deepEqual(await read, FILM.slice(0, 1));
  } finally {
    await stop();
    await server.close();
  }
});

test("WebSeeds: a busy server is tried again after the delay that it requests", async () => {
  let isBusy = true;
  const server = await startSeedServer({ [AT]: FILM }, (_, response) => {
    if (isBusy) response.writeHead(503, { "retry-after": "1" }).end();
    return isBusy;
  });
  const { transfer, stop } = await seededTransfer(MADE, [`${server.url}/`]);
  try {
    await transfer.ready();
    const read = transfer.source(0).read({ start: 0, end: 100 });
    await until(() => server.asked.length > 0);
    isBusy = false;
    assert.deepEqual(await read, FILM.slice(0, 100));
  } finally {
    await stop();
    await server.close();
  }
});
