import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { latin1Bytes, latin1Text } from "../../src/base/bytes.ts";
import { SluiceError } from "../../src/base/errors.ts";
import type { Log } from "../../src/base/log.ts";
import { createOutbound, type OutboundOptions } from "../../src/outbound/outbound.ts";
import type { OutboundRequest, OutboundResponse } from "../../src/runtime/contract.ts";
import { FakeClock } from "../engine/fake-clock.ts";

const silent: Log = { error() {}, warn() {}, info() {}, debug() {}, named: () => silent };

type Answer = {
  status?: number;
  headers?: Record<string, string>;
  body?: Uint8Array | ReadableStream<Uint8Array>;
};

/** A network of its own: names with addresses, URLs with answers. */
class FakeWeb {
  readonly clock = new FakeClock();
  readonly names = new Map<string, string[]>();
  readonly answers = new Map<string, Answer | (() => Promise<OutboundResponse>)>();
  readonly asked: OutboundRequest[] = [];
  readonly outbound = createOutbound(
    {
      clock: this.clock,
      lookup: async (name) => {
        if (name === "hangs.example") return new Promise<never>(() => {});
        const found = this.names.get(name);
        if (!found) throw new Error(`no such name: ${name}`);
        return found;
      },
      http: { request: (request) => this.#answer(request) },
    },
    silent,
  );

  get(url: string, options: Partial<OutboundOptions> = {}) {
    const usual = { limitBytes: 1 << 20, timeoutMs: 9000, allowPrivate: false, purpose: "thing" };
    return this.outbound.get(url, { ...usual, ...options });
  }

  async #answer(request: OutboundRequest): Promise<OutboundResponse> {
    this.asked.push(request);
    const answer = this.answers.get(request.url.href);
    if (!answer) throw new Error("connection refused");
    if (typeof answer === "function") return answer();
    const { status = 200, headers = {}, body = latin1Bytes("body") } = answer;
    const stream = body instanceof Uint8Array ? streamOf([body]) : body;
    return { status, headers: new Headers(headers), body: stream };
  }
}

function streamOf(chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  const rest = [...chunks];
  return new ReadableStream({
    pull(controller) {
      const next = rest.shift();
      if (next) controller.enqueue(next);
      else controller.close();
    },
  });
}

function web(): FakeWeb {
  const made = new FakeWeb();
  made.names.set("a.example", ["93.184.216.34"]);
  made.names.set("home.example", ["192.168.1.2"]);
  made.answers.set("http://a.example/x", {});
  return made;
}

const isRefused =
  (message: RegExp, code = "url_refused") =>
  (error: unknown) => {
    assert.ok(error instanceof SluiceError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  };

test("get asks the address that was checked, and returns the whole answer", async () => {
  const made = web();
  const answer = await made.get("http://a.example/x#part", { headers: { "X-One": "1" } });
  assert.equal(answer.status, 200);
  assert.equal(latin1Text(answer.bytes), "body");
  assert.equal(answer.finalUrl, "http://a.example/x");
  assert.equal(made.asked[0]!.connectTo, "93.184.216.34");
  assert.equal(made.asked[0]!.headers["x-one"], "1");
  assert.equal(made.clock.waiting, 0);
});

test("get gives every status as an answer", async () => {
  const made = web();
  made.answers.set("http://a.example/x", { status: 404 });
  assert.equal((await made.get("http://a.example/x")).status, 404);
});

const REFUSED_URLS: readonly (readonly [string, RegExp])[] = [
  ["file:///etc/passwd", /http or https.*post the transport file/],
  ["ftp://a.example/", /http or https/],
  ["data:text/plain,x", /http or https/],
  ["javascript:alert(1)", /http or https/],
  ["not a url", /not a URL/],
  [`http://a.example/${"x".repeat(9000)}`, /longer than 8192/],
  ["http://127.0.0.1/", /loopback/],
  ["http://127.1/", /loopback/],
  ["http://0x7f000001/", /loopback/],
  ["http://2130706433/", /loopback/],
  ["http://0177.0.0.1/", /loopback/],
  ["http://[::1]/", /loopback/],
  ["http://[::ffff:127.0.0.1]/", /loopback/],
  ["http://[::ffff:7f00:1]/", /loopback/],
  ["http://[64:ff9b::7f00:1]/", /loopback/],
  ["http://[2002:7f00:1::]/", /loopback/],
  ["http://10.0.0.1/", /private/],
  ["http://[fd00::1]/", /private/],
  ["http://100.64.0.1/", /private/],
  ["http://169.254.169.254/latest/meta-data", /link-local/],
  ["http://[fe80::1]/", /link-local/],
  ["http://224.0.0.1/", /multicast/],
  ["http://0.0.0.0/", /unspecified/],
  ["http://home.example/", /private/],
];

test("get refuses every URL that leads off the public web, and asks nobody", async () => {
  const made = web();
  for (const [url, message] of REFUSED_URLS) await assert.rejects(made.get(url), isRefused(message), url);
  assert.equal(made.asked.length, 0);
});

test("get asks at home where that is allowed, but never multicast or nowhere", async () => {
  const made = web();
  made.answers.set("http://home.example/", {});
  assert.equal((await made.get("http://home.example/", { allowPrivate: true })).status, 200);
  for (const url of ["http://224.0.0.1/", "http://0.0.0.0/", "http://[::]/"]) {
    await assert.rejects(made.get(url, { allowPrivate: true }), isRefused(/may not be asked/), url);
  }
});

test("get refuses a name of which one address is at home", async () => {
  const made = web();
  made.names.set("both.example", ["93.184.216.34", "10.0.0.1"]);
  const told = /10\.0\.0\.1 is a private address \(see the setting private-urls\)/;
  await assert.rejects(made.get("http://both.example/"), isRefused(told));
  // What no setting allows is not said to depend on one.
  await assert.rejects(made.get("http://0.0.0.0/"), isRefused(/0\.0\.0\.0 is an unspecified address$/));
});

test("get follows redirects, and checks each", async () => {
  const made = web();
  made.answers.set("http://a.example/r", { status: 302, headers: { location: "/x" } });
  assert.equal((await made.get("http://a.example/r")).finalUrl, "http://a.example/x");
  for (const location of ["file:///etc/passwd", "http://127.0.0.1/", "//home.example/", "http://[::1]:80/"]) {
    made.answers.set("http://a.example/r", { status: 307, headers: { location } });
    await assert.rejects(made.get("http://a.example/r"), isRefused(/could not be fetched/), location);
    await assert.rejects(
      made.get("http://a.example/r", { allowPrivate: true }),
      isRefused(/could not be/),
      location,
    );
  }
});

test("get says what to do where a redirect leads to a magnet link", async () => {
  const made = web();
  const headers = { location: "magnet:?xt=urn:btih:0000000000000000000000000000000000000000" };
  made.answers.set("http://a.example/r", { status: 302, headers });
  await assert.rejects(made.get("http://a.example/r"), isRefused(/leads to a magnet link: give that/));
});

test("get lets a home server redirect within the home", async () => {
  const made = web();
  made.answers.set("http://home.example/r", { status: 301, headers: { location: "http://192.168.1.3/y" } });
  made.answers.set("http://192.168.1.3/y", {});
  assert.equal(
    (await made.get("http://home.example/r", { allowPrivate: true })).finalUrl,
    "http://192.168.1.3/y",
  );
});

test("get follows five redirects, not six", async () => {
  const made = web();
  for (let i = 0; i < 6; i++) {
    made.answers.set(`http://a.example/${i}`, { status: 302, headers: { location: `/${i + 1}` } });
  }
  made.answers.set("http://a.example/6", {});
  assert.equal((await made.get("http://a.example/1")).status, 200);
  await assert.rejects(made.get("http://a.example/0"), isRefused(/more than 5 redirects/));
});

test("get sends credentials to their own origin alone", async () => {
  const made = web();
  made.names.set("b.example", ["93.184.216.35"]);
  made.answers.set("http://a.example/1", { status: 302, headers: { location: "/2" } });
  made.answers.set("http://a.example/2", { status: 302, headers: { location: "http://b.example/3" } });
  made.answers.set("http://b.example/3", {});
  const answer = await made.get("http://us%20er:p%C3%A9@a.example/1", {
    headers: { Cookie: "c=1", "X-One": "1" },
  });
  assert.equal(answer.finalUrl, "http://b.example/3");
  const [first, second, third] = made.asked.map(({ headers }) => headers);
  const authorization = `Basic ${Buffer.from("us er:pé").toString("base64")}`;
  for (const headers of [first!, second!]) {
    assert.deepEqual([headers.authorization, headers.cookie, headers["x-one"]], [authorization, "c=1", "1"]);
  }
  assert.deepEqual([third!.authorization, third!.cookie, third!["x-one"]], [undefined, undefined, "1"]);
  assert.ok(made.asked.every(({ url }) => url.username === "" && url.password === ""));
});

test("get asks the next address where one does not answer", async () => {
  const made = web();
  made.names.set("two.example", ["2606:2800:220:1::1", "93.184.216.34"]);
  made.answers.set("http://two.example/", async () => {
    if (made.asked.length === 1) return new Promise<never>(() => {});
    return { status: 200, headers: new Headers(), body: streamOf([]) };
  });
  const answer = made.get("http://two.example/");
  await made.clock.advance(4600);
  assert.equal((await answer).status, 200);
  assert.deepEqual(
    made.asked.map(({ connectTo }) => connectTo),
    ["2606:2800:220:1::1", "93.184.216.34"],
  );
  assert.equal(made.asked[0]!.signal!.aborted, true);
});

test("get gives up in time, whether name, head or body hangs", async () => {
  const made = web();
  made.answers.set("http://a.example/head", () => new Promise<never>(() => {}));
  made.answers.set("http://a.example/body", { body: new ReadableStream() });
  for (const url of ["http://hangs.example/", "http://a.example/head", "http://a.example/body"]) {
    const isLate = isRefused(/no whole answer in 9 s/, "url_unreachable");
    const outcome = assert.rejects(made.get(url), isLate, url);
    await made.clock.advance(9001);
    await outcome;
    assert.equal(made.clock.waiting, 0, url);
  }
});

test("get ends when nobody waits any more", async () => {
  const made = web();
  made.answers.set("http://a.example/x", { body: new ReadableStream() });
  const controller = new AbortController();
  const outcome = assert.rejects(
    made.get("http://a.example/x", { signal: controller.signal }),
    isRefused(/nobody waits/, "cancelled"),
  );
  await made.clock.advance(1);
  controller.abort();
  await outcome;
  assert.equal(made.clock.waiting, 0);
  await assert.rejects(
    made.get("http://a.example/x", { signal: controller.signal }),
    isRefused(/./, "cancelled"),
  );
});

test("get says why nothing could be fetched", async () => {
  const made = web();
  await assert.rejects(
    made.get("http://gone.example/"),
    isRefused(/the thing could not be fetched: no such name/, "url_unreachable"),
  );
  await assert.rejects(made.get("http://a.example/none"), isRefused(/connection refused/, "url_unreachable"));
});

test("get keeps to the limit of the body, announced or not", async () => {
  const made = web();
  const large = new Uint8Array(2000);
  made.answers.set("http://a.example/x", { body: streamOf([large, large]) });
  await assert.rejects(made.get("http://a.example/x", { limitBytes: 3999 }), isRefused(/larger than 3999/));
  made.answers.set("http://a.example/x", { body: streamOf([large, large]) });
  assert.equal((await made.get("http://a.example/x", { limitBytes: 4000 })).bytes.length, 4000);
  let isCancelled = false;
  const body = new ReadableStream<Uint8Array>({
    cancel() {
      isCancelled = true;
    },
  });
  made.answers.set("http://a.example/x", { headers: { "content-length": "5000" }, body });
  await assert.rejects(made.get("http://a.example/x", { limitBytes: 4000 }), isRefused(/larger than 4000/));
  assert.ok(isCancelled);
});

test("get decompresses one encoding", async () => {
  const made = web();
  const plain = latin1Bytes("hello ".repeat(1000));
  const packed: readonly (readonly [string, Uint8Array])[] = [
    ["gzip", gzipSync(plain)],
    ["X-GZIP", gzipSync(plain)],
    ["deflate", deflateSync(plain)],
    ["deflate", deflateRawSync(plain)],
    ["identity", plain],
  ];
  for (const [encoding, body] of packed) {
    made.answers.set("http://a.example/x", {
      headers: { "content-encoding": encoding },
      body: new Uint8Array(body),
    });
    assert.deepEqual((await made.get("http://a.example/x")).bytes, plain, encoding);
  }
});

test("get refuses unknown, chained and broken encodings", async () => {
  const made = web();
  const bodies: readonly (readonly [string, Uint8Array, RegExp])[] = [
    ["br", new Uint8Array(9), /encodes with br/],
    ["gzip, gzip", gzipSync(gzipSync("x")), /encodes with gzip, gzip/],
    ["gzip", latin1Bytes("plain text"), /not properly compressed/],
    ["gzip", gzipSync("hello hello").subarray(0, 18), /not properly compressed/],
  ];
  for (const [encoding, body, message] of bodies) {
    made.answers.set("http://a.example/x", {
      headers: { "content-encoding": encoding },
      body: new Uint8Array(body),
    });
    await assert.rejects(made.get("http://a.example/x"), isRefused(message, "url_unreachable"), encoding);
  }
});

test("get refuses bombs", async () => {
  const made = web();
  const bomb = gzipSync(new Uint8Array(40_000_000));
  made.answers.set("http://a.example/x", {
    headers: { "content-encoding": "gzip" },
    body: new Uint8Array(bomb),
  });
  await assert.rejects(
    made.get("http://a.example/x", { limitBytes: 1e9 }),
    isRefused(/swells more than 100 times/),
  );
  await assert.rejects(
    made.get("http://a.example/x", { limitBytes: 100_000 }),
    isRefused(/larger than 100000/),
  );
});

test("get asks the further rule for each hop", async () => {
  const made = web();
  made.answers.set("http://a.example/r", { status: 302, headers: { location: "/x" } });
  const seen: string[] = [];
  const check: OutboundOptions["check"] = (url, scope) => {
    seen.push(`${url.pathname} ${scope}`);
    return url.pathname === "/x" ? "not this one" : undefined;
  };
  await assert.rejects(made.get("http://a.example/r", { check }), isRefused(/not this one/));
  assert.deepEqual(seen, ["/r global", "/x global"]);
});
