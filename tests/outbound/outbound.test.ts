import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { latin1Bytes, latin1Text } from "../../src/base/bytes.ts";
import { SluiceError } from "../../src/base/errors.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import type { OutboundOptions } from "../../src/outbound/request.ts";
import type { OutboundRequest, OutboundResponse } from "../../src/runtime/contract.ts";
import { FakeClock } from "../engine/fake-clock.ts";

type Answer = {
  status?: number;
  headers?: Record<string, string>;
  body?: Uint8Array | ReadableStream<Uint8Array>;
};

/** A network of names with addresses and URLs with responses. */
class FakeWeb {
  readonly clock = new FakeClock();
  readonly names = new Map<string, string[]>();
  readonly answers = new Map<string, Answer | (() => Promise<OutboundResponse>)>();
  readonly requests: OutboundRequest[] = [];
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
    SILENT_LOG,
  );

  get(url: string, options: Partial<OutboundOptions> = {}) {
    const defaults = { limitBytes: 1 << 20, timeoutMs: 9000, allowPrivate: false, purpose: "thing" };
    return this.outbound.get(url, { ...defaults, ...options });
  }

  async #answer(request: OutboundRequest): Promise<OutboundResponse> {
    this.requests.push(request);
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

function fakeWeb(): FakeWeb {
  const web = new FakeWeb();
  web.names.set("a.example", ["93.184.216.34"]);
  web.names.set("home.example", ["192.168.1.2"]);
  web.answers.set("http://a.example/x", {});
  return web;
}

const isRefused =
  (message: RegExp, code = "url_refused") =>
  (error: unknown) => {
    assert.ok(error instanceof SluiceError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  };

test("Outbound.get: connects to the checked address and returns the whole response", async () => {
  const web = fakeWeb();
  const answer = await web.get("http://a.example/x#part", { headers: { "X-One": "1" } });
  assert.equal(answer.status, 200);
  assert.equal(latin1Text(answer.bytes), "body");
  assert.equal(answer.finalUrl, "http://a.example/x");
  assert.equal(web.requests[0]!.connectTo, "93.184.216.34");
  assert.equal(web.requests[0]!.headers["x-one"], "1");
  assert.equal(web.clock.waiting, 0);
});

test("Outbound.get: a name without an address of the wanted family is an error that names the family", async () => {
  const problem = isRefused(/a\.example has no IPv6 address/, "url_unreachable");
  await assert.rejects(fakeWeb().get("http://a.example/x", { family: 6 }), problem);
});

test("Outbound.get: resolves for every HTTP status", async () => {
  const web = fakeWeb();
  web.answers.set("http://a.example/x", { status: 404 });
  assert.equal((await web.get("http://a.example/x")).status, 404);
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

test("Outbound.get: refuses every URL that is not public, without a connection", async () => {
  const web = fakeWeb();
  for (const [url, message] of REFUSED_URLS) await assert.rejects(web.get(url), isRefused(message), url);
  assert.equal(web.requests.length, 0);
});

test("Outbound.get: connects to private addresses if allowed, never to multicast or unspecified addresses", async () => {
  const web = fakeWeb();
  web.answers.set("http://home.example/", {});
  assert.equal((await web.get("http://home.example/", { allowPrivate: true })).status, 200);
  for (const url of ["http://224.0.0.1/", "http://0.0.0.0/", "http://[::]/"]) {
    await assert.rejects(
      web.get(url, { allowPrivate: true }),
      isRefused(/connections to .* are not allowed/),
      url,
    );
  }
});

test("Outbound.get: refuses a name if one of its addresses is private", async () => {
  const web = fakeWeb();
  web.names.set("both.example", ["93.184.216.34", "10.0.0.1"]);
  const problem = /10\.0\.0\.1 is a private address \(see the setting private-urls\)/;
  await assert.rejects(web.get("http://both.example/"), isRefused(problem));
  // The message names the setting only if the setting can allow the address.
  await assert.rejects(web.get("http://0.0.0.0/"), isRefused(/0\.0\.0\.0 is an unspecified address$/));
});

test("Outbound.get: follows redirects and checks each hop", async () => {
  const web = fakeWeb();
  web.answers.set("http://a.example/r", { status: 302, headers: { location: "/x" } });
  assert.equal((await web.get("http://a.example/r")).finalUrl, "http://a.example/x");
  for (const location of ["file:///etc/passwd", "http://127.0.0.1/", "//home.example/", "http://[::1]:80/"]) {
    web.answers.set("http://a.example/r", { status: 307, headers: { location } });
    await assert.rejects(web.get("http://a.example/r"), isRefused(/could not be fetched/), location);
    await assert.rejects(
      web.get("http://a.example/r", { allowPrivate: true }),
      isRefused(/could not be/),
      location,
    );
  }
});

test("Outbound.get: explains what to do if a redirect leads to a magnet link", async () => {
  const web = fakeWeb();
  const headers = { location: "magnet:?xt=urn:btih:0000000000000000000000000000000000000000" };
  web.answers.set("http://a.example/r", { status: 302, headers });
  await assert.rejects(web.get("http://a.example/r"), isRefused(/leads to a magnet link: pass that/));
});

test("Outbound.get: follows a redirect from one private address to another", async () => {
  const web = fakeWeb();
  web.answers.set("http://home.example/r", { status: 301, headers: { location: "http://192.168.1.3/y" } });
  web.answers.set("http://192.168.1.3/y", {});
  assert.equal(
    (await web.get("http://home.example/r", { allowPrivate: true })).finalUrl,
    "http://192.168.1.3/y",
  );
});

test("Outbound.get: follows five redirects, not six", async () => {
  const web = fakeWeb();
  for (let i = 0; i < 6; i++) {
    web.answers.set(`http://a.example/${i}`, { status: 302, headers: { location: `/${i + 1}` } });
  }
  web.answers.set("http://a.example/6", {});
  assert.equal((await web.get("http://a.example/1")).status, 200);
  await assert.rejects(web.get("http://a.example/0"), isRefused(/more than 5 redirects/));
});

test("Outbound.get: sends credentials and origin headers to their own origin only", async () => {
  const web = fakeWeb();
  web.names.set("b.example", ["93.184.216.35"]);
  web.answers.set("http://a.example/1", { status: 302, headers: { location: "/2" } });
  web.answers.set("http://a.example/2", { status: 302, headers: { location: "http://b.example/3" } });
  web.answers.set("http://b.example/3", {});
  const answer = await web.get("http://us%20er:p%C3%A9@a.example/1", {
    headers: { Cookie: "c=1", "X-One": "1" },
    originHeaders: { Referer: "http://r/" },
  });
  assert.equal(answer.finalUrl, "http://b.example/3");
  const [first, second, third] = web.requests.map(({ headers }) => headers);
  const authorization = `Basic ${Buffer.from("us er:pé").toString("base64")}`;
  for (const headers of [first!, second!]) {
    assert.deepEqual([headers.authorization, headers.cookie, headers["x-one"]], [authorization, "c=1", "1"]);
    assert.equal(headers.referer, "http://r/");
  }
  assert.equal(third!.referer, undefined);
  assert.deepEqual([third!.authorization, third!.cookie, third!["x-one"]], [undefined, undefined, "1"]);
  assert.ok(web.requests.every(({ url }) => url.username === "" && url.password === ""));
});

test("Outbound.get: tries the next address if one does not respond", async () => {
  const web = fakeWeb();
  web.names.set("two.example", ["2606:2800:220:1::1", "93.184.216.34"]);
  web.answers.set("http://two.example/", async () => {
    if (web.requests.length === 1) return new Promise<never>(() => {});
    return { status: 200, headers: new Headers(), body: streamOf([]) };
  });
  const answer = web.get("http://two.example/");
  await web.clock.advance(4600);
  assert.equal((await answer).status, 200);
  assert.deepEqual(
    web.requests.map(({ connectTo }) => connectTo),
    ["2606:2800:220:1::1", "93.184.216.34"],
  );
  assert.equal(web.requests[0]!.signal!.aborted, true);
});

test("Outbound.get: times out if the name lookup, the head or the body hangs", async () => {
  const web = fakeWeb();
  web.answers.set("http://a.example/head", () => new Promise<never>(() => {}));
  web.answers.set("http://a.example/body", { body: new ReadableStream() });
  for (const url of ["http://hangs.example/", "http://a.example/head", "http://a.example/body"]) {
    const isLate = isRefused(/no complete response within 9 s/, "url_unreachable");
    const outcome = assert.rejects(web.get(url), isLate, url);
    await web.clock.advance(9001);
    await outcome;
    assert.equal(web.clock.waiting, 0, url);
  }
});

test("Outbound.get: ends when the signal fires", async () => {
  const web = fakeWeb();
  web.answers.set("http://a.example/x", { body: new ReadableStream() });
  const controller = new AbortController();
  const outcome = assert.rejects(
    web.get("http://a.example/x", { signal: controller.signal }),
    isRefused(/was cancelled/, "cancelled"),
  );
  await web.clock.advance(1);
  controller.abort();
  await outcome;
  assert.equal(web.clock.waiting, 0);
  await assert.rejects(
    web.get("http://a.example/x", { signal: controller.signal }),
    isRefused(/./, "cancelled"),
  );
});

test("Outbound.get: the error names what failed and why", async () => {
  const web = fakeWeb();
  await assert.rejects(
    web.get("http://gone.example/"),
    isRefused(/the thing could not be fetched: no such name/, "url_unreachable"),
  );
  await assert.rejects(web.get("http://a.example/none"), isRefused(/connection refused/, "url_unreachable"));
});

test("Outbound.get: limits the body length, announced or not", async () => {
  const web = fakeWeb();
  const large = new Uint8Array(2000);
  web.answers.set("http://a.example/x", { body: streamOf([large, large]) });
  await assert.rejects(web.get("http://a.example/x", { limitBytes: 3999 }), isRefused(/larger than 3999/));
  web.answers.set("http://a.example/x", { body: streamOf([large, large]) });
  assert.equal((await web.get("http://a.example/x", { limitBytes: 4000 })).bytes.length, 4000);
  let isCancelled = false;
  const body = new ReadableStream<Uint8Array>({
    cancel() {
      isCancelled = true;
    },
  });
  web.answers.set("http://a.example/x", { headers: { "content-length": "5000" }, body });
  await assert.rejects(web.get("http://a.example/x", { limitBytes: 4000 }), isRefused(/larger than 4000/));
  assert.ok(isCancelled);
});

test("Outbound.get: decompresses a single content encoding", async () => {
  const web = fakeWeb();
  const plain = latin1Bytes("hello ".repeat(1000));
  const packed: readonly (readonly [string, Uint8Array])[] = [
    ["gzip", gzipSync(plain)],
    ["X-GZIP", gzipSync(plain)],
    ["deflate", deflateSync(plain)],
    ["deflate", deflateRawSync(plain)],
    ["identity", plain],
  ];
  for (const [encoding, body] of packed) {
    web.answers.set("http://a.example/x", {
      headers: { "content-encoding": encoding },
      body: new Uint8Array(body),
    });
    assert.deepEqual((await web.get("http://a.example/x")).bytes, plain, encoding);
  }
});

test("Outbound.get: refuses unknown, chained and invalid encodings", async () => {
  const web = fakeWeb();
  const bodies: readonly (readonly [string, Uint8Array, RegExp])[] = [
    ["br", new Uint8Array(9), /content encoding br/],
    ["gzip, gzip", gzipSync(gzipSync("x")), /content encoding gzip, gzip/],
    ["gzip", latin1Bytes("plain text"), /compressed body is invalid/],
    ["gzip", gzipSync("hello hello").subarray(0, 18), /compressed body is invalid/],
  ];
  for (const [encoding, body, message] of bodies) {
    web.answers.set("http://a.example/x", {
      headers: { "content-encoding": encoding },
      body: new Uint8Array(body),
    });
    await assert.rejects(web.get("http://a.example/x"), isRefused(message, "url_unreachable"), encoding);
  }
});

test("Outbound.get: refuses decompression bombs", async () => {
  const web = fakeWeb();
  const bomb = gzipSync(new Uint8Array(40_000_000));
  web.answers.set("http://a.example/x", {
    headers: { "content-encoding": "gzip" },
    body: new Uint8Array(bomb),
  });
  await assert.rejects(
    web.get("http://a.example/x", { limitBytes: 1e9 }),
    isRefused(/decompresses to more than 100 times/),
  );
  await assert.rejects(
    web.get("http://a.example/x", { limitBytes: 100_000 }),
    isRefused(/larger than 100000/),
  );
});

test("Outbound.get: applies the additional check to each hop", async () => {
  const web = fakeWeb();
  web.answers.set("http://a.example/r", { status: 302, headers: { location: "/x" } });
  const seen: string[] = [];
  const check: OutboundOptions["check"] = (url, scope) => {
    seen.push(`${url.pathname} ${scope}`);
    return url.pathname === "/x" ? "not this one" : undefined;
  };
  await assert.rejects(web.get("http://a.example/r", { check }), isRefused(/not this one/));
  assert.deepEqual(seen, ["/r global", "/x global"]);
});
