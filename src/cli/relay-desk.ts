import type { RelayEntry, RelayService } from "../../routes/http/dependencies.ts";
import { sleep } from "../async/sleep.ts";
import { messageOf, SluiceError, type SluiceErrorCode } from "../base/errors.ts";
import { type Infohash, infohashOfContentId } from "../base/ids.ts";
import { parseLink } from "../base/link.ts";
import type { Log } from "../base/log.ts";
import type { Engine } from "../engine/engine.ts";
import {
  MAX_RELAY_LINK,
  MAX_RELAY_PASS,
  type RelayRecord,
  type RelayRecords,
} from "../library/relay-records.ts";
import type { AcquireOptions, TransferLease } from "../playback/contract.ts";
import type { Clock, Runtime } from "../runtime/contract.ts";
import type { ContentSelector } from "../transfer/contract.ts";
import { type RelayPass, relayPassOf } from "./relay-pass.ts";
import { relayState } from "./relay-text.ts";
import { selectorOf } from "./selector.ts";

/** Each relay uses as much upload as many viewers. */
const MAX_RELAYS = 16;
/** A relay outlives its source: joining is retried at this interval. */
const RETRY_MS = 10_000;
/** Errors after which joining is retried. */
const PASSING: readonly SluiceErrorCode[] = [
  "no_peers",
  "metadata_timeout",
  "start_timeout",
  "url_unreachable",
];

/** A relay that is kept running. */
interface Kept {
  readonly record: RelayRecord;
  readonly stopping: AbortController;
  lease: TransferLease | undefined;
  problem: string | undefined;
}

/** Dependencies of {@link KeptRelays}. */
interface RelayDependencies {
  readonly engine: Pick<Engine, "acquire" | "figures" | "stopTransfer">;
  readonly records: RelayRecords;
  readonly clock: Clock;
  readonly log: Log;
  readonly ed25519Key: Runtime["ed25519Key"];
}

/** Keeps the relays of the control methods running, also after restarts. */
export class KeptRelays implements RelayService {
  readonly #dependencies: RelayDependencies;
  readonly #kept = new Map<Infohash, Kept>();

  constructor(dependencies: RelayDependencies) {
    this.#dependencies = dependencies;
  }

  /** Starts the relays of the last run. Resolves when their records are read. */
  async restore(): Promise<void> {
    for (const record of await this.#dependencies.records.list()) void this.#run(record);
  }

  async start(link: string, pass: string | undefined): Promise<RelayEntry> {
    if (link.length > MAX_RELAY_LINK || (pass?.length ?? 0) > MAX_RELAY_PASS)
      throw new SluiceError("bad_parameter", "expected a link and a relay pass, got a longer text");
    const infohash = infohashIn(link);
    if (infohash === undefined)
      throw new SluiceError(
        "bad_parameter",
        "link: expected the link of a live stream, a magnet link with an infohash, or an infohash",
      );
    this.#passFor(infohash, pass);
    if (this.#kept.size >= MAX_RELAYS && !this.#kept.has(infohash))
      throw new SluiceError("too_many", `relays: at most ${MAX_RELAYS}`);
    const { records } = this.#dependencies;
    const running = this.#kept.get(infohash);
    if (running?.lease)
      throw new SluiceError(
        "bad_parameter",
        "link: this engine already relays the stream; stop that relay first",
      );
    if (!running && !this.#closeUnused(infohash))
      throw new SluiceError("bad_parameter", "link: this engine plays the stream; stop its players first");
    this.#end(infohash);
    const record = { infohash, link, pass: pass ?? null };
    await records.keep(record);
    return this.#describe(this.#run(record));
  }

  async stop(infohash: Infohash): Promise<void> {
    if (!this.#kept.has(infohash))
      throw new SluiceError(
        "bad_parameter",
        "infohash: this engine does not relay the stream; see relay_list",
      );
    await this.#dependencies.records.forget(infohash);
    this.#end(infohash);
    this.#closeUnused(infohash);
  }

  list(): readonly RelayEntry[] {
    return [...this.#kept.values()].map((kept) => this.#describe(kept));
  }

  /** Ends all relays; the next start restores them. */
  close(): void {
    for (const infohash of [...this.#kept.keys()]) this.#end(infohash);
  }

  #run(record: RelayRecord): Kept {
    const kept: Kept = { record, stopping: new AbortController(), lease: undefined, problem: undefined };
    this.#kept.set(record.infohash, kept);
    void this.#join(kept);
    return kept;
  }

  async #join(kept: Kept): Promise<void> {
    const { engine, clock, log } = this.#dependencies;
    const { signal } = kept.stopping;
    const { infohash } = kept.record;
    try {
      const pass = this.#passFor(infohash, kept.record.pass ?? undefined);
      const lease = await joinRelay(engine, await selectorOf(kept.record.link), {
        ...{ clock, log, signal, pass },
        onRetry(problem) {
          kept.problem = problem;
        },
      });
      kept.problem = undefined;
      if (lease?.transfer.live === undefined || signal.aborted) {
        lease?.release();
        if (lease && !signal.aborted) throw notLive(lease.transfer.name);
        return;
      }
      kept.lease = lease;
      log.info("relaying", { name: lease.transfer.name, infohash: infohash });
    } catch (error) {
      kept.problem = messageOf(error);
      log.warn("cannot relay a stream", { infohash: infohash, error: kept.problem });
    }
  }

  #passFor(infohash: Infohash, text: string | undefined) {
    if (text === undefined) return undefined;
    const pass = relayPassOf(text, "pass: the file", this.#dependencies);
    if (pass.infohash === infohash) return pass;
    throw new SluiceError("bad_parameter", `pass: it is for the stream ${pass.infohash}`);
  }

  #end(infohash: Infohash): void {
    const kept = this.#kept.get(infohash);
    kept?.stopping.abort();
    kept?.lease?.release();
    this.#kept.delete(infohash);
  }

  /** Closes the transfer of a stream unless it is in use: while it is open, its role cannot change. Returns false if it is in use. */
  #closeUnused(infohash: Infohash): boolean {
    const { engine } = this.#dependencies;
    const open = engine.figures().transfers.find((transfer) => transfer.infohash === infohash);
    if (open?.holders === 0) engine.stopTransfer(infohash);
    return open === undefined || open.holders === 0;
  }

  #describe({ record, lease, problem }: Kept): RelayEntry {
    const live = lease?.transfer.live;
    const figures = live?.figures();
    const rates = lease?.transfer.figures;
    return {
      infohash: record.infohash,
      link: record.link,
      hasPass: record.pass !== null,
      name: lease?.transfer.name,
      problem: problem ?? (figures && relayState({ ...figures, isForked: live?.isForked ?? false })) ?? "",
      isFailed: problem !== undefined,
      peers: figures?.peers ?? 0,
      children: figures?.children ?? 0,
      behindMs: figures?.lastSeq === undefined ? undefined : figures.lagMs,
      bytesPerSecondDown: rates?.bytesPerSecondDown ?? 0,
      bytesPerSecondUp: rates?.bytesPerSecondUp ?? 0,
    };
  }
}

/** Options of {@link joinRelay}. */
interface JoinOptions extends Pick<AcquireOptions, "onProgress"> {
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly pass: RelayPass | undefined;
  /** Called before each retry. */
  readonly onRetry: (problem: string) => void;
}

/** Joins a stream as its relay, with retries. Resolves to undefined if `signal` fires. Rejects with `SluiceError`. */
export async function joinRelay(
  engine: Pick<Engine, "acquire">,
  selector: ContentSelector,
  { clock, log, signal, pass, onProgress, onRetry }: JoinOptions,
): Promise<TransferLease | undefined> {
  while (!signal.aborted) {
    try {
      const lease = await engine.acquire(selector, {
        signal,
        allowPrivateUrls: true,
        liveRole: "relay",
        ...(pass && { roleKey: pass.key }),
        ...(onProgress && { onProgress }),
      });
      if (!pass || pass.infohash === lease.transfer.infohash) return lease;
      lease.release();
      throw new SluiceError("bad_parameter", `the relay pass is for the stream ${pass.infohash}`);
    } catch (error) {
      if (signal.aborted) break;
      if (!(error instanceof SluiceError) || !PASSING.includes(error.code)) throw error;
      onRetry(error.message);
      log.warn("cannot join the stream; retrying", { error: messageOf(error), seconds: RETRY_MS / 1000 });
      await sleep(clock, RETRY_MS, signal);
    }
  }
  return undefined;
}

/** Returns the error for content that cannot be relayed. */
export function notLive(name: string): SluiceError {
  return new SluiceError(
    "unsupported_content",
    `${name} is not a live stream; only live streams can be relayed`,
  );
}

function infohashIn(link: string): Infohash | undefined {
  const parsed = parseLink(link);
  if (parsed?.kind === "content_id") return infohashOfContentId(parsed.contentId);
  return parsed?.kind === "infohash" || parsed?.kind === "magnet" ? parsed.infohash : undefined;
}
