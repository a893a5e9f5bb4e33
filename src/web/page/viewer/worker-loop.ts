import { SerialQueue } from "../../../async/serial-queue.ts";
import { messageOf, SluiceError } from "../../../base/errors.ts";
import type { FromWorker, StartMessage, ToWorker, ViewerFigures } from "./messages.ts";

/** The part of `DedicatedWorkerGlobalScope` that is used; the types of the page do not have it. */
interface WorkerScope {
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
  postMessage(message: FromWorker, transfer: Transferable[]): void;
}

/** A page as a peer of one swarm. */
export interface PagePeer {
  /** Prepares the start; called first. */
  begin(): Promise<void>;
  /** Connects to other pages under `id` from now on, or to the engine only if there is none. */
  share(id: string | undefined, uploads: boolean): Promise<void>;
  /** Receives the last seconds that the engine has. */
  recent?(bytes: ArrayBuffer | undefined): void;
  /** Handles a message about a channel. */
  channel(message: Extract<ToWorker, { readonly channel: number }>): void;
  /** Returns a resource of the HLS presentation, by its name and query. Rejects with `SluiceError`. */
  load(path: string, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
  figures(): ViewerFigures;
}

const FIGURES_MS = 500;

/** Answers the messages of the page with the peer that `make` makes. `make` throws if the page's content is invalid. */
export function runWorker(
  make: (start: StartMessage, post: (message: FromWorker, transfer?: Transferable[]) => void) => PagePeer,
): void {
  const scope = globalThis as unknown as WorkerScope;
  const post = (message: FromWorker, transfer: Transferable[] = []) => scope.postMessage(message, transfer);
  const loads = new Map<number, AbortController>();
  let peer: PagePeer | undefined;
  const joins = new SerialQueue();

  scope.onmessage = ({ data }) => {
    if (data.kind === "start") start(data);
    else if (data.kind === "load") void load(data.id, data.path);
    else if (data.kind === "abort") loads.get(data.id)?.abort();
    else if (data.kind === "share") void joins.run(async () => peer?.share(data.id, data.uploads));
    else if (data.kind === "recent") peer?.recent?.(data.bytes);
    else peer?.channel(data);
  };

  function start(message: StartMessage): void {
    try {
      const started = make(message, post);
      peer = started;
      void joins.run(() => started.begin().then(() => started.share(undefined, false)));
      setInterval(() => post({ kind: "figures", figures: started.figures() }), FIGURES_MS);
    } catch (error) {
      post({ kind: "problem", reason: messageOf(error) });
    }
  }

  async function load(id: number, path: string): Promise<void> {
    const abort = new AbortController();
    loads.set(id, abort);
    try {
      if (!peer) throw new SluiceError("no_such_segment", "the stream has not started");
      const bytes = await peer.load(path, abort.signal);
      post({ kind: "loaded", id, bytes: bytes.buffer }, [bytes.buffer]);
    } catch (error) {
      const isKnown = error instanceof SluiceError;
      const status = isKnown && error.code === "no_such_segment" ? 404 : isKnown ? 400 : 504;
      if (!abort.signal.aborted) post({ kind: "failed", id, status, reason: messageOf(error) });
    } finally {
      loads.delete(id);
    }
  }
}
