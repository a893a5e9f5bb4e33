import assert from "node:assert/strict";
import { test } from "node:test";
import { readHandover } from "../../src/web/page/screens.js";
import { Switchboard } from "../../src/web/switchboard.ts";

const HASH = "0123456789abcdef0123456789abcdef01234567";

test("Switchboard: hands on what one page says to another, with the sender's own code", () => {
  const { join } = switchboard();
  const [tv, phone] = [join("111111"), join("222222")];
  assert.deepEqual(tv.said, [{ type: "OPEN" }]);
  phone.say({ type: "OFFER", src: "999999", dst: "111111", payload: { sdp: "x" } });
  assert.deepEqual(tv.said.at(-1), { type: "OFFER", src: "222222", dst: "111111", payload: { sdp: "x" } });
  tv.say({ type: "ANSWER", dst: "222222", payload: 1 });
  assert.deepEqual(phone.said.at(-1), { type: "ANSWER", src: "111111", dst: "222222", payload: 1 });
  phone.say({ type: "HEARTBEAT" });
  phone.say({ type: "OPEN", dst: "111111" });
  assert.equal(tv.said.length, 2);
});

test("Switchboard: an offer to a code that nobody shows comes back; a page that left is nobody", () => {
  const { join } = switchboard();
  const [tv, phone] = [join("111111"), join("222222")];
  tv.closed();
  phone.say({ type: "OFFER", dst: "111111" });
  assert.deepEqual(phone.said.at(-1), { type: "EXPIRE", src: "111111", dst: "222222" });
});

test("Switchboard: a taken code, one that is none, and one screen too many are refused", () => {
  const { join } = switchboard();
  join("111111");
  for (const code of ["111111", "12345", "12345x", ""]) {
    const page = join(code);
    assert.equal(page.isClosed(), true, code);
    assert.match(JSON.stringify(page.said), /ID-TAKEN|ERROR/);
  }
  for (let i = 1; i < 32; i++) assert.equal(join(String(200_000 + i)).isClosed(), false);
  assert.equal(join("300000").isClosed(), true);
});

test("Switchboard: a page that sends nonsense, or without end, is disconnected", () => {
  const { join } = switchboard();
  for (const text of ["", "null", "{}", '{"type":1}', `{"type":"OFFER","payload":"${"x".repeat(40_000)}"}`]) {
    const page = join("111111");
    page.sayText(text);
    assert.equal(page.isClosed(), true, text.slice(0, 20));
    page.closed();
  }
  const page = join("111111");
  for (let i = 0; i < 1000; i++) page.say({ type: "CANDIDATE", dst: "222222" });
  assert.equal(page.isClosed(), false);
  page.say({ type: "CANDIDATE", dst: "222222" });
  assert.equal(page.isClosed(), true);
});

test("Switchboard.freeCode: six digits that no page has", () => {
  const { board, join } = switchboard([
    [0, 0, 0, 7],
    [0, 0, 0, 7],
    [255, 255, 255, 255],
  ]);
  assert.equal(board.freeCode(), "000007");
  join("000007");
  assert.equal(board.freeCode(), "967295");
});

test("readHandover takes links and refuses everything else", () => {
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

function switchboard(random: number[][] = [[0, 0, 0, 1]]) {
  const board = new Switchboard(() => Uint8Array.from(random.length > 1 ? random.shift()! : random[0]!));
  const join = (code: string) => {
    const said: unknown[] = [];
    let isClosed = false;
    const handlers = board.join(code, {
      send: (text) => said.push(JSON.parse(text)),
      close: () => {
        isClosed = true;
      },
    });
    return {
      said,
      isClosed: () => isClosed,
      say: (message: object) => handlers.received(JSON.stringify(message)),
      sayText: (text: string) => handlers.received(text),
      closed: () => handlers.closed(),
    };
  };
  return { board, join };
}
