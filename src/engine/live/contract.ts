import type { PeerAddress } from "../../base/address.ts";
import type { LiveFigures } from "../../swarm/live/contract.ts";
import type { SignedHeader, SignedStat } from "../../swarm/live/messages.ts";
import type { PieceHeader } from "../../wire/live-header.ts";
import type { LiveRole } from "../../wire/live-hello.ts";
import type { LiveTransportFile } from "../../wire/live-transport.ts";
import type { SignedItem } from "../reach/contract.ts";

/** What is known of a live stream when it is opened. */
export interface LiveContent {
  /** Its transport file; made of the info dictionary and the link's trackers, unsigned, where no other is known. */
  readonly file: LiveTransportFile;
  readonly role: LiveRole;
  /** Offered to others, bytes a second; undefined: what the settings and the rate of the stream allow. */
  readonly uploadBytesPerSecond?: number;
  /** Whom alone to talk to: a private source's relays. Everybody where it is absent. */
  readonly only?: readonly PeerAddress[];
  /** Peers to call first: those of before a restart. */
  readonly knownPeers?: readonly PeerAddress[];
  /** The source's own: what the DHT keeps of where the stream is. */
  readonly head?: SignedItem;
  /** The source's own: another may have begun in the same moment, with the same key and epoch. */
  readonly mayHaveTwin?: boolean;
  /** The manifests in its file may be at home: somebody on this host has brought the file. Not unless said. */
  readonly mayLeadHome?: boolean;
}

/** What becomes of pieces that are verified and in order. */
export interface PieceSink {
  /** The next piece. `chunks` together are its bytes; they are shared and nobody writes to them. */
  piece(header: PieceHeader, chunks: readonly Uint8Array[]): void;
  /** Piece `seq` is missing for good. */
  skip(seq: number): void;
  /** A new life of the source begins: nothing that follows goes on from what was before. */
  restarted(): void;
}

/** The live side of a transfer, as its owner (a broadcast, a relay, the page) sees it. */
export interface LiveControl {
  readonly content: LiveContent;
  /** The source's own: passes a piece that it has made and signed to the swarm, and to its own players. */
  produce(header: SignedHeader, chunks: readonly Uint8Array[]): void;
  /** The source's own: what it says besides its pieces. */
  tell(stat: SignedStat): void;
  figures(): LiveFigures;
  /** To be said before it is let go of: another transfer of the same stream follows at once. */
  expectSuccessor(): void;
  /** Addresses of peers that can be called, for the next start. */
  reachablePeers(): readonly PeerAddress[];
  /** Two pieces of one number were signed: the key is in other hands, or its program is broken. */
  readonly isForked: boolean;
  /** The source's own: the newest piece that another has signed with its key, in its epoch or a later one. Whether it is of now is for
   * the source to judge. */
  readonly rival: PieceHeader | undefined;
  /** So far is the stream ahead of this machine's clock that nothing of it is played; 0 where it is not. */
  readonly minutesAhead: number;
}
