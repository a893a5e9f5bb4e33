import type { PieceHeader } from "../../wire/live-header.ts";
import type { LivePeerInfo } from "../../wire/live-hello.ts";
import type { PathsMessage } from "../../wire/live-paths.ts";
import type {
  CancelMessage,
  HeaderRequestMessage,
  LackingMessage,
  RequestMessage,
} from "../../wire/live-request.ts";
import type { StatMessage } from "../../wire/live-stat.ts";
import type {
  ByeMessage,
  RefusedMessage,
  SubscribedMessage,
  SubscribeMessage,
  UnsubscribeMessage,
} from "../../wire/live-subscription.ts";
import type { LiveWindow } from "../../wire/live-window.ts";

/** A piece's header, decoded, with the bytes that the source signed. */
export interface SignedHeader {
  readonly value: PieceHeader;
  readonly bytes: Uint8Array;
}

/** What the source tells besides its pieces, decoded, with the bytes that it signed. */
export interface SignedStat {
  readonly value: StatMessage;
  readonly bytes: Uint8Array;
}

/** What a peer says of itself. Unproved, but for what its peer id decides: `homeStripe` and `digest`. */
export interface LiveAbout extends LivePeerInfo {
  /** Two bytes that stand for it in paths. */
  readonly digest: number;
}

/** A whole chunk: the driver cuts it into fragments and puts it together again. */
export interface WholeChunk {
  readonly kind: "chunk";
  readonly epoch: number;
  readonly seq: number;
  readonly stripe: number;
  readonly isLate: boolean;
  readonly bytes: Uint8Array;
}

/** What a peer has. `window` is the receiver's from then on and nobody changes it. */
export interface WindowNews {
  readonly kind: "window";
  readonly window: Readonly<LiveWindow>;
}

/** What live peers say to each other, as the machine sees it: headers are decoded and chunks are whole. */
export type LiveWord =
  | { readonly kind: "hello"; readonly header: SignedHeader | undefined }
  | { readonly kind: "header"; readonly isAnswer: boolean; readonly header: SignedHeader }
  | WholeChunk
  | SubscribeMessage
  | SubscribedMessage
  | RefusedMessage
  | UnsubscribeMessage
  | WindowNews
  | PathsMessage
  | RequestMessage
  | CancelMessage
  | LackingMessage
  | HeaderRequestMessage
  | { readonly kind: "ping" | "pong"; readonly token: number; readonly clockMs: number }
  | { readonly kind: "stat"; readonly stat: SignedStat }
  | ByeMessage;

/** No parent gives this stripe. */
export const NO_DEPTH = 255;
