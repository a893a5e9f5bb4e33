import type { ListedSegment } from "../../../transfer/piece-segments.ts";

/** Messages between the page and its worker. A channel is a WebRTC data channel: the page has it, the worker uses it. */

/** The first message to the worker. */
export interface StartMessage {
  readonly kind: "start";
  /** The URL of the swarm at the engine. */
  readonly url: string;
  readonly infohash: string;
  /** The transport file. */
  readonly file: ArrayBuffer;
  /** The last segments that the engine has of a live stream. */
  readonly segments: readonly ListedSegment[];
  /** Which file to play; undefined for a live stream. `hlsUrl`: its HLS presentation at the engine, a folder. */
  readonly film?:
    | { readonly fileIndex: number; readonly segmentSeconds: number; readonly hlsUrl: string }
    | undefined;
}

/** From the page to the worker. */
export type ToWorker =
  | StartMessage
  /** Connects to other pages under this id from now on, or to the engine only if there is none; with the same id only `uploads` changes. */
  | { readonly kind: "share"; readonly id: string | undefined; readonly uploads: boolean }
  /** The last seconds that the engine has of a live stream (`encodePieces`), if it has any; sent once. */
  | { readonly kind: "recent"; readonly bytes: ArrayBuffer | undefined }
  /** Requests a resource of the HLS presentation. */
  | { readonly kind: "load"; readonly id: number; readonly path: string }
  | { readonly kind: "abort"; readonly id: number }
  /** Another page has connected; `from` is undefined if a tracker introduced it. */
  | { readonly kind: "accepted"; readonly channel: number; readonly from: string | undefined }
  /** A tracker has introduced another page, to which this one connected. */
  | { readonly kind: "introduced"; readonly channel: number }
  | { readonly kind: "opened"; readonly channel: number }
  | { readonly kind: "received"; readonly channel: number; readonly bytes: ArrayBuffer }
  /** The total number of bytes that have left the buffer of the channel. */
  | { readonly kind: "sent"; readonly channel: number; readonly total: number }
  | { readonly kind: "closed"; readonly channel: number; readonly reason: string };

/** From the worker to the page. */
export type FromWorker =
  | { readonly kind: "loaded"; readonly id: number; readonly bytes: ArrayBuffer }
  /** `status` as of HTTP. */
  | { readonly kind: "failed"; readonly id: number; readonly status: number; readonly reason: string }
  | { readonly kind: "connect"; readonly channel: number; readonly to: string }
  | { readonly kind: "send"; readonly channel: number; readonly bytes: ArrayBuffer }
  | { readonly kind: "close"; readonly channel: number }
  | { readonly kind: "figures"; readonly figures: ViewerFigures }
  | { readonly kind: "problem"; readonly reason: string };

/** What the page shows and tests read. Totals in bytes of verified and unverified stream data with its protocol. */
export interface ViewerFigures {
  readonly fromEngine: number;
  readonly fromPages: number;
  readonly toPages: number;
  /** Connected pages. */
  readonly pages: number;
  readonly isEngineConnected: boolean;
  /** The engine has ended the connection, and there is no other one. */
  readonly isRefused: boolean;
  /** Whether this page offers upload to others now, and the number of pages that get a part of the stream from it. */
  readonly uploads: boolean;
  readonly children: number;
  /** Peers that were banned for invalid data. */
  readonly banned: number;
  readonly skippedPieces: number;
  /** Pieces that an earlier page of this browser had stored. */
  readonly restoredPieces: number;
  /** Segments from before this page joined that it has got from other pages and from the engine, because the viewer went back. */
  readonly earlierFromPages: number;
  readonly earlierFromEngine: number;
  /** The age of the newest piece in the window, in ms of the source's clock. */
  readonly delayMs: number | undefined;
  readonly hasEnded: boolean;
}
