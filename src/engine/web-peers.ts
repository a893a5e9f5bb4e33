import { sleep } from "../async/sleep.ts";
import { addressScope, canonicalAddress } from "../base/address.ts";
import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import { playOrder } from "../base/play-order.ts";
import type { AcquireOptions, TransferLease } from "../playback/contract.ts";
import type { Clock, TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import type { ContentSelector, Transfer, Transfers } from "../transfer/contract.ts";
import type { ListedSegment, PieceSegments, UploadAllowance } from "../transfer/piece-segments.ts";
import { makeTransportFile, type TransportFile } from "../wire/torrent/metainfo.ts";
import { pieceLayersByRoot } from "../wire/torrent/piece-layers.ts";

/** WebSocket trackers that a page uses. */
const MAX_TRACKERS = 3;

/**
 * Returns whether pages may connect to a tracker that a broadcaster names: it runs on the same host as the engine, or has a public name or
 * address and a certificate. A page must not connect to devices of its visitor's network.
 */
function mayContact(tracker: string, host: string): boolean {
  if (!/^wss?:/i.test(tracker) || !URL.canParse(tracker)) return false;
  const { protocol, hostname } = new URL(tracker);
  if (hostname === host) return true;
  const address = canonicalAddress(hostname.replace(/^\[|\]$/g, ""));
  if (address !== undefined) return protocol === "wss:" && addressScope(address) === "global";
  return protocol === "wss:" && /^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(hostname) && !LOCAL_NAME.test(hostname);
}

/** Names that no public name server resolves. */
const LOCAL_NAME = /\.(?:local|localhost|internal|lan|home|arpa)$/;

/** What the page of a stream or of a film needs to know. */
interface PageContent {
  readonly title: string;
  /** The file to play; undefined for a live stream. */
  readonly fileIndex: number | undefined;
  /** The target duration of the segments of files. */
  readonly segmentSeconds: number;
  /** WebSocket trackers by which its pages find those of other engines. */
  readonly trackers: readonly string[];
  /** The last segments of a live stream, which {@link WebPeers.pieces} returns. */
  readonly segments: readonly ListedSegment[];
}

/** Content that is open: a live stream, or else files. */
interface OpenContent extends Pick<Transfer, "name" | "files" | "live"> {
  readonly file: TransportFile | undefined;
}

/** Trackers of a transport file may contain the secret of a user. */
function withoutTrackers({ infoBytes, info }: TransportFile): Uint8Array<ArrayBuffer> {
  return makeTransportFile(infoBytes, [], info.layers && pieceLayersByRoot(info.layers, info.pieceHashes));
}

/** Bytes between two looks at the limits. */
const TURN_BYTES = 32 * 1024;

/** Returns `bytes` as a stream that keeps to the limits. Without limits, it is one chunk. */
function limitedStream(
  bytes: Uint8Array<ArrayBuffer>,
  allowance: UploadAllowance | undefined,
  clock: Clock,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const cancelled = new AbortController();
  let sent = 0;
  return new ReadableStream({
    async pull(controller) {
      for (;;) {
        const waitMs = allowance?.waitMs(clock.now()) ?? 0;
        if (waitMs === 0) break;
        await sleep(clock, waitMs, cancelled.signal);
        if (cancelled.signal.aborted) return;
      }
      const chunk = bytes.subarray(sent, allowance ? sent + TURN_BYTES : undefined);
      sent += chunk.length;
      allowance?.spend(chunk.length, clock.now());
      // A response without pieces is empty, and streams must not contain empty chunks.
      if (chunk.length > 0) controller.enqueue(chunk);
      if (sent === bytes.length) controller.close();
    },
    cancel: () => cancelled.abort(),
  });
}

/** Dependencies of {@link WebPeers}. */
interface WebPeersDependencies {
  readonly segmentSeconds: number;
  readonly clock: Clock;
  readonly transfers: Pick<Transfers, "accept" | "get">;
  readonly acquire: (selector: ContentSelector, options?: AcquireOptions) => Promise<TransferLease>;
}

/** Lets pages take part in swarms as peers (docs/design/browser-peers.md). */
export class WebPeers {
  readonly #dependencies: WebPeersDependencies;

  constructor(dependencies: WebPeersDependencies) {
    this.#dependencies = dependencies;
  }

  /** Opens content, and returns its transport file: of files without their trackers. Rejects with `SluiceError`; with
   * `unsupported_content` if the content has none, or is private (BEP 27). */
  transportFile(infohash: Infohash, options?: AcquireOptions): Promise<Uint8Array<ArrayBuffer>> {
    return this.#open(infohash, options, ({ live, file }) =>
      live ? live.content.file.bytes.slice() : withoutTrackers(file!),
    );
  }

  /**
   * Opens content, and returns what its page needs to know. `host` is the name by which pages know this engine. Rejects as
   * {@link transportFile} does.
   */
  describe(infohash: Infohash, host: string, options?: AcquireOptions): Promise<PageContent> {
    return this.#open(infohash, options, ({ name, files, live, file }) => ({
      title: name,
      segmentSeconds: this.#dependencies.segmentSeconds,
      segments: live?.pieces?.list() ?? [],
      fileIndex: live ? undefined : playOrder(files)[0]?.index,
      trackers: [
        ...new Set([...(live?.content.file ?? file!).trackers.flat(), ...(live?.toldTrackers ?? [])]),
      ]
        .filter((url) => mayContact(url, host))
        .slice(0, MAX_TRACKERS),
    }));
  }

  /**
   * Opens a live stream, and returns what `read` reads of its last minutes, for the page at the address `host`. The upload limits
   * apply, and other peers come first. Rejects with `SluiceError`.
   */
  pieces(
    infohash: Infohash,
    host: string,
    options: AcquireOptions,
    read: (pieces: PieceSegments) => Promise<Uint8Array<ArrayBuffer>>,
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    return this.#open(infohash, options, async ({ live }) => {
      if (!live?.pieces) throw new SluiceError("no_such_segment", "this content has no live pieces");
      const bytes = await read(live.pieces);
      return limitedStream(bytes, live.uploadAllowance?.(host), this.#dependencies.clock);
    });
  }

  async #open<T>(
    infohash: Infohash,
    options: AcquireOptions = {},
    read: (content: OpenContent) => T | Promise<T>,
  ): Promise<T> {
    const { acquire, transfers } = this.#dependencies;
    const lease = await acquire({ kind: "infohash", infohash }, options);
    try {
      const { name, files, live } = lease.transfer;
      const file = live ? undefined : transfers.get(infohash)?.transportFile();
      if (live || (file && !file.info.isPrivate)) return await read({ name, files, live, file });
      throw new SluiceError("unsupported_content", "this content is private, or does not come from peers");
    } finally {
      lease.release();
    }
  }

  /** Takes over the connection of a page to the swarm of a stream that is open, and keeps the stream open until the page leaves. */
  accept(infohash: Infohash, socket: TcpSocket, options?: Pick<AcquireOptions, "isForeign">): TcpHandlers {
    const { transfers, acquire } = this.#dependencies;
    let release: (() => void) | undefined = () => {};
    void acquire({ kind: "infohash", infohash }, options).then(
      (lease) => {
        if (release) release = lease.release;
        else lease.release();
      },
      () => socket.close(),
    );
    const handlers = transfers.accept(infohash, socket);
    return {
      ...handlers,
      closed(reason) {
        release?.();
        release = undefined;
        handlers.closed(reason);
      },
    };
  }
}
