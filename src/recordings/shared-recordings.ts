import { SerialQueue } from "../async/serial-queue.ts";
import type { PeerAddress } from "../base/address.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Sha1 } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Files } from "../runtime/contract.ts";
import type { Hold } from "../transfer/contract.ts";
import { magnetLink } from "../wire/torrent/magnet.ts";
import {
  MAX_TRANSPORT_FILE_BYTES,
  makeInfo,
  makeTransportFile,
  parseTransportFile,
  type TransportFile,
} from "../wire/torrent/metainfo.ts";
import type { RecordingShares, SharedRecording } from "./recording-contract.ts";
import { MAX_TEXT } from "./recording-record.ts";

/** Shares a complete file of this machine with peers, until the hold is released. */
export type ShareFile = (file: TransportFile, path: string) => Hold;

/** Dependencies of {@link SharedRecordings}. */
interface SharesDependencies {
  readonly files: Files;
  readonly sha1: Sha1;
  readonly log: Log;
  readonly share: ShareFile;
  /** Where other machines of this network reach the peers of this engine. */
  readonly peerAddresses: () => readonly PeerAddress[];
  /** Finds a recording that is over; throws `SluiceError` if there is none. */
  readonly find: (id: number) => RecordedMediaFile;
}

/** The file of a recording. `torrentPath` is where its transport file is stored while it is shared. */
export interface RecordedMediaFile {
  readonly path: string;
  readonly torrentPath: string;
  readonly bytes: number;
}

interface Share {
  state: "preparing" | "shared" | "failed";
  done: number;
  problem: string | null;
  file: TransportFile | undefined;
  hold: Hold | undefined;
  readonly abort: AbortController;
  ended: Promise<void>;
}

/** Each shared recording is an open transfer. */
const MAX_SHARES = 100;
/** Pieces are as large as needed for about this many: a list of hashes of 40 kB. */
const PIECES = 2_000;
const MIN_PIECE_BYTES = 256 * 1024;
const MAX_PIECE_BYTES = 16 * 1024 * 1024;

/**
 * Shares recordings as torrents, whose pieces are read from the files of the recordings. The torrents are private (BEP 27), so that they
 * are not announced to the DHT: peers come by the link, which names the addresses of this machine. A transport file beside the
 * recording says that it is shared.
 */
export class SharedRecordings implements RecordingShares {
  readonly #parts: SharesDependencies;
  readonly #shares = new Map<number, Share>();
  readonly #queue = new SerialQueue();

  constructor(parts: SharesDependencies) {
    this.#parts = parts;
  }

  get(id: number): SharedRecording | undefined {
    const share = this.#shares.get(id);
    if (share === undefined) return undefined;
    const { state, done, problem, file, hold } = share;
    const peers = this.#parts.peerAddresses();
    const link = file && { infohash: file.infohash, displayName: file.info.name, trackers: [], peers };
    return {
      ...{ state, share: done, problem, magnet: link ? magnetLink(link) : null },
      uploadedBytes: hold?.transfer.figures.uploaded ?? 0,
    };
  }

  /** Continues to share a recording that an earlier run shared. */
  async load(id: number): Promise<void> {
    const { files, log, sha1 } = this.#parts;
    const { path, torrentPath } = this.#parts.find(id);
    const bytes = await files.read(torrentPath, MAX_TRANSPORT_FILE_BYTES);
    if (bytes === undefined) return;
    try {
      this.#open(this.#add(id), parseTransportFile(bytes, sha1), path);
    } catch (error) {
      log.warn("a recording is not shared any more", { id, reason: messageOf(error) });
    }
  }

  start(id: number): void {
    const state = this.#shares.get(id)?.state;
    if (state === "preparing" || state === "shared") return;
    if (this.#shares.size >= MAX_SHARES)
      throw new SluiceError("too_many", `the limit of ${MAX_SHARES} shared recordings is reached`);
    const recorded = this.#parts.find(id);
    const share = this.#add(id);
    share.ended = this.#queue
      .run(() => this.#prepare(share, recorded))
      .catch((error: unknown) => {
        const problem = messageOf(error).slice(0, MAX_TEXT);
        Object.assign(share, { state: "failed", problem });
        if (!share.abort.signal.aborted)
          this.#parts.log.warn("a recording cannot be shared", { id, reason: problem });
      });
  }

  async stop(id: number): Promise<void> {
    const share = this.#shares.get(id);
    if (share === undefined) return;
    share.abort.abort(new SluiceError("cancelled", "the recording is not shared any more"));
    await share.ended;
    this.#shares.delete(id);
    await this.#parts.files.remove(this.#parts.find(id).torrentPath);
    share.hold?.release();
  }

  /** Shared recordings are shared again after the next start. */
  async close(): Promise<void> {
    for (const { abort } of this.#shares.values())
      abort.abort(new SluiceError("cancelled", "the engine stops"));
    await Promise.all([...this.#shares.values()].map(({ ended }) => ended));
  }

  #add(id: number): Share {
    const share: Share = {
      ...{ state: "preparing", done: 0, problem: null, file: undefined, hold: undefined },
      ...{ abort: new AbortController(), ended: Promise.resolve() },
    };
    this.#shares.set(id, share);
    return share;
  }

  async #prepare(share: Share, { path, torrentPath, bytes }: RecordedMediaFile): Promise<void> {
    const { files, sha1 } = this.#parts;
    let pieceLength = MIN_PIECE_BYTES;
    while (pieceLength < MAX_PIECE_BYTES && bytes / pieceLength > PIECES) pieceLength *= 2;
    const hashes = new Uint8Array(20 * Math.ceil(bytes / pieceLength));
    const buffer = new Uint8Array(pieceLength);
    const file = await files.open(path);
    try {
      for (let at = 0; at < bytes; at += pieceLength) {
        share.abort.signal.throwIfAborted();
        const piece = buffer.subarray(0, Math.min(pieceLength, bytes - at));
        await file.read(at, piece);
        hashes.set(sha1(piece), (20 * at) / pieceLength);
        share.done = at / bytes;
      }
    } finally {
      await file.close();
    }
    const name = path.slice(path.lastIndexOf("/") + 1);
    const info = makeInfo({ name, length: bytes, pieceLength, pieceHashes: hashes, isPrivate: true });
    const torrent = parseTransportFile(makeTransportFile(info, []), sha1);
    await files.replace(torrentPath, torrent.bytes);
    this.#open(share, torrent, path);
  }

  #open(share: Share, file: TransportFile, path: string): void {
    const hold = this.#parts.share(file, path);
    // It needs no data itself.
    hold.rest(true);
    Object.assign(share, { state: "shared", done: 1, file, hold });
  }
}
