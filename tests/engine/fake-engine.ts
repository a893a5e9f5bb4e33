import { createHash, randomBytes } from "node:crypto";
import { SluiceError } from "../../src/base/errors.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { createEngine } from "../../src/engine/engine.ts";
import type { Outbound } from "../../src/outbound/outbound.ts";
import type { OpenOptions } from "../../src/outbound/request.ts";
import type { PlaybackRequest } from "../../src/playback/contract.ts";
import { ed25519Verifier } from "../../src/runtime/crypto.ts";
import type { EngineSettings, Hold, TransferContent } from "../../src/transfer/contract.ts";
import { makeTorrent } from "../wire/make-torrent.ts";
import { FakeClock } from "./fake-clock.ts";
import { FakeTransfers } from "./fake-transfers.ts";
import { NO_BROADCASTS, someSettings } from "./parts.ts";

export const SETTINGS: EngineSettings = someSettings("/nowhere", {
  cacheLimitBytes: 0,
  memoryLimitBytes: 64 * 1024 * 1024,
  transferIdleMs: 300_000,
  peersTimeoutMs: 30_000,
  metadataTimeoutMs: 30_000,
  startTimeoutMs: 60_000,
  maxConnections: 100,
});

/** Creates an engine on a fake clock, fake transfers and a fake web. */
export function fakeEngine(settings: Partial<EngineSettings> = {}) {
  const clock = new FakeClock();
  const transfers = new FakeTransfers();
  /** The responses of URLs. */
  const web = new Map<string, { status: number; bytes: Uint8Array<ArrayBuffer> }>();
  const asked: ({ url: string } & Pick<OpenOptions, "allowPrivate" | "headers" | "originHeaders">)[] = [];
  const outbound: Outbound = {
    async get(url, options) {
      asked.push({ url, ...options });
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
  /** The current problem of the proxy. */
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
    log: SILENT_LOG,
    transfers,
    outbound,
    proxyProblem: () => proxy.problem,
    createBroadcasts: (open) => {
      openOwned = open;
      return NO_BROADCASTS;
    },
  });
  /** Opens content as a broadcast does. */
  const broadcast = (content: TransferContent) => openOwned!(content);
  return { clock, transfers, web, outbound, asked, proxy, engine, broadcast };
}

/** Returns a transport file with a short film, a long film and a text file. */
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

/** Returns the playback request of a player for this transport file. */
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
