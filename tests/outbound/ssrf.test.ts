import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { runtime as real } from "#runtime";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { createAnnouncer } from "../../src/engine/announcer.ts";
import type { ContentSelector } from "../../src/engine/contract.ts";
import { createEngine, type Engine, type PlaybackRequest } from "../../src/engine/engine.ts";
import { createTransfers } from "../../src/engine/transfers.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import type { Net, OutboundRequest, Runtime, TcpSocket } from "../../src/runtime/contract.ts";
import { bencodeDict, encodeBencode } from "../../src/wire/bencode-encode.ts";
import { settled } from "../engine/fake-clock.ts";
import { keepingLog, NO_BROADCASTS, someSettings } from "../engine/parts.ts";
import { announceRequest } from "../parts/announce-request.ts";
import { makeTorrent } from "../wire/make-torrent.ts";
import { homeHosts, homeLookup } from "./home-urls.ts";

/** The one address out there. Whatever goes elsewhere has gone astray. */
const PUBLIC = "93.184.216.34";
const HOSTS = homeHosts();

/** A network that notes every connection and every datagram, and answers as the test says. */
class Witness {
  readonly astray: string[] = [];
  reached = 0;
  answer: (url: URL) => { location?: string; body?: string | Uint8Array } = () => ({});
  readonly #asked = new Map<string, number>();

  readonly runtime: Runtime = {
    ...real,
    lookup: async (name) => {
      const home = homeLookup(name);
      if (home) return home;
      // A name that changes its mind: public when it is looked at, at home when it is asked again.
      const times = this.#asked.get(name) ?? 0;
      this.#asked.set(name, times + 1);
      const rebound = /^rebind-(\d+)\.example$/.exec(name);
      return rebound && times > 0 ? ["127.0.0.1"] : [PUBLIC];
    },
    http: {
      openWebSocket: async ({ url, connectTo }) => {
        this.#note(`websocket ${connectTo} ${url.href}`, connectTo);
        throw new Error("refused");
      },
      request: async (request: OutboundRequest) => {
        this.#note(`http ${request.connectTo} ${request.url.href}`, request.connectTo);
        const { location, body = "x" } = this.answer(request.url);
        const headers = new Headers(location === undefined ? {} : { location });
        const bytes = typeof body === "string" ? encodeUtf8(body) : body;
        return {
          status: location === undefined ? 200 : 302,
          headers,
          body: new Blob([new Uint8Array(bytes)]).stream(),
        };
      },
    },
    net: {
      connect: ({ host, port }, handlers) => {
        this.#note(`tcp ${host}:${port}`, host);
        queueMicrotask(() => handlers.closed("refused"));
        return {
          remote: { host, port },
          bufferedBytes: 0,
          write: () => true,
          pause() {},
          resume() {},
          close() {},
        } as TcpSocket;
      },
      listen: async (address) => ({ address, close: async () => {} }),
      bindUdp: async (address) => ({
        address,
        send: (_bytes, { host, port }) => this.#note(`udp ${host}:${port}`, host),
        close() {},
      }),
    } satisfies Net,
  };

  #note(what: string, host: string): void {
    if (host === PUBLIC) this.reached++;
    else this.astray.push(what);
  }
}

/** An engine on that network. */
async function withEngine(work: (engine: Engine, witness: Witness) => Promise<void>): Promise<void> {
  const witness = new Witness();
  // The engine's own timers keep no process alive, and goodbyes to trackers wait for one.
  const alive = setInterval(() => {}, 1000);
  const folder = await mkdtemp(join(tmpdir(), "sluice-ssrf-"));
  const log = keepingLog();
  const settings = someSettings(folder, { cacheLimitBytes: 0 });
  const { runtime } = witness;
  const transfers = await createTransfers(runtime, settings, log, openMedia);
  const engine = createEngine({
    runtime,
    settings,
    log,
    transfers,
    outbound: createOutbound(runtime, log),
    proxyProblem: () => undefined,
    createBroadcasts: () => NO_BROADCASTS,
  });
  try {
    await work(engine, witness);
  } finally {
    await engine.stop();
    clearInterval(alive);
    await rm(folder, { recursive: true, force: true });
  }
}

function request(selector: ContentSelector, allowPrivateUrls: boolean): PlaybackRequest {
  return {
    selector,
    playerId: undefined,
    output: "hls",
    container: "auto",
    fileIndex: undefined,
    audioLanguage: undefined,
    clientSessionId: -1,
    wantsEvents: false,
    allowPrivateUrls,
  };
}

/** The three ways to a place at home: named at once, by a public server's redirect, by a name that changes its mind. */
const WAYS = {
  direct: (host: string, _i: number, scheme = "http") => `${scheme}://${host}/x`,
  redirect: (_host: string, i: number) => `http://pub.example/to/${i}`,
  rebinding: (_host: string, i: number, scheme = "http") => `${scheme}://rebind-${i}.example:80/x`,
};

const redirecting = (url: URL) => {
  const match = /^\/to\/(\d+)/.exec(url.pathname);
  return match ? { location: `http://${HOSTS[Number(match[1])]}/x` } : {};
};

test("SSRF: the forms are many, and none is the public one", () => {
  assert.ok(HOSTS.length >= 500, String(HOSTS.length));
  assert.equal(new Set(HOSTS).size, HOSTS.length);
});

for (const [way, urlOf] of Object.entries(WAYS)) {
  test(`SSRF: url= (${way}): no connection but to the public server`, async () => {
    await withEngine(async (engine, witness) => {
      witness.answer = redirecting;
      for (const [i, host] of HOSTS.entries()) {
        const selector = { kind: "url", url: urlOf(host, i) } as const;
        await assert.rejects(engine.start(request(selector, false)), `${host}`);
        // A name is looked up once for each fetch; the second fetch must not follow it home.
        await assert.rejects(engine.start(request(selector, false)), `${host}`);
      }
      assert.deepEqual(witness.astray, []);
      assert.equal(witness.reached > 0, way !== "direct");
    });
  });

  test(`SSRF: HTTP trackers (${way}): no connection but to the public server`, async () => {
    const witness = new Witness();
    witness.answer = redirecting;
    const announcer = createAnnouncer(
      witness.runtime,
      createOutbound(witness.runtime, keepingLog()),
      keepingLog(),
    );
    for (const [i, host] of HOSTS.entries()) {
      const url = urlOf(host, i).replace(/\/x$/, "/announce");
      assert.equal((await announcer.announce(announceRequest(url))).ok, false, url);
      assert.equal(await announcer.scrape(url, announceRequest(url).infohash), undefined, url);
    }
    announcer.close();
    assert.deepEqual(witness.astray, []);
  });
}

for (const [way, scheme] of [
  ["direct", "udp"],
  ["rebinding", "udp"],
  ["direct", "wss"],
  ["rebinding", "ws"],
] as const) {
  test(`SSRF: ${scheme} trackers (${way}): nothing is sent but to the public server`, async () => {
    const witness = new Witness();
    const announcer = createAnnouncer(
      witness.runtime,
      createOutbound(witness.runtime, keepingLog()),
      keepingLog(),
    );
    for (const [i, host] of HOSTS.entries()) {
      const stop = new AbortController();
      const url = way === "direct" ? `${scheme}://${host}:80` : WAYS.rebinding(host, i, scheme);
      const asked = announcer.announce(announceRequest(url), { signal: stop.signal });
      await Promise.race([asked, settled()]);
      stop.abort(new Error("enough"));
      assert.equal((await asked).ok, false, url);
    }
    announcer.close();
    assert.deepEqual(witness.astray, []);
  });
}

const HLS_SINKS: Readonly<Record<string, (url: string) => string>> = {
  variant: (url) => `#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n${url}\n`,
  segment: (url) => `#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n${url}\n#EXT-X-ENDLIST\n`,
  key: (url) =>
    `#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-KEY:METHOD=AES-128,URI="${url}"\n#EXTINF:2,\n/a.ts\n#EXT-X-ENDLIST\n`,
  map: (url) =>
    `#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI="${url}"\n#EXTINF:2,\n/a.m4s\n#EXT-X-ENDLIST\n`,
};

for (const [sink, manifest] of Object.entries(HLS_SINKS)) {
  // A public server must not lead home even those who may go there themselves.
  for (const allowPrivate of [false, true]) {
    const who = allowPrivate ? "asked on this host" : "asked from elsewhere";
    test(`SSRF: the ${sink} of a public HLS manifest, ${who}: no connection but to public servers`, async () => {
      await withEngine(async (engine, witness) => {
        witness.answer = (url) => {
          const match = /^\/hls\/(\w+)\/(\d+)/.exec(url.pathname);
          if (!match) return redirecting(url);
          const [way, i] = [match[1] as keyof typeof WAYS, Number(match[2])];
          return { body: manifest(WAYS[way](HOSTS[i]!, i)) };
        };
        for (const [i] of HOSTS.entries()) {
          for (const way of Object.keys(WAYS)) {
            const selector = { kind: "url", url: `http://pub.example/hls/${way}/${i}.m3u8` } as const;
            const session = await engine.start(request(selector, allowPrivate));
            await assert.rejects(session.settle(60_000));
            session.stop();
          }
        }
        assert.deepEqual(witness.astray, []);
        assert.ok(witness.reached >= HOSTS.length);
      });
    });
  }
}

/** Trackers and peers of every kind at one place at home, as links and transport files name them. */
function linkTo(host: string): { magnet: string; file: Uint8Array } {
  const trackers = [`http://${host}/announce`, `udp://${host}:80`, `ws://${host}/announce`];
  const name = `${Buffer.from(host).toString("hex")}.mp4`;
  const files = [{ path: name, bytes: new Uint8Array(50_000) }];
  const made = makeTorrent({
    name,
    files,
    pieceLength: 16384,
    trackers: trackers.map((url) => [url]),
  });
  const named = trackers.map((url) => `&tr=${encodeURIComponent(url)}`).join("");
  const others = ["ws", "xs", "as"]
    .map((part) => `&${part}=${encodeURIComponent(`http://${host}/x`)}`)
    .join("");
  return {
    magnet: `magnet:?xt=urn:btih:${made.infohash}${named}${others}&x.pe=${host}:6881`,
    file: made.bytes,
  };
}

for (const kind of ["magnet", "transport file", "fetched transport file"] as const) {
  test(`SSRF: trackers and peers of a ${kind}: not asked from elsewhere, but for who sits here`, async () => {
    await withEngine(async (engine, witness) => {
      const selectorOf = (host: string): ContentSelector => {
        const { magnet, file } = linkTo(host);
        if (kind === "magnet") return { kind: "magnet", magnet };
        if (kind === "transport file") return { kind: "transport_file", bytes: file };
        return { kind: "url", url: `http://pub.example/${encodeURIComponent(host)}` };
      };
      witness.answer = ({ pathname }) => ({ body: linkTo(decodeURIComponent(pathname.slice(1))).file });
      for (const host of HOSTS.filter((_, i) => i % 7 === 0)) {
        const session = await engine.start(request(selectorOf(host), false));
        await settled();
        session.stop();
      }
      assert.deepEqual(witness.astray, []);
      // The test sees what it looks for: asked on this host, the same link is followed.
      const session = await engine.start(request(selectorOf("192.168.1.9"), true));
      for (let turns = 0; turns < 1000 && witness.astray.length === 0; turns++) await settled();
      session.stop();
      assert.match(witness.astray.join(), /192\.168\.1\.9/);
    });
  });
}

test("SSRF: a public tracker that names peers at home is not believed", async () => {
  const witness = new Witness();
  witness.answer = () => ({
    body: encodeBencode(
      bencodeDict({ interval: 900, peers: new Uint8Array([192, 168, 1, 1, 0, 80, 8, 8, 8, 8, 26, 225]) }),
    ),
  });
  const announcer = createAnnouncer(
    witness.runtime,
    createOutbound(witness.runtime, keepingLog()),
    keepingLog(),
  );
  const reply = await announcer.announce(announceRequest("http://pub.example/announce"));
  announcer.close();
  assert.ok(reply.ok);
  assert.deepEqual(reply.peers, [{ host: "8.8.8.8", port: 6881 }]);
});
