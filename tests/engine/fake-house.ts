import { createHash, randomBytes } from "node:crypto";
import { SluiceError } from "../../src/base/errors.ts";
import type { Log } from "../../src/base/log.ts";
import type { EngineSettings, TransferContent } from "../../src/engine/contract.ts";
import { createEngine, type PlaybackRequest } from "../../src/engine/engine.ts";
import type { Hold } from "../../src/engine/holds.ts";
import type { Outbound } from "../../src/outbound/outbound.ts";
import { ed25519Verifier } from "../../src/runtime/crypto.ts";
import { NO_REACH } from "../parts/no-reach.ts";
import { makeTorrent } from "../wire/make-torrent.ts";
import { FakeClock } from "./fake-clock.ts";
import { FakeTransfers } from "./fake-transfers.ts";
import { NO_BROADCASTS } from "./parts.ts";

export const SETTINGS: EngineSettings = {
  dataDir: "/nowhere",
  p2pHost: "127.0.0.1",
  p2pPort: 0,
  cacheLimitBytes: 0,
  memoryLimitBytes: 64 * 1024 * 1024,
  uploadLimit: 0,
  downloadLimit: 0,
  sessionIdleMs: 60_000,
  transferIdleMs: 300_000,
  peersTimeoutMs: 30_000,
  metadataTimeoutMs: 30_000,
  startTimeoutMs: 60_000,
  maxConnections: 100,
  trackers: [],
  liveWindowMs: 60_000,
  liveLimitBytes: 0,
  liveLagMs: 3_000,
  segmentSeconds: 6,
  compat: "document",
  reach: NO_REACH,
};

export const SILENT: Log = { error() {}, warn() {}, info() {}, debug() {}, named: () => SILENT };

/** An engine on fakes: nothing moves unless the test moves it. */
export function fakeHouse(settings: Partial<EngineSettings> = {}) {
  const clock = new FakeClock();
  const transfers = new FakeTransfers();
  /** What URLs answer with. */
  const web = new Map<string, { status: number; bytes: Uint8Array<ArrayBuffer> }>();
  const asked: { url: string; allowPrivate: boolean }[] = [];
  const outbound: Outbound = {
    async get(url, { allowPrivate }) {
      asked.push({ url, allowPrivate });
      const answer = web.get(url);
      if (!answer) throw new SluiceError("url_unreachable", `nothing answers at ${url}`);
      return { ...answer, headers: new Headers(), finalUrl: url };
    },
    async open(url, options) {
      const { bytes, ...answer } = await outbound.get(url, { ...options, timeoutMs: 1 });
      const body = new Blob([bytes]).stream();
      return { ...answer, body, allowPrivate: options.allowPrivate };
    },
  };
  /** What is wrong with the proxy. */
  const proxy: { problem: string | undefined } = { problem: undefined };
  let openOwned: ((content: TransferContent) => Hold) | undefined;
  const engine = createEngine({
    runtime: {
      clock,
      ed25519Verifier,
      sha1: (bytes) => new Uint8Array(createHash("sha1").update(bytes).digest()),
      sha256: (bytes) => new Uint8Array(createHash("sha256").update(bytes).digest()),
      randomBytes: (length) => new Uint8Array(randomBytes(length)),
      async lookup(name) {
        if (name === "peer.example") return ["203.0.113.7"];
        throw new SluiceError("url_unreachable", `${name} has no address`);
      },
    },
    settings: { ...SETTINGS, ...settings },
    log: SILENT,
    transfers,
    outbound,
    proxyProblem: () => proxy.problem,
    createBroadcasts: (open) => {
      openOwned = open;
      return NO_BROADCASTS;
    },
  });
  /** Opens content as a broadcast of this engine does. */
  const broadcast = (content: TransferContent) => openOwned!(content);
  return { clock, transfers, web, asked, proxy, engine, broadcast };
}

/** A transport file with a film, a longer one, and a text. */
export function filmTorrent(name = "films") {
  return makeTorrent({
    name,
    pieceLength: 16384,
    files: [
      { path: "short.mp4", bytes: new Uint8Array(5000) },
      { path: "long.mkv", bytes: new Uint8Array(20_000) },
      { path: "readme.txt", bytes: new Uint8Array(30_000) },
    ],
  });
}

/** Base64 of bytes, as players post transport files. */
export function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

/** A player's start of this transport file. */
export function playbackRequest(bytes: Uint8Array, changes: Partial<PlaybackRequest> = {}): PlaybackRequest {
  return {
    selector: { kind: "transport_file", bytes },
    playerId: undefined,
    output: "ts",
    container: "auto",
    fileIndex: undefined,
    audioLanguage: undefined,
    clientSessionId: -1,
    wantsEvents: false,
    allowPrivateUrls: true,
    ...changes,
  };
}
