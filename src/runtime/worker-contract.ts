/**
 * Starts a script of the program in a thread of its own, for work that would block the event loop. Messages are copied. `onError` is
 * called if the script fails or ends; after `stop` it has no meaning.
 */
export type StartWorker = (
  name: "guide-worker",
  handlers: {
    readonly onMessage: (message: unknown) => void;
    readonly onError: (error: unknown) => void;
  },
) => EngineWorker;

/** A thread that {@link StartWorker} has started. */
interface EngineWorker {
  /** `moved`: a buffer of the message that is moved instead of copied; it cannot be used afterwards. */
  send(message: unknown, moved?: ArrayBuffer): void;
  stop(): Promise<void>;
}

/** The connection of a worker to the engine. */
export interface WorkerPort {
  send(message: unknown): void;
  onMessage(listener: (message: unknown) => void): void;
}
