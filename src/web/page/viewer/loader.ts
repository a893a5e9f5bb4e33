import type {
  HlsConfig,
  Loader,
  LoaderCallbacks,
  LoaderConfiguration,
  LoaderContext,
  LoaderStats,
} from "hls.js";
import type { FromWorker, ToWorker } from "./messages.ts";

/** The requests of hls.js that the worker answers. */
export class WorkerLoads {
  readonly #post: (message: ToWorker) => void;
  readonly #pending = new Map<number, (message: LoadAnswer) => void>();
  #nextId = 1;

  constructor(post: (message: ToWorker) => void) {
    this.#post = post;
  }

  /** Requests a resource; `done` is called once, unless the request is cancelled by the returned function. */
  load(path: string, done: (message: LoadAnswer) => void): () => void {
    const id = this.#nextId++;
    this.#pending.set(id, done);
    this.#post({ kind: "load", id, path });
    return () => {
      if (this.#pending.delete(id)) this.#post({ kind: "abort", id });
    };
  }

  /** Handles an answer of the worker. */
  answered(message: LoadAnswer): void {
    const done = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    done?.(message);
  }
}

type LoadAnswer = Extract<FromWorker, { kind: "loaded" | "failed" }>;

/** Returns the class with which hls.js reads the stream from the worker instead of the network. */
export function workerLoader(loads: WorkerLoads): HlsConfig["loader"] {
  return class implements Loader<LoaderContext> {
    context: LoaderContext | null = null;
    stats: LoaderStats = newStats();
    cancel: () => void = () => {};
    timer = 0;

    load(
      context: LoaderContext,
      { loadPolicy }: LoaderConfiguration,
      callbacks: LoaderCallbacks<LoaderContext>,
    ): void {
      this.context = context;
      const { stats } = this;
      stats.loading.start = performance.now();
      const { pathname, search } = new URL(context.url);
      const path = pathname.slice(pathname.lastIndexOf("/") + 1) + search;
      this.cancel = loads.load(path, (answer) => {
        clearTimeout(this.timer);
        if (answer.kind === "failed") {
          callbacks.onError({ code: answer.status, text: answer.reason }, context, null, stats);
          return;
        }
        stats.loaded = stats.total = answer.bytes.byteLength;
        stats.loading.first = stats.loading.end = performance.now();
        const isBinary = context.responseType === "arraybuffer";
        const data = isBinary ? answer.bytes : new TextDecoder().decode(answer.bytes);
        callbacks.onSuccess({ url: context.url, data, code: 200 }, stats, context, null);
      });
      this.timer = window.setTimeout(() => {
        this.cancel();
        callbacks.onTimeout(stats, context, null);
      }, loadPolicy.maxLoadTimeMs);
    }

    abort(): void {
      clearTimeout(this.timer);
      this.stats.aborted = true;
      this.cancel();
    }

    destroy(): void {
      this.abort();
      this.context = null;
    }
  };
}

function newStats(): LoaderStats {
  return {
    ...{ aborted: false, loaded: 0, retry: 0, total: 0, chunkCount: 0, bwEstimate: 0 },
    loading: { start: 0, first: 0, end: 0 },
    parsing: { start: 0, end: 0 },
    buffering: { start: 0, first: 0, end: 0 },
  };
}
