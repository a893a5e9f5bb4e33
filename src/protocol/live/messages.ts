import type { PieceHeader } from "../../wire/live/header.ts";
import type { PathsMessage } from "../../wire/live/paths.ts";
import type { LivePeerInfo } from "../../wire/live/peer-info.ts";
import type {
  CancelMessage,
  HeaderRequestMessage,
  LackingMessage,
  RequestMessage,
} from "../../wire/live/request.ts";
import type { StatMessage } from "../../wire/live/stat.ts";
import type {
  ByeMessage,
  RefusedMessage,
  SubscribedMessage,
  SubscribeMessage,
  UnsubscribeMessage,
} from "../../wire/live/subscription.ts";
import type { LiveWindow } from "../../wire/live/window.ts";

/** A decoded header with the bytes that the source signed. */
export interface SignedHeader {
  readonly value: PieceHeader;
  readonly bytes: Uint8Array;
}

/** A decoded STAT with the bytes that the source signed. */
export interface SignedStat {
  readonly value: StatMessage;
  readonly bytes: Uint8Array;
}

/** A peer's `sl` from the handshake. The role is proven or listed by the source; the upload is a claim; `homeStripe` and
 * `digest` follow from its peer id. */
export interface LiveAbout extends LivePeerInfo {
  /** The stripe that the peer prefers to forward. */
  readonly homeStripe: number;
  /** The path digest: two bytes that stand for the peer in PATHS. */
  readonly digest: number;
}

/** A whole chunk. The driver splits it into fragments and joins them. */
export interface WholeChunk {
  readonly kind: "chunk";
  readonly epoch: number;
  readonly seq: number;
  readonly stripe: number;
  readonly isLate: boolean;
  readonly bytes: Uint8Array;
}

/** A decoded WIN. Nothing changes `window` after it was received. */
export interface WindowMessage {
  readonly kind: "window";
  readonly window: Readonly<LiveWindow>;
}

/** A live message as the machine sees it: headers are decoded, chunks are whole. */
export type LiveMessage =
  | { readonly kind: "hello"; readonly header: SignedHeader | undefined }
  | { readonly kind: "header"; readonly isAnswer: boolean; readonly header: SignedHeader }
  | WholeChunk
  | SubscribeMessage
  | SubscribedMessage
  | RefusedMessage
  | UnsubscribeMessage
  | WindowMessage
  | PathsMessage
  | RequestMessage
  | CancelMessage
  | LackingMessage
  | HeaderRequestMessage
  | { readonly kind: "ping" | "pong"; readonly token: number; readonly clockMs: number }
  | { readonly kind: "stat"; readonly stat: SignedStat }
  | ByeMessage;

/** Depth of a stripe without a parent (live protocol: PATHS). */
export const NO_DEPTH = 255;
