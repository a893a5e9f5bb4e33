import { isMainThread, parentPort, Worker } from "node:worker_threads";
import type { Runtime } from "./contract.ts";
import type { StartWorker, WorkerPort } from "./worker-contract.ts";

/** Node runs TypeScript with tsx; a worker does not inherit a loader that was registered by a call. */
const nodeOptions = () => ({ execArgv: ["--import", import.meta.resolve("tsx")] });

/** Starts a script of `src/` in a thread with a heap of its own. `name`: its name without the extension. */
export function startWorker(
  runtime: Runtime["name"],
  name: string,
  { onMessage, onError }: Parameters<StartWorker>[1],
): ReturnType<StartWorker> {
  // In the single binary, all modules are in one folder.
  const place = import.meta.url.endsWith(".ts") ? `../${name}.ts` : `./${name}.js`;
  const worker = new Worker(new URL(place, import.meta.url), runtime === "node" ? nodeOptions() : {});
  worker.on("message", onMessage);
  worker.on("error", onError);
  worker.on("exit", () => onError(new Error(`the worker ${name} has ended`)));
  return {
    send: (message, moved) => worker.postMessage(message, moved ? [moved] : []),
    stop: async () => void (await worker.terminate()),
  };
}

/** Returns the connection of this worker to the engine. Throws on the main thread. */
export function workerPort(): WorkerPort {
  if (isMainThread || !parentPort) throw new Error("this is not a worker");
  const port = parentPort;
  return {
    send: (message) => port.postMessage(message),
    onMessage: (listener) => void port.on("message", listener),
  };
}
