import type { UnixSeconds } from "../base/time.ts";
import type { Files } from "../runtime/contract.ts";

/** Which source of a channel its players see. */
export interface ChannelState {
  readonly title: string;
  readonly sourceCount: number;
  /** Its index counts from 0. Undefined before the first data, and while players see the test pattern. */
  readonly source: { readonly index: number; readonly name: string } | undefined;
  readonly showsPattern: boolean;
  readonly switches: number;
  /** Why and when the source that was played before was left. */
  readonly lastSwitch: { readonly at: UnixSeconds; readonly reason: string } | undefined;
}

/** Reports the sources of a channel while it is played. */
export interface ChannelWatch {
  readonly state: ChannelState;
  /** Calls `changed` after each change of the source; returns a function that ends this. */
  onChange(changed: (state: ChannelState) => void): () => void;
}

/** Where a live stream that this engine makes keeps its media. */
export interface WindowStorage {
  readonly files: Pick<Files, "open" | "remove">;
  /** Undefined: in memory only. */
  readonly folder: string | undefined;
  /** The disk bytes it may use now: its share of the limit of all live streams. */
  limitBytes(): number;
  release(): void;
}
