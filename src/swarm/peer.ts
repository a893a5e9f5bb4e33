import type { PeerAddress } from "../base/address.ts";
import { RateMeter } from "../base/rate.ts";
import type { Instant } from "../base/time.ts";
import type { PeerMessageDecoder } from "../wire/peer-message.ts";
import { PeerMessageWriter } from "../wire/peer-message-writer.ts";
import type { ConnectionId, PeerOrigin } from "./contract.ts";
import type { PunchPeer } from "./holepunch.ts";
import type { PartialPiece } from "./partial-piece.ts";
import { PeerPieces } from "./peer-pieces.ts";
import type { Pex } from "./pex.ts";
import { RequestQueue } from "./request-queue.ts";
import type { BlockSender } from "./smart-ban.ts";
import { UploadQueue } from "./upload-queue.ts";

/** All that is known of one connection. It decides nothing: the small machines around it do. */
export class Peer implements BlockSender, PunchPeer {
  readonly connection: ConnectionId;
  readonly address: PeerAddress;
  readonly origin: PeerOrigin;
  readonly isIncoming: boolean;
  /** Called while it calls us (BEP 55). */
  isPunched = false;
  readonly connectedAt: Instant;
  stage: "opening" | "handshake" | "open" | "closed" = "opening";
  /** When the present stage began. */
  stageSince: Instant;

  decoder: PeerMessageDecoder | undefined;
  readonly writer = new PeerMessageWriter();
  /** The part of the handshake that has come. */
  greeting: Uint8Array<ArrayBuffer> | undefined;
  greetingFilled = 0;
  lastReceivedAt: Instant;
  lastSentAt: Instant;

  peerId = "";
  client = "";
  /** BEP 6 and BEP 10, as both sides speak them. */
  isFast = false;
  isExtended = false;
  /** It has a node of the DHT (BEP 5), and has said where. */
  hasDht = false;
  hasToldNode = false;
  /** The numbers the peer gave its extension messages; 0 where it has none. */
  metadataMessageId = 0;
  pexMessageId = 0;
  holepunchMessageId = 0;
  /** Where it can be reached: its own word (BEP 10 `p`), or the address we reached it at. */
  listenAddress: PeerAddress | undefined;
  isUploadOnly = false;
  /** No limit of ours holds for it. */
  isExempt = false;
  /** How many requests it keeps waiting at most (BEP 10 `reqq`). */
  requestLimit = 250;
  pex: Pex | undefined;

  pieces: PeerPieces;
  /** Counted in `Pieces.availability`; those that have all are not, as they make nothing rarer. */
  isCounted = false;
  /** Pieces we may ask for while choked (BEP 6). */
  readonly allowedFast = new Set<number>();

  /** We choke it; we are interested in it; it chokes us; it is interested in us. */
  isChoked = true;
  isInteresting = false;
  isChoking = true;
  isInterested = false;

  readonly requests = new RequestQueue();
  /** It owes us blocks and stalls. */
  isSnubbing = false;
  snubbedSince: Instant | undefined;
  /** Nothing could be asked of it when the demand had this version. */
  idleVersion = -1;
  /** The block its decoder is in the middle of: where it goes. */
  receiving: PartialPiece | undefined;
  receivingBlock = 0;
  /** A block that someone else is already sending comes here first. */
  scratch: Uint8Array<ArrayBuffer> | undefined;
  isReceivingToScratch = false;
  /** Answers that may still come though we cancelled, or it choked us; and blocks nobody asked for. */
  forgiven = 0;
  unrequested = 0;

  /** Requests of its refused, less those that time forgave by `refusedAt`. */
  refused = 0;
  refusedAt = 0;
  readonly uploads = new UploadQueue();
  /** Pieces it may ask for though we choke it (BEP 6), and how many bytes of them it may still have. */
  readonly fastPieces = new Set<number>();
  fastBytes = 0;
  readonly down = new RateMeter();
  readonly up = new RateMeter();
  /** It gave verified data, or took some. */
  wasUseful = false;

  constructor(
    connection: ConnectionId,
    address: PeerAddress,
    origin: PeerOrigin,
    isIncoming: boolean,
    pieceCount: number | undefined,
    now: Instant,
  ) {
    this.connection = connection;
    this.address = address;
    this.origin = origin;
    this.isIncoming = isIncoming;
    this.connectedAt = now;
    this.stageSince = now;
    this.lastReceivedAt = now;
    this.lastSentAt = now;
    this.pieces = new PeerPieces(pieceCount);
  }

  /** A web server that has the content: it only gives, and nobody is told of it. */
  get isWebSeed(): boolean {
    return this.origin === "web";
  }

  get isOpen(): boolean {
    return this.stage === "open";
  }

  /** Whether it would answer a request for this piece now. */
  mayGive(piece: number): boolean {
    return this.pieces.has(piece) && (!this.isChoking || this.allowedFast.has(piece));
  }

  /** Whether any request could be answered now. */
  get mayGiveAny(): boolean {
    return this.stage === "open" && (!this.isChoking || this.allowedFast.size > 0);
  }

  /** In how many milliseconds a block asked for now should be here. */
  etaMs(now: Instant): number {
    return this.isSnubbing ? 10_000 + this.requests.etaMs(now) : this.requests.etaMs(now);
  }

  /** Goes on to the next stage. */
  enter(stage: Peer["stage"], now: Instant): void {
    this.stage = stage;
    this.stageSince = now;
  }
}
