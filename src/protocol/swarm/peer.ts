import type { PeerAddress } from "../../base/address.ts";
import { RateMeter } from "../../base/rate.ts";
import type { Instant } from "../../base/time.ts";
import type { PeerMessageDecoder } from "../../wire/peer/peer-message.ts";
import { PeerMessageWriter } from "../../wire/peer/peer-message-writer.ts";
import type { ConnectionId, PeerOrigin } from "./contract.ts";
import type { PunchPeer } from "./holepunch.ts";
import type { PartialPiece } from "./partial-piece.ts";
import { PeerPieces } from "./peer-pieces.ts";
import type { Pex } from "./pex.ts";
import { RequestQueue } from "./request-queue.ts";
import type { BlockSender } from "./smart-ban.ts";
import { UploadQueue } from "./upload-queue.ts";

/** State of one connection. The swarm's components read and change it; it decides nothing itself. */
export class Peer implements BlockSender, PunchPeer {
  readonly connection: ConnectionId;
  readonly address: PeerAddress;
  readonly origin: PeerOrigin;
  readonly isIncoming: boolean;
  /** Connected by hole punching (BEP 55). */
  isPunched = false;
  readonly connectedAt: Instant;
  stage: "opening" | "handshake" | "open" | "closed" = "opening";
  /** When the current stage began. */
  stageSince: Instant;

  decoder: PeerMessageDecoder | undefined;
  readonly writer = new PeerMessageWriter();
  /** Handshake bytes received so far. */
  handshake: Uint8Array<ArrayBuffer> | undefined;
  handshakeFilled = 0;
  lastReceivedAt: Instant;
  lastSentAt: Instant;

  peerId = "";
  client = "";
  /** Both sides support BEP 6, and BEP 10. */
  isFast = false;
  isExtended = false;
  /** The peer has a DHT node (BEP 5), and has reported its port. */
  hasDht = false;
  hasReportedNode = false;
  /** Ids that the peer assigned to its extension messages; 0 if it does not support the message. */
  metadataMessageId = 0;
  pexMessageId = 0;
  holepunchMessageId = 0;
  /** The address to connect to: from the peer (BEP 10 `p`), or the address this engine connected to. */
  listenAddress: PeerAddress | undefined;
  isUploadOnly = false;
  /** Exempt from rate limits. */
  isExempt = false;
  /** The most requests that the peer queues (BEP 10 `reqq`). */
  requestLimit = 250;
  pex: Pex | undefined;

  pieces: PeerPieces;
  /** The pieces are counted in `Pieces.availability`. Seeds are not counted: they do not change which pieces are rare. */
  isCounted = false;
  /** Pieces that this engine may request while choked (BEP 6). */
  readonly allowedFast = new Set<number>();

  /** This engine chokes the peer; is interested in it; the peer chokes this engine; is interested in it. */
  isChoked = true;
  isInteresting = false;
  isChoking = true;
  isInterested = false;

  readonly requests = new RequestQueue();
  /** The peer owes blocks and has stalled. */
  isSnubbing = false;
  snubbedSince: Instant | undefined;
  /** The demand version at which nothing could be requested from this peer. */
  idleVersion = -1;
  /** Where the block that the decoder is receiving goes. */
  receiving: PartialPiece | undefined;
  receivingBlock = 0;
  /** Receives a block while another peer writes the same block to the piece buffer. */
  scratch: Uint8Array<ArrayBuffer> | undefined;
  isReceivingToScratch = false;
  /** Blocks that may still arrive although they were cancelled or choked; and blocks that were never requested. */
  lateBlocksAllowed = 0;
  unrequested = 0;

  /** Refused requests of the peer, decayed over time until `refusedAt`. */
  refused = 0;
  refusedAt = 0;
  readonly uploads = new UploadQueue();
  /** Pieces that the peer may request while choked (BEP 6), and how many bytes of them it may still receive. */
  readonly fastPieces = new Set<number>();
  fastBytes = 0;
  readonly down = new RateMeter();
  readonly up = new RateMeter();
  /** The peer sent verified data, or received some. */
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

  /** A web server that has the content: it only uploads, and is never announced to peers. */
  get isWebSeed(): boolean {
    return this.origin === "web";
  }

  get isOpen(): boolean {
    return this.stage === "open";
  }

  /** Whether the peer would answer a request for this piece now. */
  canRequest(piece: number): boolean {
    return this.pieces.has(piece) && (!this.isChoking || this.allowedFast.has(piece));
  }

  /** Whether the peer would answer any request now. */
  get canRequestAny(): boolean {
    return this.stage === "open" && (!this.isChoking || this.allowedFast.size > 0);
  }

  /** Expected milliseconds until a block requested now arrives. */
  etaMs(now: Instant): number {
    return this.isSnubbing ? 10_000 + this.requests.etaMs(now) : this.requests.etaMs(now);
  }

  /** Enters the next stage. */
  enter(stage: Peer["stage"], now: Instant): void {
    this.stage = stage;
    this.stageSince = now;
  }
}
