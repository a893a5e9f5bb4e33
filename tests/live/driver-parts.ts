import { runtime } from "#runtime";
import type { PeerAddress } from "../../src/base/address.ts";
import type { PieceSink } from "../../src/live/contract.ts";
import { LiveDriver } from "../../src/live/live-driver.ts";
import type { LiveDriverOptions } from "../../src/live/live-setup.ts";
import { listenForPeers } from "../../src/net/peer-listener.ts";
import type { SignedHeader } from "../../src/protocol/live/messages.ts";
import { RoleProofs, type RoleProofsSetup } from "../../src/protocol/live/role-proofs.ts";
import { ConnectionCount } from "../../src/transfer/connection-count.ts";
import { cutPiece } from "../../src/wire/live/chunks.ts";
import { decodeHeader, encodeHeader } from "../../src/wire/live/header.ts";
import type { LiveInfo } from "../../src/wire/live/info.ts";
import type { LiveRole } from "../../src/wire/live/peer-info.ts";
import { makeLiveTransportFile, parseLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { chunkHashesOf, liveHash, signHeader } from "../../src/wire/live/trust.ts";
import { makePeerId } from "../../src/wire/peer/peer-id.ts";
import { keepingLog, someBytes } from "../engine/parts.ts";
import { someLimits } from "../protocol/swarm/some-limits.ts";
import { seededRandom } from "../seeded-random.ts";

const EMPTY_META = { categories: [], tags: [], languages: [], countries: [] };

/** A stream with its own key; `changes` to its transport file. */
export function someStream(changes: Partial<LiveInfo> = {}, seed = 1) {
  const key = runtime.ed25519Key(someBytes(32, seed));
  const info: LiveInfo = {
    name: "test",
    publicKey: key.publicKey,
    stripeCount: 4,
    pieceMs: 50,
    maxPieceBytes: 256 * 1024,
    bytesPerSecond: 100_000,
    windowSeconds: 60,
    segmentMs: 1_000,
    container: "mpegts",
    isPrivate: false,
    ...changes,
  };
  const recipe = { info, trackers: [], meta: EMPTY_META, relays: [], manifests: [] };
  const bytes = makeLiveTransportFile(recipe as never, key.sign);
  const file = parseLiveTransportFile(bytes, runtime.sha1, runtime.ed25519Verifier);
  return { key, file };
}

/** The proofs of roles in a stream. */
export function someRoles(
  stream: SomeStream = someStream(),
  parts: Partial<RoleProofsSetup> = {},
): RoleProofs {
  const { infohash, info } = stream.file;
  return new RoleProofs({
    ...{ infohash, streamKey: info.publicKey, peerId: someBytes(20, 1), unixMs: () => 0 },
    ...{ verifierOf: runtime.ed25519Verifier, randomBytes: runtime.randomBytes },
    ...parts,
  });
}

export type SomeStream = ReturnType<typeof someStream>;

/** Makes consecutive signed pieces. */
export class PieceMaker {
  readonly #stream: SomeStream;
  readonly #epoch: number;
  #seq: number;
  #previous: Uint8Array = new Uint8Array(20);

  constructor(stream: SomeStream, firstSeq = 100, epoch = 1_000) {
    this.#stream = stream;
    this.#epoch = epoch;
    this.#seq = firstSeq;
  }

  /** Makes the next piece of these bytes, with a random access point at its start. */
  make(bytes: Uint8Array, atMs = Date.now()): { header: SignedHeader; chunks: Uint8Array[] } {
    const { key, file } = this.#stream;
    const { stripeCount } = file.info;
    const encoded = encodeHeader({
      epoch: this.#epoch,
      seq: this.#seq++,
      timestampMs: Math.round(atMs),
      spanMs: file.info.pieceMs,
      clockReference: undefined,
      randomAccessOffset: bytes.length > 0 ? 0 : undefined,
      isSegmentStart: false,
      segment: 1,
      isDiscontinuity: false,
      isEnd: false,
      pieceBytes: bytes.length,
      previousHash: this.#previous,
      chunkHashes: chunkHashesOf(bytes, stripeCount, runtime.sha256),
    });
    signHeader(encoded, file.infohash, key.sign);
    this.#previous = liveHash(encoded, runtime.sha256);
    return {
      header: { value: decodeHeader(encoded, file.info), bytes: encoded },
      chunks: cutPiece(bytes, stripeCount),
    };
  }
}

/** Records the pieces it receives. */
export class NotingSink implements PieceSink {
  readonly pieces: { readonly epoch: number; readonly seq: number; readonly bytes: Uint8Array }[] = [];
  readonly skipped: number[] = [];
  restarts = 0;
  #wake: () => void = () => {};

  piece(header: SignedHeader["value"], chunks: readonly Uint8Array[]): void {
    const { epoch, seq } = header;
    this.pieces.push({ epoch, seq, bytes: Buffer.concat(chunks) });
    this.#wake();
  }

  skip(seq: number): void {
    this.skipped.push(seq);
    this.#wake();
  }

  restarted(): void {
    this.restarts++;
    this.#wake();
  }

  /** Waits until `isEnough` is true. */
  async until(isEnough: (sink: NotingSink) => boolean): Promise<void> {
    while (!isEnough(this)) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

/** A driver with a real socket on the loopback network. */
export interface LoopbackPeer {
  readonly driver: LiveDriver;
  readonly sink: NotingSink;
  readonly address: PeerAddress;
  readonly forks: number[];
  readonly connections: ConnectionCount;
  close(): Promise<void>;
}

/** Starts a driver. `host` is in 127.0.0.0/8: few addresses of one /24 are accepted. */
export async function loopbackPeer(
  stream: SomeStream,
  role: LiveRole,
  changes: Partial<LiveDriverOptions> & { host?: string; port?: number } = {},
): Promise<LoopbackPeer> {
  const { host = "127.0.0.1", port = 0, ...parts } = changes;
  const { file } = stream;
  const sink = new NotingSink();
  const forks: number[] = [];
  const connections = new ConnectionCount(100);
  const log = keepingLog();
  let driver: LiveDriver | undefined;
  const adopt = (_: unknown, ...given: Parameters<LiveDriver["accept"]>) => driver?.accept(...given);
  const listener = await listenForPeers({ ...runtime, log, adopt }, { host, port });
  driver = new LiveDriver({
    infohash: file.infohash,
    info: file.info,
    infoBytes: file.infoBytes,
    role,
    peerId: makePeerId(runtime.randomBytes(20)),
    runtime,
    random: seededRandom(listener.address.port),
    announcer: {
      announce: () => Promise.resolve({ ok: false, reason: "none here" }),
      scrape: () => Promise.resolve(undefined),
    },
    trackers: [],
    listenPort: listener.address.port,
    uploadBytesPerSecond: 10_000_000,
    uploadLimit: 0,
    limits: someLimits({}),
    lagMs: 3_000,
    keepMs: 10_000,
    connections,
    log,
    sink,
    forked: (seq) => void forks.push(seq),
    ...(role !== "viewer" && { roleKey: { role, sign: stream.key.sign } }),
    ...parts,
  });
  driver.start();
  return {
    driver,
    sink,
    forks,
    connections,
    address: listener.address,
    close: async () => {
      await driver.stop();
      await listener.close();
    },
  };
}
