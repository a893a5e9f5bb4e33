import type { Fence } from "../async/records.ts";

/** Lets work run on one engine at a time, of those that share a store. */
export interface Leases {
  /** Takes a job for this engine; undefined while another engine, or other work of this one, has it. */
  take(job: string): Promise<Lease | undefined>;
  /** Calls `listener` when an engine has died or stopped: its jobs can be taken. */
  onEngineGone(listener: () => void): void;
}

/** A job that this engine has. */
export interface Lease {
  /** Commits of the job check this record, so that they fail after another engine has taken the job over. Undefined without other engines. */
  readonly fence: Fence | undefined;
  /** Fires when another engine has taken the job over. */
  readonly lost: AbortSignal;
  /** Lets other engines take the job. */
  release(): Promise<void>;
}

/** The engines that share a store, and which of them has which content. */
export interface Cluster extends Leases {
  /** All engines that are alive, this one first. */
  engines(): readonly ClusterEngine[];
  /**
   * Returns the address of the engine that plays content: one that has it already, else the least loaded. Undefined: this one. `content` is any text
   * that names it, at most 200 characters.
   */
  place(content: string): Promise<string | undefined>;
  /** From now on other engines get new sessions. */
  drain(): Promise<void>;
  readonly isDraining: boolean;
  /** Removes this engine. */
  close(): Promise<void>;
}

/** An engine of a cluster. */
export interface ClusterEngine {
  readonly id: string;
  /** Its URL for players and other engines; empty if other engines send it no players. */
  readonly address: string;
  readonly isThis: boolean;
  readonly isDraining: boolean;
  /** Sessions of players. */
  readonly players: number;
  /** Open contents. */
  readonly contents: number;
  readonly version: string;
}

/** Requests media from other engines of the cluster, for players that cannot reach them. */
export interface EngineProxy {
  /**
   * Sends a request to an address of the cluster. Does not follow redirects. The body has to be read to its end or cancelled. Rejects with
   * `url_unreachable`.
   */
  request(
    url: URL,
    method: "GET" | "HEAD",
    headers: Readonly<Record<string, string>>,
  ): Promise<ProxiedResponse>;
}

interface ProxiedResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: ReadableStream<Uint8Array>;
}

/** Leases of an engine that shares its store with no other: every job is free. */
export const SOLE_LEASES: Leases = {
  take: async () => ({ fence: undefined, lost: new AbortController().signal, release: async () => {} }),
  onEngineGone: () => {},
};
