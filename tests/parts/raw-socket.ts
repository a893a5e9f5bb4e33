import { connect, type Socket } from "node:net";

/** A TCP connection of the test's own, that says whatever it likes. */
export interface RawSocket {
  readonly socket: Socket;
  /** Everything received so far, up to 4 MiB. */
  readonly received: Buffer;
  /** Resolves when the other side has closed, or at once where it has; false where it has not within the time. */
  closes(withinMs: number): Promise<boolean>;
  /** Resolves when what was received fits, with all of it; undefined where it does not within the time. */
  hears(fits: (received: Buffer) => boolean, withinMs: number): Promise<Buffer | undefined>;
  send(bytes: Uint8Array | string): void;
  end(): void;
}

const MAX_KEPT_BYTES = 4 * 1024 * 1024;

/** Connects to 127.0.0.1. What the other side does to the connection is no error here. */
export function openRaw(port: number): Promise<RawSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    let received = Buffer.alloc(0);
    let isClosed = false;
    const watchers = new Set<() => void>();
    const changed = () => {
      for (const watch of [...watchers]) watch();
    };
    const waitFor = (holds: () => boolean, withinMs: number) =>
      new Promise<boolean>((done) => {
        const finish = (held: boolean) => {
          clearTimeout(timer);
          watchers.delete(look);
          done(held);
        };
        const look = () => {
          if (holds()) finish(true);
        };
        const timer = setTimeout(() => finish(holds()), withinMs);
        watchers.add(look);
        look();
      });
    socket.on("data", (bytes: Buffer) => {
      if (received.length < MAX_KEPT_BYTES) received = Buffer.concat([received, bytes]);
      changed();
    });
    socket.on("end", () => {
      isClosed = true;
      changed();
    });
    socket.on("close", () => {
      isClosed = true;
      changed();
    });
    socket.on("error", (error) => {
      isClosed = true;
      changed();
      reject(error);
    });
    socket.once("connect", () =>
      resolve({
        socket,
        get received() {
          return received;
        },
        closes: (withinMs) => waitFor(() => isClosed, withinMs),
        hears: async (fits, withinMs) => {
          await waitFor(() => isClosed || fits(received), withinMs);
          return fits(received) ? received : undefined;
        },
        send: (bytes) => void socket.write(bytes),
        end: () => void socket.destroy(),
      }),
    );
  });
}
