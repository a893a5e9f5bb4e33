import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { runtime as real } from "#runtime";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { createEngine, type Engine } from "../../src/engine/engine.ts";
import { createTransfers } from "../../src/engine/transfers.ts";
import { createAnnouncer } from "../../src/net/announcer.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import type { PlaybackRequest } from "../../src/playback/contract.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import type { Net, OutboundRequest, Runtime, TcpSocket } from "../../src/runtime/contract.ts";
import type { ContentSelector } from "../../src/transfer/contract.ts";
import { bencodeDict, encodeBencode } from "../../src/wire/bencode-encode.ts";
import { settled } from "../engine/fake-clock.ts";
import { keepingLog, NO_BROADCASTS, someSettings } from "../engine/parts.ts";
import { announceRequest } from "../parts/announce-request.ts";
import { isFastRun } from "../parts/test-tiers.ts";
import { makeTorrent } from "../wire/make-torrent.ts";
import { lookUpPrivate, privateHosts } from "./private-hosts.ts";

/** The only public address. Any other destination is a leak. */
const PUBLIC = "93.184.216.34";
const ALL_HOSTS = privateHosts();
const HOSTS = isFastRun ? ALL_HOSTS.filter((_, i) => i % 4 === 0) : ALL_HOSTS;

/** A network that records every connection and datagram that does not go to the public address. */
class RecordingNetwork {
  readonly leaks: string[] = [];
  reached = 0;
  answer: (url: URL) => { location?: string; body?: string | Uint8Array } = () => ({});
  readonly #lookups = new Map<string, number>();

  readonly runtime: Runtime = {
    ...real,
    lookup: async (name) => {
      const found = lookUpPrivate(name);
      if (found) return found;
      // DNS rebinding: the first lookup returns the public address, the next one a private one.
      const times = this.#lookups.get(name) ?? 0;
      this.#lookups.set(name, times + 1);
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
    else this.leaks.push(what);
  }
}

/** An engine on that network. */
async function withEngine(work: (engine: Engine, network: RecordingNetwork) => Promise<void>): Promise<void> {
  const network = new RecordingNetwork();
  // The engine's timers do not keep the process alive, but its `stopped` announces wait for one.
  const alive = setInterval(() => {}, 1000);
  const folder = await mkdtemp(join(tmpdir(), "sluice-ssrf-"));
  const log = keepingLog();
  const settings = someSettings(folder, { cacheLimitBytes: 0 });
  const { runtime } = network;
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
    await work(engine, network);
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

/** Three ways to a private address: directly, by a public server's redirect, by DNS rebinding. */
const WAYS = {
  direct: (host: string, _i: number, scheme = "http") => `${scheme}://${host}/x`,
  redirect: (_host: string, i: number) => `http://pub.example/to/${i}`,
  rebinding: (_host: string, i: number, scheme = "http") => `${scheme}://rebind-${i}.example:80/x`,
};

const redirecting = (url: URL) => {
  const match = /^\/to\/(\d+)/.exec(url.pathname);
  return match ? { location: `http://${HOSTS[Number(match[1])]}/x` } : {};
};

test("privateHosts: at least 500 different forms", () => {
  assert.ok(ALL_HOSTS.length >= 500, String(ALL_HOSTS.length));
  assert.equal(new Set(ALL_HOSTS).size, ALL_HOSTS.length);
});

for (const [way, urlOf] of Object.entries(WAYS)) {
  test(`SSRF: url= (${way}): connects only to the public server`, async () => {
    await withEngine(async (engine, network) => {
      network.answer = redirecting;
      for (const [i, host] of HOSTS.entries()) {
        const selector = { kind: "url", url: urlOf(host, i) } as const;
        await assert.rejects(engine.start(request(selector, false)), `${host}`);
        // Each request resolves the name once; the second one gets the private address.
        await assert.rejects(engine.start(request(selector, false)), `${host}`);
      }
      assert.deepEqual(network.leaks, []);
      assert.equal(network.reached > 0, way !== "direct");
    });
  });

  test(`SSRF: HTTP trackers (${way}): connects only to the public server`, async () => {
    const network = new RecordingNetwork();
    network.answer = redirecting;
    const announcer = createAnnouncer(
      network.runtime,
      createOutbound(network.runtime, keepingLog()),
      keepingLog(),
    );
    for (const [i, host] of HOSTS.entries()) {
      const url = urlOf(host, i).replace(/\/x$/, "/announce");
      assert.equal((await announcer.announce(announceRequest(url))).ok, false, url);
      assert.equal(await announcer.scrape(url, announceRequest(url).infohash), undefined, url);
    }
    announcer.close();
    assert.deepEqual(network.leaks, []);
  });
}

for (const [way, scheme] of [
  ["direct", "udp"],
  ["rebinding", "udp"],
  ["direct", "wss"],
  ["rebinding", "ws"],
] as const) {
  test(`SSRF: ${scheme} trackers (${way}): sends only to the public server`, async () => {
    const network = new RecordingNetwork();
    const announcer = createAnnouncer(
      network.runtime,
      createOutbound(network.runtime, keepingLog()),
      keepingLog(),
    );
    for (const [i, host] of HOSTS.entries()) {
      const stop = new AbortController();
      const url = way === "direct" ? `${scheme}://${host}:80` : WAYS.rebinding(host, i, scheme);
      const announced = announcer.announce(announceRequest(url), { signal: stop.signal });
      await Promise.race([announced, settled()]);
      stop.abort(new Error("enough"));
      assert.equal((await announced).ok, false, url);
    }
    announcer.close();
    assert.deepEqual(network.leaks, []);
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
  // A public server must not lead to private addresses even if the caller may use them.
  for (const allowPrivate of [false, true]) {
    const caller = allowPrivate ? "local caller" : "remote caller";
    test(`SSRF: the ${sink} of a public HLS manifest, ${caller}: connects only to public servers`, async () => {
      await withEngine(async (engine, network) => {
        network.answer = (url) => {
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
        assert.deepEqual(network.leaks, []);
        assert.ok(network.reached >= HOSTS.length);
      });
    });
  }
}

/** A link and a transport file with trackers and peers of every kind on `host`. */
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
  test(`SSRF: trackers and peers of a ${kind}: contacted for a local caller only`, async () => {
    await withEngine(async (engine, network) => {
      const selectorOf = (host: string): ContentSelector => {
        const { magnet, file } = linkTo(host);
        if (kind === "magnet") return { kind: "magnet", magnet };
        if (kind === "transport file") return { kind: "transport_file", bytes: file };
        return { kind: "url", url: `http://${server}/${encodeURIComponent(host)}` };
      };
      let server = "pub.example";
      network.answer = ({ pathname }) => ({ body: linkTo(decodeURIComponent(pathname.slice(1))).file });
      for (const host of HOSTS.filter((_, i) => i % 7 === 0)) {
        const session = await engine.start(request(selectorOf(host), false));
        await settled();
        session.stop();
      }
      if (kind === "fetched transport file") {
        const session = await engine.start(request(selectorOf("192.168.1.9"), true));
        await settled();
        session.stop();
        server = "192.168.1.8";
      }
      assert.deepEqual(network.leaks, []);
      // Control: for a local caller the engine follows the same link, unless a public server sent it.
      const session = await engine.start(request(selectorOf("192.168.1.9"), true));
      for (let turns = 0; turns < 1000 && !network.leaks.join().includes("192.168.1.9:"); turns++)
        await settled();
      session.stop();
      assert.match(network.leaks.join(), /192\.168\.1\.9/);
    });
  });
}

test("SSRF: private peer addresses from a public tracker are dropped", async () => {
  const network = new RecordingNetwork();
  network.answer = () => ({
    body: encodeBencode(
      bencodeDict({ interval: 900, peers: new Uint8Array([192, 168, 1, 1, 0, 80, 8, 8, 8, 8, 26, 225]) }),
    ),
  });
  const announcer = createAnnouncer(
    network.runtime,
    createOutbound(network.runtime, keepingLog()),
    keepingLog(),
  );
  for (const allowPrivate of [false, true]) {
    const request = announceRequest("http://pub.example/announce");
    const reply = await announcer.announce(request, { allowPrivate });
    assert.ok(reply.ok);
    assert.deepEqual(reply.peers, [{ host: "8.8.8.8", port: 6881 }]);
  }
  announcer.close();
});
