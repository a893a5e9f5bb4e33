import type { Log } from "../base/log.ts";
import type { PacketStretch } from "../media/packet-stretch.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Clock } from "../runtime/contract.ts";
import type { PieceHeader } from "../wire/live/header.ts";

/** The receiver of verified pieces, in order. */
export interface PieceSink {
  /** The next piece. `chunks` together are its bytes; they and `signed`, the encoded header, are shared and must not be modified. */
  piece(header: PieceHeader, chunks: readonly Uint8Array[], signed: Uint8Array): void;
  /** Piece `seq` is permanently missing. */
  skip(seq: number): void;
  /** The source has restarted: what follows does not continue what came before. */
  restarted(): void;
}

/** Which part of a web copy to fetch. */
export interface OriginRequest {
  /** A clock value of the programme near the wanted part, in 27 MHz ticks. */
  readonly reference: number;
  /** The position relative to the stretch, if it is known. */
  readonly side: "before" | "after" | undefined;
}

/** A copy of a live stream on a web server. */
export interface WebOrigin {
  /** The packets fetched so far, without gaps. Replaced by a new object when fetching continues elsewhere. */
  readonly stretch: PacketStretch;
  /** Fetches the requested part, or data before it. Resolves with false if it is not available yet. Call it again only
   * after it has settled. Rejects with `SluiceError`. */
  bring(request: OriginRequest, signal: AbortSignal): Promise<boolean>;
  /** Closes connections; `bring` opens new ones. */
  release?(): void;
}

/** What fetching from a web copy depends on. */
export interface OriginOptions {
  readonly clock: Clock;
  readonly outbound: Pick<Outbound, "open">;
  readonly log: Log;
  readonly url: string;
  /** Whether the URL may lead into the local network: true if a local user chose it. */
  readonly allowPrivate: boolean;
  /** Limit of buffered bytes, and of one fetch. */
  readonly limitBytes: number;
  /** Aborted when the live stream is closed. */
  readonly stopped: AbortSignal;
}
