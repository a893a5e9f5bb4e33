import { SerialQueue } from "../../../async/serial-queue.ts";
import { messageOf, SluiceError } from "../../../base/errors.ts";
import { parseLiveTransportFile } from "../../../wire/live/transport-file.ts";
import type { FromWorker, ToWorker } from "./messages.ts";
import { ed25519Verifier, sha1 } from "./page-crypto.ts";
import { SwarmPeer } from "./swarm-peer.ts";

/** The part of `DedicatedWorkerGlobalScope` that is used; the types of the page do not have it. */
interface WorkerScope {
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
  postMessage(message: FromWorker, transfer: Transferable[]): void;
}

const FIGURES_MS = 500;

const scope = globalThis as unknown as WorkerScope;
const post = (message: FromWorker, transfer: Transferable[] = []) => scope.postMessage(message, transfer);
const loads = new Map<number, AbortController>();
let peer: SwarmPeer | undefined;
const joins = new SerialQueue();

scope.onmessage = ({ data }) => {
  if (data.kind === "start") start(data);
  else if (data.kind === "load") void load(data.id, data.path);
  else if (data.kind === "abort") loads.get(data.id)?.abort();
  else if (data.kind === "share") void joins.run(async () => peer?.share(data.id, data.uploads));
  else peer?.channel(data);
};

function start({ url, infohash, file: bytes }: Extract<ToWorker, { kind: "start" }>): void {
  try {
    const file = parseLiveTransportFile(new Uint8Array(bytes), sha1, ed25519Verifier);
    if (file.infohash !== infohash)
      throw new SluiceError("bad_transport_file", "the engine sent another stream");
    const started = new SwarmPeer(file, url, post);
    peer = started;
    void joins.run(() => started.restore().then(() => started.share(undefined, false)));
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
