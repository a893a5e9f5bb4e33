import type { AnsweredRequest, OperationsService, ReadinessCheck } from "../../routes/http/dependencies.ts";
import { resolvesWithin } from "../async/sleep.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Cluster } from "../cluster/cluster-contract.ts";
import type { Engine } from "../engine/engine.ts";
import type { Clock, Files } from "../runtime/contract.ts";
import { type MetricFamily, metricsText } from "../wire/metrics-text.ts";
import type { LoopLag } from "./loop-lag.ts";
import type { MeasuredStore } from "./measured-store.ts";
import { bytesText } from "./units.ts";

/** A database that does not answer within this time is reported as not ready. */
const STORE_TIMEOUT_MS = 5_000;
/** With less free space, records and downloads can fail at any time. */
const LEAST_FREE_BYTES = 64 * 1024 * 1024;
/** Each live stream has its own samples; more of them would burden the monitoring system. */
const MAX_LIVE_STREAMS = 20;

/** What {@link Operations} needs. */
export interface OperationsDependencies {
  readonly engine: Pick<Engine, "figures" | "cacheFigures" | "broadcasts">;
  readonly store: Pick<MeasuredStore, "get" | "figures">;
  /** The engines that share the database. */
  readonly cluster?: Pick<Cluster, "engines"> | undefined;
  readonly files: Pick<Files, "freeBytes">;
  readonly clock: Clock;
  readonly loopLag: Pick<LoopLag, "readSeconds">;
  readonly log: Log;
  readonly dataDir: string;
  readonly version: string;
  /** The runtime with its version, such as `bun 1.4.5`. */
  readonly runtime: string;
  /** CPU time of this process in seconds, and its resident memory in bytes. */
  readonly process: () => { readonly cpuSeconds: number; readonly residentBytes: number };
}

/** Checks and measures a running engine for operators. */
export class Operations implements OperationsService {
  readonly #parts: OperationsDependencies;
  readonly #startedAt: number;
  /** Responses by the first digit of their status. */
  readonly #responses = new Map<string, number>();
  #isClosing = false;

  constructor(parts: OperationsDependencies) {
    this.#parts = parts;
    this.#startedAt = parts.clock.unixSeconds();
  }

  /** From now on the engine is not ready: it is being stopped. */
  closing(): void {
    this.#isClosing = true;
  }

  answered({ method, path, requestId, status }: AnsweredRequest): void {
    const kind = `${Math.floor(status / 100)}xx`;
    this.#responses.set(kind, (this.#responses.get(kind) ?? 0) + 1);
    this.#parts.log.debug("request", { method, path, status, request_id: requestId });
  }

  async readiness(): Promise<readonly ReadinessCheck[]> {
    const state: ReadinessCheck = this.#isClosing
      ? { name: "engine", isOk: false, text: "the engine is stopping" }
      : { name: "engine", isOk: true, text: "the engine is running" };
    const checks = [state, ...(await Promise.all([this.#checkStore(), this.#checkDisk()]))];
    return [...checks, ...this.#checkCluster()];
  }

  /** Shows the engines that share the database; their number is not an error. */
  #checkCluster(): ReadinessCheck[] {
    const engines = this.#parts.cluster?.engines() ?? [];
    if (engines.length === 0) return [];
    const draining = engines.filter(({ isDraining }) => isDraining).length;
    const players = engines.reduce((total, engine) => total + engine.players, 0);
    const text = `${engines.length} share the database (${draining} draining), with ${players} players`;
    return [{ name: "engines", isOk: true, text }];
  }

  async metrics(): Promise<string> {
    return metricsText(await this.measure());
  }

  /** Returns the current metrics. */
  async measure(): Promise<readonly MetricFamily[]> {
    const { engine, cluster, loopLag, store, files, dataDir, version, runtime } = this.#parts;
    const { sessions, transfers } = engine.figures();
    const cache = await engine.cacheFigures();
    const freeBytes = await files.freeBytes(dataDir);
    const broadcasts = engine.broadcasts.all().map((broadcast) => broadcast.figures());
    const usage = this.#parts.process();
    const live = transfers.flatMap(({ infohash, live }) => (live ? [{ labels: { infohash }, live }] : []));
    const shown = live.slice(0, MAX_LIVE_STREAMS);
    const swarms = transfers.map(({ figures }) => figures);
    return [
      one("sluice_info", "gauge", "The version of the engine and of its runtime; always 1.", 1, {
        version,
        runtime,
      }),
      {
        name: "sluice_cluster_players",
        kind: "gauge",
        help: "Sessions of players of each engine that shares the database.",
        samples: (cluster?.engines() ?? []).map(({ id, players }) => ({
          labels: { engine: id },
          value: players,
        })),
      },
      one("sluice_sessions", "gauge", "Playback sessions.", sessions),
      {
        name: "sluice_transfers",
        kind: "gauge",
        help: "Open contents.",
        samples: [
          { labels: { kind: "live" }, value: live.length },
          { labels: { kind: "file" }, value: transfers.length - live.length },
        ],
      },
      one("sluice_peers", "gauge", "Connected peers of all contents.", sum(swarms, "connectedPeers")),
      one(
        "sluice_download_bytes_per_second",
        "gauge",
        "Download from peers and web seeds.",
        sum(swarms, "bytesPerSecondDown"),
      ),
      one("sluice_upload_bytes_per_second", "gauge", "Upload to peers.", sum(swarms, "bytesPerSecondUp")),
      one("sluice_banned_peers", "gauge", "Banned peers of all open contents.", sum(swarms, "bannedPeers")),
      {
        name: "sluice_live_lag_seconds",
        kind: "gauge",
        help: `Delay of live streams behind their source, of at most ${MAX_LIVE_STREAMS} streams.`,
        samples: shown.map(({ labels, live }) => ({ labels, value: live.lagMs / 1000 })),
      },
      {
        name: "sluice_live_skipped_pieces",
        kind: "gauge",
        help: "Pieces of live streams that no peer delivered in time, since the stream was opened.",
        samples: shown.map(({ labels, live }) => ({ labels, value: live.skippedPieces })),
      },
      one("sluice_broadcasts", "gauge", "Broadcasts of this engine.", broadcasts.length),
      one(
        "sluice_broadcast_peers",
        "gauge",
        "Connected peers of all broadcasts.",
        broadcasts.reduce((total, { peers }) => total + peers, 0),
      ),
      one(
        "sluice_broadcast_upload_bytes_per_second",
        "gauge",
        "Upload of all broadcasts.",
        broadcasts.reduce((total, { uploadBytesPerSecond }) => total + uploadBytesPerSecond, 0),
      ),
      {
        name: "sluice_cache_bytes",
        kind: "gauge",
        help: "Disk space of the cache: of open contents (active) and of others.",
        samples: [
          { labels: { state: "active" }, value: cache.activeInUse },
          { labels: { state: "inactive" }, value: cache.inactiveInUse },
        ],
      },
      one("sluice_cache_limit_bytes", "gauge", "Limit of the disk cache.", cache.limit),
      one("sluice_piece_memory_bytes", "gauge", "Pieces in memory.", cache.memoryInUse),
      {
        name: "sluice_disk_free_bytes",
        kind: "gauge",
        help: "Free space on the disk of the data folder.",
        samples: freeBytes === undefined ? [] : [{ value: freeBytes }],
      },
      {
        name: "sluice_store_operations_total",
        kind: "counter",
        help: "Reads and commits of the database.",
        samples: store.figures().map(({ operation, calls }) => ({ labels: { operation }, value: calls })),
      },
      {
        name: "sluice_store_failures_total",
        kind: "counter",
        help: "Reads and commits of the database that failed.",
        samples: store
          .figures()
          .map(({ operation, failures }) => ({ labels: { operation }, value: failures })),
      },
      {
        name: "sluice_store_seconds_total",
        kind: "counter",
        help: "Time of reads and commits of the database.",
        samples: store.figures().map(({ operation, seconds }) => ({ labels: { operation }, value: seconds })),
      },
      {
        name: "sluice_http_responses_total",
        kind: "counter",
        help: "HTTP responses by class of status.",
        samples: [...this.#responses].map(([code, value]) => ({ labels: { code }, value })),
      },
      one(
        "sluice_event_loop_lag_seconds",
        "gauge",
        "Largest delay of a timer since the last scrape.",
        loopLag.readSeconds(),
      ),
      one("process_cpu_seconds_total", "counter", "CPU time of the process.", usage.cpuSeconds),
      one("process_resident_memory_bytes", "gauge", "Resident memory of the process.", usage.residentBytes),
      one(
        "process_start_time_seconds",
        "gauge",
        "Start of the engine in seconds since 1970.",
        this.#startedAt,
      ),
    ];
  }

  async #checkStore(): Promise<ReadinessCheck> {
    try {
      // No record has this key; the read shows whether the database answers.
      const answer = this.#parts.store.get("ready");
      const isOk = await resolvesWithin(answer, this.#parts.clock, STORE_TIMEOUT_MS);
      if (isOk) return { name: "database", isOk, text: "the database answers" };
      const text = `the database did not answer within ${STORE_TIMEOUT_MS / 1000} s`;
      return { name: "database", isOk, text };
    } catch (error) {
      return { name: "database", isOk: false, text: `the database cannot be read: ${messageOf(error)}` };
    }
  }

  async #checkDisk(): Promise<ReadinessCheck> {
    const { files, dataDir } = this.#parts;
    const free = await files.freeBytes(dataDir);
    const isOk = free === undefined || free >= LEAST_FREE_BYTES;
    if (free === undefined) return { name: "disk", isOk, text: "the system does not report free space" };
    const text = `${bytesText(free)} are free`;
    return isOk
      ? { name: "disk", isOk, text }
      : {
          name: "disk",
          isOk,
          text: `${text}. Free some space, or move the data folder to another disk (--data-dir).`,
        };
  }
}

function one(
  name: string,
  kind: MetricFamily["kind"],
  help: string,
  value: number,
  labels?: Readonly<Record<string, string>>,
): MetricFamily {
  return { name, kind, help, samples: [labels ? { labels, value } : { value }] };
}

function sum<K extends string>(all: readonly Readonly<Record<K, number>>[], key: K): number {
  return all.reduce((total, each) => total + each[key], 0);
}
