import assert from "node:assert/strict";
import { test } from "node:test";
import type { PeerAddress } from "../../src/base/address.ts";
import { equalBytes } from "../../src/base/bytes.ts";
import type { TcpHandlers, TcpSocket } from "../../src/runtime/contract.ts";
import { PageSocket } from "../../src/web/page/viewer/page-socket.ts";
import { PieceExchange } from "../../src/web/page/viewer/piece-exchange.ts";
import { pageAddress } from "../../src/wire/live/page-address.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";
import { someBytes } from "../engine/parts.ts";

const BYTES_PER_SECOND = 100_000;
const never = new AbortController().signal;
const addressOf = (page: number) => pageAddress(`${page}`.padStart(16, "0"))!;

/** Pages that are connected with each other; each has the segments that `segments` names. */
function somePages(segments: readonly Readonly<Record<number, Uint8Array>>[]) {
  const clock = new FakeClock();
  const uploads = segments.map(() => true);
  const plain: string[] = [];
  /** Which page was called, and which calls are open. */
  const calls: string[] = [];
  const open = new Set<TcpSocket>();
  const accepts: ((socket: TcpSocket) => TcpHandlers)[] = [];
  const connect = (address: PeerAddress, handlers: TcpHandlers): TcpSocket => {
    calls.push(address.host);
    const end = (of: PageSocket, other: () => PageSocket) => ({
      send: (bytes: Uint8Array) => {
        const copy = bytes.slice();
        queueMicrotask(() => {
          other().received(copy);
          of.sent(of.written);
        });
      },
      close: () => other().closed("closed by the other side"),
    });
    const near: PageSocket = new PageSocket(address, {
      send: (bytes) => end(near, () => far).send(bytes),
      close: () => end(near, () => far).close(),
    });
    const far: PageSocket = new PageSocket(address, {
      send: (bytes) => end(far, () => near).send(bytes),
      close: () => end(far, () => near).close(),
    });
    open.add(near);
    near.handle({
      ...handlers,
      closed: (reason) => {
        open.delete(near);
        handlers.closed(reason);
      },
    });
    const page = segments.findIndex((_, i) => addressOf(i + 1).host === address.host);
    far.handle(accepts[page]!(far));
    queueMicrotask(() => near.opened());
    return near;
  };
  const exchanges = segments.map(
    (own, page) =>
      new PieceExchange({
        ...{ clock, bytesPerSecond: BYTES_PER_SECOND, connect },
        pages: () => segments.flatMap((_, i) => (i === page ? [] : [addressOf(i + 1)])),
        maySend: () => uploads[page]!,
        segment: async (number) => {
          const bytes = own[number];
          if (!bytes) throw new Error("not here");
          return bytes;
        },
      }),
  );
  const handshake = (): TcpHandlers => ({
    received: (bytes) => plain.push(`${bytes[0]}`),
    drained() {},
    closed() {},
  });
  for (const exchange of exchanges) accepts.push((socket) => exchange.accept(socket, handshake));
  /** What page 0 gets; `isGenuine` judges it. */
  const fetch = async (number: number, isGenuine = (bytes: Uint8Array) => bytes.length > 0) => {
    const taken: Uint8Array[] = [];
    await exchanges[0]!.fetch(number, never, async (bytes) => {
      taken.push(bytes);
      return isGenuine(bytes);
    });
    return taken.at(-1);
  };
  return { clock, uploads, plain, calls, open, connect, fetch };
}

test("PieceExchange: a page gets segments from another one, over one connection that is closed when idle", async () => {
  const segments = { 7: someBytes(300_000, 1), 8: someBytes(100, 2) };
  const { clock, calls, open, fetch } = somePages([{}, segments]);
  assert.ok(equalBytes((await fetch(7))!, segments[7]));
  assert.ok(equalBytes((await fetch(8))!, segments[8]));
  assert.equal(calls.length, 1);
  assert.equal(open.size, 1);
  await clock.advance(20_000);
  assert.equal(open.size, 0);
});

test("PieceExchange: a page that lacks the segment, or sends something else, is not asked again for a while", async () => {
  const wrong = someBytes(1_000, 1);
  const { calls, clock, fetch } = somePages([{}, { 7: wrong }, {}]);
  const isGenuine = () => false;
  await fetch(7, isGenuine);
  assert.equal(new Set(calls).size, 2);
  await fetch(7, isGenuine);
  assert.equal(calls.length, 2);
  await clock.advance(31_000);
  await fetch(7, isGenuine);
  assert.equal(calls.length, 4);
});

test("PieceExchange: a page that may not upload sends nothing, and one that sends more than its share neither", async () => {
  const bytes = someBytes(6 * BYTES_PER_SECOND, 1);
  const { clock, uploads, fetch } = somePages([{}, { 7: bytes }]);
  uploads[1] = false;
  assert.equal((await fetch(7))?.length, 0);
  uploads[1] = true;
  await clock.advance(31_000);
  assert.equal((await fetch(7))?.length, bytes.length);
  // The allowance of eight seconds goes below zero once.
  assert.equal((await fetch(7))?.length, bytes.length);
  assert.equal((await fetch(7))?.length, 0);
  await clock.advance(31_000);
  assert.equal((await fetch(7))?.length, bytes.length);
});

test("PieceExchange: a page that is silent is left after some seconds, and other connections are peers", async () => {
  const { clock, plain, open, connect, fetch } = somePages([{}, { 7: new Uint8Array(0) }]);
  const socket = connect(addressOf(2), { received() {}, drained() {}, closed() {} });
  socket.write(Uint8Array.of(19, 66));
  await settled();
  assert.deepEqual(plain, ["19"]);
  const silent = connect(addressOf(2), { received() {}, drained() {}, closed() {} });
  await clock.advance(11_000);
  assert.ok(!open.has(silent));
  assert.equal((await fetch(7))?.length, 0);
});

test("PieceExchange: a request that is malformed or comes during another one ends the connection", async () => {
  const { open, connect } = somePages([{}, { 7: someBytes(500_000, 1) }]);
  const request = Buffer.concat([Buffer.from("sl_pieces:"), Uint8Array.of(0, 0, 0, 7)]);
  for (const bytes of [Buffer.concat([request, request]), Buffer.concat([request, Uint8Array.of(0)])]) {
    const socket = connect(addressOf(2), { received() {}, drained() {}, closed() {} });
    socket.write(bytes);
    await settled();
    assert.ok(!open.has(socket));
  }
});
