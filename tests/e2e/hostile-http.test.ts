import assert from "node:assert/strict";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { usageOf } from "../parts/process.ts";
import { openRaw, type RawSocket } from "../parts/raw-socket.ts";

const { after, before, test } = await testsThatNeed("time");

const PATIENCE_MS = 5_000;
const GOOD = "/webui/api/service?method=get_version";

let engine: EngineProcess;
before(async () => {
  engine = await startEngine();
});
after(() => engine.stop());

const portOf = () => Number(new URL(engine.url).port);

async function statusOf(raw: RawSocket, withinMs = PATIENCE_MS): Promise<number | undefined> {
  const heard = await raw.hears(
    (bytes) => /^HTTP\/1\.1 \d{3}/.test(bytes.toString("latin1", 0, 16)),
    withinMs,
  );
  return heard && Number(heard.toString("latin1", 9, 12));
}

/** Sends raw text; returns the status, 0 if the connection closed without one, undefined if no answer arrived. */
async function ask(text: string | Uint8Array): Promise<number | undefined> {
  const raw = await openRaw(portOf());
  try {
    raw.send(text);
    const status = await statusOf(raw);
    return status ?? ((await raw.closes(0)) ? 0 : undefined);
  } finally {
    raw.end();
  }
}

async function isWell(): Promise<void> {
  const answer = await fetch(`${engine.url}${GOOD}`, { signal: AbortSignal.timeout(10_000) });
  assert.equal(answer.status, 200);
  await answer.arrayBuffer();
}

const get = (target: string, more = "") =>
  `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1:${portOf()}\r\n${more}\r\n`;
const post = (body: string, more = "") =>
  `POST /ace/getstream HTTP/1.1\r\nHost: 127.0.0.1:${portOf()}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${more}\r\n${body}`;
const upload = (data: string) => JSON.stringify({ transport_file_data: data });

/** The bytes sent and the accepted statuses; 0: the connection is closed without an answer. */
const CASES: readonly (readonly [name: string, sent: () => string, right: readonly number[]])[] = [
  ["a head of 20 KiB", () => get(GOOD, `X-Long: ${"a".repeat(20_000)}\r\n`), [431, 0]],
  ["ten thousand headers", () => get(GOOD, "a: b\r\n".repeat(10_000)), [431, 0]],
  ["a target in absolute form", () => get(`http://127.0.0.1:${portOf()}${GOOD}`), [200]],
  ["a target in absolute form of another host", () => get(`http://evil.example${GOOD}`), [400, 421]],
  ["two Hosts", () => get(GOOD, "Host: evil.example\r\n"), [400]],
  ["no Host", () => `GET ${GOOD} HTTP/1.1\r\n\r\n`, [400, 0]],
  ["an invalid Host", () => `GET ${GOOD} HTTP/1.1\r\nHost: a b\r\n\r\n`, [400, 421, 0]],
  ["a name of the Internet as Host", () => `GET ${GOOD} HTTP/1.1\r\nHost: evil.example\r\n\r\n`, [421]],
  [
    "an unknown method",
    () => `FOO ${GOOD} HTTP/1.1\r\nHost: 127.0.0.1:${portOf()}\r\n\r\n`,
    [400, 404, 405, 501, 0],
  ],
  ["TRACE", () => `TRACE ${GOOD} HTTP/1.1\r\nHost: 127.0.0.1:${portOf()}\r\n\r\n`, [400, 404, 405, 501, 0]],
  [
    "CONNECT",
    () => "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    [400, 404, 405, 421, 501, 0],
  ],
  ["DELETE", () => `DELETE ${GOOD} HTTP/1.1\r\nHost: 127.0.0.1:${portOf()}\r\n\r\n`, [400, 404, 405]],
  ["a path that climbs", () => get("/files/..%2f..%2fetc%2fpasswd"), [400, 404]],
  ["a path that climbs by dots", () => get("/../../../../etc/passwd"), [400, 404]],
  ["a path with a null byte", () => get("/ace/m/%00/%00.m3u8"), [400, 403, 404]],
  ["a URL of 8 KiB", () => get(`/ace/getstream?magnet=${"a".repeat(8_192)}`), [400, 414]],
  ["broken percent signs", () => get("/ace/getstream?magnet=%ff%zz%"), [400]],
  ["not HTTP at all", () => `${"\x16\x03\x01\x02\x00"}\r\n\r\n`, [400, 0]],
  ["HTTP/2 by prior knowledge", () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400, 505, 0]],
  ["an unknown upgrade", () => get(GOOD, "Upgrade: h2c\r\nConnection: Upgrade\r\n"), [200, 400, 404, 426, 0]],
  ["a body of 11 MB that is no transport file", () => post(upload("A".repeat(11_000_000))), [415]],
  ["a body of 16 MB", () => post(upload("A".repeat(16_000_000))), [413, 415, 0]],
  ["broken base64", () => post(upload("%%%")), [415]],
  ["a body that is no JSON", () => post("d4:infode"), [415]],
  ["a list in place of base64", () => post('{"transport_file_data":[1,2]}'), [415]],
  ["JSON 5 million deep", () => post("[".repeat(5_000_000)), [415]],
  ["JSON objects a million deep", () => post('{"a":'.repeat(1_000_000)), [415]],
  ["a prototype in JSON", () => post('{"__proto__":{"transport_file_data":"AAAA"}}'), [415]],
  ["two lengths", () => post(upload("AA"), "Content-Length: 5\r\n"), [400, 0]],
  ["a length and chunks", () => post(upload("AA"), "Transfer-Encoding: chunked\r\n"), [400, 0]],
  [
    "a negative length",
    () => `POST /ace/getstream HTTP/1.1\r\nHost: 127.0.0.1:${portOf()}\r\nContent-Length: -5\r\n\r\n`,
    [400, 0],
  ],
  [
    "a chunk of 2^64 bytes",
    () =>
      `POST /ace/getstream HTTP/1.1\r\nHost: 127.0.0.1:${portOf()}\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n`,
    [400, 415, 0],
  ],
];

for (const [name, sent, right] of CASES) {
  test(`hostile HTTP: ${name}`, async () => {
    const status = await ask(sent());
    assert.ok(status !== undefined, "no answer, and the connection stays open");
    assert.ok(right.includes(status), `answered ${status}, expected one of ${right.join(", ")}`);
    await isWell();
  });
}

test("hostile HTTP: short bodies and slow heads do not delay other requests, and both are cut off", {
  timeout: 60_000,
}, async () => {
  const short = await openRaw(portOf());
  short.send(`POST /ace/getstream HTTP/1.1\r\nHost: 127.0.0.1:${portOf()}\r\nContent-Length: 100\r\n\r\n{`);
  const drips = await Promise.all(Array.from({ length: 20 }, () => openRaw(portOf())));
  const head = get(GOOD, `X-Long: ${"a".repeat(200)}\r\n`);
  let at = 0;
  const timer = setInterval(() => {
    for (const drip of drips) drip.send(head[at] ?? "a");
    at++;
  }, 100);
  try {
    await isWell();
    for (const drip of drips) assert.ok(await drip.closes(20_000), "a head that drips is not cut off");
  } finally {
    clearInterval(timer);
    for (const drip of drips) drip.end();
    short.end();
  }
  await isWell();
});

test("hostile HTTP: a pipeline of 50 requests is answered in order", async () => {
  const raw = await openRaw(portOf());
  try {
    const targets = Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? GOOD : "/nowhere"));
    raw.send(targets.map((target) => get(target)).join(""));
    const statuses = (bytes: Buffer) =>
      [...bytes.toString("latin1").matchAll(/HTTP\/1\.1 (\d{3})/g)].map((match) => match[1]);
    await raw.hears((bytes) => statuses(bytes).length >= 50, PATIENCE_MS);
    assert.deepEqual(
      statuses(raw.received),
      targets.map((target) => (target === GOOD ? "200" : "404")),
    );
  } finally {
    raw.end();
  }
});

test("hostile HTTP: 300 idle connections do not block other clients or retain memory", async () => {
  const before = usageOf(engine.pid).residentBytes;
  const idle = await Promise.all(Array.from({ length: 300 }, () => openRaw(portOf())));
  try {
    assert.equal(await ask(get(GOOD)), 200, "a new connection");
    const growth = usageOf(engine.pid).residentBytes - before;
    assert.ok(growth < 32 * 1024 * 1024, `${growth} bytes for 300 connections`);
  } finally {
    for (const raw of idle) raw.end();
  }
  await isWell();
});
