import type { UnixSeconds } from "../base/time.ts";

/** What a few seconds of a stream show. */
export interface StreamFacts {
  /** Bytes per second of media time; 0 if unknown. */
  readonly bytesPerSecond: number;
  /** Short names: `h264`, `aac`; the video first. */
  readonly codecs: readonly string[];
  /** Pixels; 0 if unknown. */
  readonly width: number;
  readonly height: number;
  /** ISO 639-2 codes of the audio tracks. */
  readonly languages: readonly string[];
  /** True if the picture changes; undefined without video, or if it could not be determined. */
  readonly isMoving: boolean | undefined;
}

/** What one visit to a channel found. */
export type ProbeResult =
  | {
      readonly isAlive: true;
      /** Milliseconds from the start to the first media. */
      readonly startMs: number;
      /** Received bytes per second, from the first media on. */
      readonly receivedPerSecond: number;
      readonly facts: StreamFacts;
    }
  | { readonly isAlive: false; readonly problem: string };

/** `alive`: plays; `weak`: arrives more slowly than it plays, or failed the last time only; `dead`: failed twice in a row. */
export type HealthStatus = "alive" | "weak" | "dead";

/** What is known about the content of a channel. */
export interface Health {
  readonly status: HealthStatus;
  /** Share of the last visits in which it played, 0 to 1. */
  readonly availability: number;
  readonly checkedAt: UnixSeconds;
  /** The last visit in which it played; undefined if there was none. */
  readonly last: Extract<ProbeResult, { readonly isAlive: true }> | undefined;
  /** Why the last visit failed; undefined if it played. */
  readonly problem: string | undefined;
}

/** The health of channels, by the first 16 hex digits of the hash of their content. */
export interface ChannelHealth {
  get(content: string): Health | undefined;
  /** Adds the result of a visit; durable when it resolves. */
  add(content: string, at: UnixSeconds, result: ProbeResult): Promise<void>;
}

/** A channel to visit. */
export interface ProbeTarget {
  /** See {@link ChannelHealth}. */
  readonly content: string;
  /** Opens the channel as a transport stream. Rejects if it cannot be played. */
  open(signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
  /** Returns the bytes that its transfer has received since `open` was called last. */
  downloaded(): number;
}
