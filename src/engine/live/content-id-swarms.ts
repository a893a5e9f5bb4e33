import { addressText } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import type { ContentId, Infohash } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import { after } from "../../base/time.ts";
import type { Clock, TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import { MAX_ITEM_BYTES } from "../../wire/dht-item.ts";
import type { LiveTransportFile } from "../../wire/live-transport.ts";
import { makePeerId } from "../../wire/peer-id.ts";
import type { Dht, PeerFinder } from "../reach/contract.ts";
import type { DriverAnnouncer } from "../running-announces.ts";
import { FileGiver } from "./file-giver.ts";
import { LiveAnnounces } from "./live-announces.ts";

/** What the swarms of content ids are made of. */
export interface ContentIdSwarmsParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly random: Random;
  readonly randomBytes: (length: number) => Uint8Array;
  /** The port that others reach us at. */
  readonly listenPort: number;
  readonly finder: PeerFinder;
  readonly dht?: Pick<Dht, "keep">;
}

/** A stop of serving; resolves when trackers have been told, within seconds. They are told nothing where the same file is served again at once. */
export type StopServing = (isSucceeded?: boolean) => Promise<void>;

interface Served {
  readonly file: LiveTransportFile;
  readonly announces: LiveAnnounces | undefined;
  leaveFinder(): void;
  stopKeeping(): void;
  cancelRound: () => void;
}

/** Connections that fetch a file, of all swarms together. With more the oldest is closed: a file takes a moment. */
const MAX_CONNECTIONS = 32;
/** Who has not got a file of 64 KiB by then never will. */
const CONNECTION_MS = 30_000;
/** How often it is looked which trackers are to be told again. */
const ROUND_MS = 15_000;
/** We look for nobody here: as if there were enough peers, so that trackers are asked as seldom as they wish. */
const NO_TRAFFIC = { uploaded: 0, downloaded: 0, peers: 1_000 };

/**
 * The swarms by which a content id leads to its transport file (live protocol: Identities). Of each live stream that is open,
 * whoever comes with its content id for an infohash is given the whole transport file as metadata (BEP 9).
 */
export class ContentIdSwarms {
  readonly #parts: ContentIdSwarmsParts;
  readonly #peerId: Uint8Array;
  readonly #served = new Map<ContentId, Served>();
  readonly #sockets = new Set<TcpSocket>();

  constructor(parts: ContentIdSwarmsParts) {
    this.#parts = parts;
    this.#peerId = makePeerId(parts.randomBytes(20));
  }

  /** Serves a transport file until the returned function is called; of a file that is served already, nothing more is
   * done. With an announcer its trackers are told of it: where the stream is to be found by its id, and not from private
   * sources. */
  serve(file: LiveTransportFile, announcer?: DriverAnnouncer): StopServing {
    const { contentId } = file;
    if (this.#served.has(contentId)) return async () => {};
    const served: Served = {
      file,
      announces: announcer && this.#announces(file, announcer),
      leaveFinder: announcer ? this.#find(file) : () => {},
      stopKeeping: announcer ? this.#keep(file) : () => {},
      cancelRound: () => {},
    };
    this.#served.set(contentId, served);
    this.#round(served);
    return (isSucceeded) => this.#stop(served, isSucceeded);
  }

  /** The swarms of all files that are served. */
  infohashes(): Infohash[] {
    return [...this.#served.keys()] as string[] as Infohash[];
  }

  /** Whether that is the swarm of a file that others are told of. */
  isShared(infohash: Infohash): boolean {
    return this.#served.get(infohash as string as ContentId)?.announces !== undefined;
  }

  /** Takes over an incoming connection whose handshake `first` has been read; undefined where nothing here has that id. */
  accept(infohash: Infohash, socket: TcpSocket, first: Uint8Array): TcpHandlers | undefined {
    const served = this.#served.get(infohash as string as ContentId);
    if (!served) return undefined;
    const [oldest] = this.#sockets;
    if (oldest && this.#sockets.size >= MAX_CONNECTIONS) {
      this.#sockets.delete(oldest);
      oldest.close();
    }
    this.#sockets.add(socket);
    const { clock } = this.#parts;
    const cancel = clock.at(after(clock.now(), CONNECTION_MS), () => socket.close());
    const giver = new FileGiver({ infohash, peerId: this.#peerId, bytes: served.file.bytes });
    let isOver = false;
    const end = () => {
      isOver = true;
      cancel();
      this.#sockets.delete(socket);
    };
    const take = (bytes: Uint8Array) => {
      if (isOver) return;
      const answer = this.#answer(giver, bytes, socket);
      if (answer === "fault") {
        end();
        socket.close();
      } else if (answer && !socket.write(answer)) socket.pause();
    };
    take(first);
    return {
      received: take,
      drained: () => socket.resume(),
      closed: end,
    };
  }

  /** Ends everything; resolves when trackers have been told, within seconds. */
  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.close();
    await Promise.all([...this.#served.values()].map((served) => this.#stop(served)));
  }

  #answer(giver: FileGiver, bytes: Uint8Array, socket: TcpSocket): Uint8Array | "fault" | undefined {
    try {
      return giver.received(bytes);
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      const peer = addressText(socket.remote);
      this.#parts.log.debug("no asker for a transport file", { peer, reason: thrown.message });
      return "fault";
    }
  }

  #announces(file: LiveTransportFile, announcer: DriverAnnouncer): LiveAnnounces {
    const { clock, log, random, listenPort } = this.#parts;
    return new LiveAnnounces({
      infohash: file.contentId as string as Infohash,
      peerId: this.#peerId,
      listenPort,
      trackers: file.trackers,
      announcer,
      random,
      clock,
      log,
      found() {},
    });
  }

  /** That we have the file is told; whom else to ask for it is of no use to us. */
  #find({ contentId }: LiveTransportFile): () => void {
    return this.#parts.finder.join({
      infohash: contentId as string as Infohash,
      announces: true,
      peers: () => NO_TRAFFIC.peers,
      found() {},
    });
  }

  /** A file that is short enough is in the DHT itself: nobody need be called for it (BEP 44). */
  #keep({ bytes }: LiveTransportFile): () => void {
    if (bytes.length > MAX_ITEM_BYTES) return () => {};
    return this.#parts.dht?.keep(bytes) ?? (() => {});
  }

  #round(served: Served): void {
    const { clock } = this.#parts;
    if (!served.announces) return;
    served.announces.round(NO_TRAFFIC, clock.now());
    served.cancelRound = clock.at(after(clock.now(), ROUND_MS), () => this.#round(served));
  }

  async #stop(served: Served, isSucceeded = false): Promise<void> {
    const { contentId } = served.file;
    if (this.#served.get(contentId) !== served) return;
    this.#served.delete(contentId);
    served.cancelRound();
    served.leaveFinder();
    served.stopKeeping();
    if (!isSucceeded) await served.announces?.stop(NO_TRAFFIC);
  }
}
