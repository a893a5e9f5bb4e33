import type { UnixSeconds } from "../base/time.ts";

/** A recording of a channel: planned, running or over. */
export interface Recording {
  readonly id: number;
  readonly itemId: number;
  /** The programme, or the channel if no programme was named. */
  readonly title: string;
  readonly channel: string;
  readonly start: UnixSeconds;
  readonly stop: UnixSeconds;
  /** `failed`: nothing was recorded. A recording with gaps is `done`. */
  readonly state: "planned" | "recording" | "done" | "failed";
  /** Why it failed or ended early, or why it waits for its channel; null if there was no problem. */
  readonly problem: string | null;
  /** Size of the file. */
  readonly bytes: number;
}

/** What to record. */
export interface RecordingRequest {
  readonly itemId: number;
  readonly title: string;
  readonly channel: string;
  readonly start: UnixSeconds;
  readonly stop: UnixSeconds;
  /** True if URLs of the item may lead to this host and its network. */
  readonly allowPrivateUrls: boolean;
}

/** Recordings of channels, as files of this engine. Rejects with `unknown_item` for an unknown id. */
export interface Recordings {
  /** In the order of their start. */
  list(): readonly Recording[];
  /**
   * Plans a recording, which begins at once if its start has passed. Resolves to the present one for the same item and start. Rejects with
   * `bad_parameter` or `too_many`.
   */
  add(request: RecordingRequest): Promise<Recording>;
  /** Ends a recording and keeps what was recorded; one that has not begun is removed. */
  stop(id: number): Promise<void>;
  /** Removes a recording with its file. */
  remove(id: number): Promise<void>;
  /** Opens the file of a recording, which may still grow; undefined if it has none. The caller closes it. */
  open(id: number): Promise<RecordedFile | undefined>;
}

/** The file of a recording, a transport stream. */
export interface RecordedFile {
  readonly recording: Recording;
  read(at: number, into: Uint8Array<ArrayBuffer>): Promise<void>;
  close(): Promise<void>;
}
