import type { UnixSeconds } from "../base/time.ts";

/** The programme that is recorded, as the guide describes it. Empty texts are unknown. */
export interface RecordedProgramme {
  readonly start: UnixSeconds;
  readonly stop: UnixSeconds;
  readonly title: string;
  readonly subtitle: string;
  readonly description: string;
  /** As the guide writes it, such as `S02E05`. */
  readonly episode: string;
}

/** Seconds that are recorded before the start of a programme and after its end. */
export interface Padding {
  readonly before: number;
  readonly after: number;
}

/** A recording of a channel: planned, running or over. */
export interface Recording {
  readonly id: number;
  readonly itemId: number;
  /** The programme, or the channel if no programme was named. */
  readonly title: string;
  readonly channel: string;
  /** With padding. */
  readonly start: UnixSeconds;
  readonly stop: UnixSeconds;
  /** `failed`: nothing was recorded. A recording with gaps is `done`. */
  readonly state: "planned" | "recording" | "done" | "failed";
  /** Why it failed or ended early, or why it waits for its channel; null if there was no problem. */
  readonly problem: string | null;
  readonly programme: RecordedProgramme | null;
  readonly padding: Padding;
  /** The rule that planned it; null: the user did. */
  readonly seriesId: number | null;
  /** Size of the file. */
  readonly bytes: number;
  /** Its copy in Matroska; null if the user wants none. */
  readonly matroska: MatroskaCopy | null;
}

/** A copy of a recording with its title and guide data as tags. */
export interface MatroskaCopy {
  readonly state: "converting" | "ready" | "failed";
  /** The share that is done, 0 to 1. */
  readonly share: number;
  readonly bytes: number;
  readonly problem: string | null;
}

/** What to record. */
export interface RecordingRequest {
  readonly itemId: number;
  readonly title: string;
  readonly channel: string;
  /** Without padding. */
  readonly start: UnixSeconds;
  readonly stop: UnixSeconds;
  readonly programme?: RecordedProgramme;
  readonly padding?: Padding;
  readonly seriesId?: number;
  /** True if URLs of the item may lead to this host and its network. */
  readonly allowPrivateUrls: boolean;
}

/** Recordings of channels, as files of this engine. Rejects with `unknown_item` for an unknown id. */
export interface Recordings {
  /** In the order of their start. */
  list(): readonly Recording[];
  /**
   * Plans a recording, which begins at once if its start has passed: from what is kept for catch-up, else with the present. Resolves to the
   * present one for the same item and start. Rejects with `bad_parameter` or `too_many`.
   */
  add(request: RecordingRequest): Promise<Recording>;
  /** Changes the programme of a recording that is not over, and with it the times. */
  change(id: number, programme: RecordedProgramme): Promise<void>;
  /** Ends a recording and keeps what was recorded; one that has not begun is removed. */
  stop(id: number): Promise<void>;
  /** Removes a recording with its files. */
  remove(id: number): Promise<void>;
  /** Opens the file of a recording, which may still grow; undefined if it has none. The caller closes it. */
  open(id: number): Promise<RecordedFile | undefined>;
  /** Begins to copy a recording that is over into a Matroska file. Rejects with `bad_parameter` or `disk_full`. */
  convert(id: number): Promise<void>;
  /** Opens the copy in Matroska; undefined if it is not ready. The caller closes it. */
  openMatroska(id: number): Promise<RecordedFile | undefined>;
  /** Opens the first `bytes` bytes of a recording, all by default, for browsers; undefined if it has fewer. Rejects with `SluiceError`. */
  media(id: number, bytes?: number): Promise<RecordedMedia | undefined>;
  /** Recordings that are shared as torrents. */
  readonly shares: RecordingShares;
  /** Rules that record every programme of a title. */
  readonly series: SeriesRules;
}

/** Recordings as torrents, which other programs of the network fetch from this engine. */
export interface RecordingShares {
  /** Returns undefined if the recording is not shared. */
  get(id: number): SharedRecording | undefined;
  /** Begins to share a recording that is over, also after later starts. Throws `unknown_item` or `bad_parameter`. */
  start(id: number): void;
  /** Ends it; does nothing if the recording is not shared. */
  stop(id: number): Promise<void>;
}

/** A recording as a torrent. */
export interface SharedRecording {
  readonly state: "preparing" | "shared" | "failed";
  /** The share of the file that is hashed, 0 to 1. */
  readonly share: number;
  readonly problem: string | null;
  /** The link for other programs; null until it is shared. */
  readonly magnet: string | null;
  /** What peers have received since the start of the engine. */
  readonly uploadedBytes: number;
}

/** A recording as HLS. All methods reject with `SluiceError`. */
export interface RecordedMedia {
  /** The complete manifest of what is recorded. `uriOf` returns the URL of a segment, which contains `bytes`. */
  manifest(uriOf: (index: number, bytes: number) => string): string;
  /** Makes a segment, whole packets of MPEG-TS; pull drives it. */
  segment(index: number, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

/** A file of a recording. */
export interface RecordedFile {
  readonly recording: Recording;
  readonly bytes: number;
  read(at: number, into: Uint8Array<ArrayBuffer>): Promise<void>;
  close(): Promise<void>;
}

/** Records every programme with this title. */
export interface SeriesRule {
  readonly id: number;
  /** Compared without case and accents. */
  readonly title: string;
  /** The channel; null: all channels. */
  readonly itemId: number | null;
  readonly padding: Padding;
}

/** Rules that record every programme of a title, each episode once. */
export interface SeriesRules {
  list(): readonly SeriesRule[];
  /** Adds a rule and plans its recordings. Resolves to the present one if it is the same. Rejects with `bad_parameter` or `too_many`. */
  add(rule: Omit<SeriesRule, "id"> & { readonly allowPrivateUrls: boolean }): Promise<SeriesRule>;
  /** Removes a rule, and the recordings of it that have not begun. Rejects with `unknown_item`. */
  remove(id: number): Promise<void>;
}
