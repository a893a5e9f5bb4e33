import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { readHandover } from "../../src/web/page/parts/link.js";
import { SignalingServer } from "../../src/web/signaling.ts";
import { FakeClock } from "../engine/fake-clock.ts";

const HASH = "0123456789abcdef0123456789abcdef01234567";

test("SignalingServer: relays a message to the page with that code, and sets the sender's own code", () => {
  const { join } = openServer();
  const [tv, phone] = [join(), join()];
  assert.deepEqual(tv.sent, [{ type: "OPEN" }]);
  phone.receive({ type: "OFFER", src: "99999999", dst: tv.code, payload: { sdp: "x" } });
  assert.deepEqual(tv.sent.at(-1), { type: "OFFER", src: phone.code, dst: tv.code, payload: { sdp: "x" } });
  tv.receive({ type: "ANSWER", dst: phone.code, payload: 1 });
  assert.deepEqual(phone.sent.at(-1), { type: "ANSWER", src: tv.code, dst: phone.code, payload: 1 });
  phone.receive({ type: "HEARTBEAT" });
  phone.receive({ type: "OPEN", dst: tv.code });
  assert.equal(tv.sent.length, 2);
});

test("SignalingServer: a message to a code of no connected page expires, also if its page has left", () => {
  const { join } = openServer();
  const [tv, phone] = [join(), join()];
  tv.closed();
  phone.receive({ type: "OFFER", dst: tv.code });
  assert.deepEqual(phone.sent.at(-1), { type: "EXPIRE", src: tv.code, dst: phone.code });
  phone.receive({ type: "CANDIDATE", dst: tv.code });
  assert.equal(phone.sent.length, 2);
});

test("SignalingServer: only the device that was assigned a code connects under it, once and within 30 s", async () => {
  const { server, join, clock } = openServer();
  const tv = join("192.168.1.5");
  const unused = server.assignCode("192.168.1.5")!;
  const replies = [tv.code, unused, "00000000", "12345x", ""].map((code) => join("192.168.1.66", code).sent);
  for (const sent of replies) assert.deepEqual(sent, replies[0]);
  assert.equal(join("192.168.1.5", tv.code).isClosed(), true);
  await clock.advance(30_000);
  server.assignCode("192.168.1.7");
  assert.equal(join("192.168.1.5", unused).isClosed(), true);
});

test("SignalingServer: a code expires after ten minutes", async () => {
  const { join, clock } = openServer();
  const [tv, gone] = [join(), join()];
  gone.closed();
  await clock.advance(10 * 60_000 - 1);
  assert.equal(tv.isClosed(), false);
  await clock.advance(1);
  assert.deepEqual([tv.isClosed(), gone.isClosed(), clock.waiting], [true, false, 0]);
});

test("SignalingServer: one device can use 8 of the 64 codes", () => {
  const { server } = openServer();
  const assigned = (host: string) => server.assignCode(host) !== undefined;
  assert.equal(Array.from({ length: 100 }, () => assigned("192.168.1.66")).filter(Boolean).length, 8);
  for (let i = 0; i < 56; i++) assert.equal(assigned(`192.168.2.${i}`), true);
  assert.equal(assigned("192.168.3.1"), false);
});

test("SignalingServer: limits the codes that a device, and all devices, may try, over any number of connections", async () => {
  const { join, clock } = openServer();
  const attempt = (host: string) => {
    const page = join(host);
    page.receive({ type: "OFFER", dst: "00000000" });
    page.closed();
    return (page.sent.at(-1) as { type: string }).type;
  };
  const expired = (count: number, host: () => string) =>
    Array.from({ length: count }, () => attempt(host())).filter((type) => type === "EXPIRE").length;
  assert.equal(
    expired(1000, () => "192.168.1.66"),
    10,
  );
  // The limit of a device does not affect another one.
  const [tv, phone] = [join("192.168.1.5"), join("192.168.1.6")];
  phone.receive({ type: "OFFER", dst: tv.code });
  assert.equal(tv.sent.length, 2);
  let device = 0;
  assert.equal(
    expired(1000, () => `10.0.0.${++device % 200}`),
    89,
  );
  await clock.advance(60_000);
  assert.equal(
    expired(1000, () => "192.168.1.66"),
    10,
  );
});

test("SignalingServer: disconnects a page that sends an invalid message or too many messages", () => {
  const { join } = openServer();
  for (const text of ["", "null", "{}", '{"type":1}', `{"type":"OFFER","payload":"${"x".repeat(40_000)}"}`]) {
    const page = join();
    page.receiveText(text);
    assert.equal(page.isClosed(), true, text.slice(0, 20));
    page.closed();
  }
  const page = join();
  for (let i = 0; i < 1000; i++) page.receive({ type: "CANDIDATE", dst: "22222222" });
  assert.equal(page.isClosed(), false);
  page.receive({ type: "CANDIDATE", dst: "22222222" });
  assert.equal(page.isClosed(), true);
});

test("SignalingServer.assignCode: returns eight digits that no device has", () => {
  const { server } = openServer([
    [0, 0, 0, 7],
    [0, 0, 0, 7],
    [255, 255, 255, 255],
  ]);
  assert.equal(server.assignCode("::1"), "00000007");
  assert.equal(server.assignCode("::1"), "94967295");
});

test("readHandover: accepts links and rejects everything else", () => {
  const link = { parameter: "infohash", value: HASH };
  assert.deepEqual(readHandover({ link, fileIndex: 2, atSeconds: 61.5 }), {
    link,
    fileIndex: 2,
    atSeconds: 61.5,
  });
  const content = { parameter: "content_id", value: HASH };
  assert.deepEqual(readHandover({ link: content, atSeconds: -1 })?.link, content);
  for (const data of [
    undefined,
    null,
    "magnet:?xt=x",
    { link, atSeconds: "1" },
    { link, fileIndex: -1, atSeconds: 0 },
    { link: { parameter: "url", value: "javascript:alert(1)" }, atSeconds: 0 },
  ]) {
    assert.equal(readHandover(data), undefined, JSON.stringify(data));
  }
});

function openServer(random?: number[][]) {
  const clock = new FakeClock();
  const server = new SignalingServer(
    (length) => (random ? Uint8Array.from(random.shift()!) : new Uint8Array(randomBytes(length))),
    clock,
  );
  /** Connects a page of this device, under a code of its own unless another is given. */
  const join = (host = "192.168.1.5", code = server.assignCode(host) ?? "none") => {
    const sent: unknown[] = [];
    let isClosed = false;
    const handlers = server.join(code, host, {
      send: (text) => sent.push(JSON.parse(text)),
      close: () => {
        isClosed = true;
      },
    });
    return {
      code,
      sent,
      isClosed: () => isClosed,
      receive: (message: object) => handlers.received(JSON.stringify(message)),
      receiveText: (text: string) => handlers.received(text),
      closed: () => handlers.closed(),
    };
  };
  return { server, join, clock };
}
