import { connect, type Socket } from "node:net";

/** A TCP connection that sends arbitrary bytes. */
export interface RawSocket {
  readonly socket: Socket;
  /** Everything received so far, up to 4 MiB. */
  readonly received: Buffer;
  /** Resolves with true when the remote side has closed the connection; false if it has not within `withinMs`. */
  closes(withinMs: number): Promise<boolean>;
  /** Resolves with all received bytes when they satisfy `fits`; undefined if they do not within `withinMs`. */
  hears(fits: (received: Buffer) => boolean, withinMs: number): Promise<Buffer | undefined>;
  send(bytes: Uint8Array | string): void;
  end(): void;
}

const MAX_BACKUP_FILE_BYTES = 4 * 1024 * 1024;

/** Connects to 127.0.0.1. A connection closed or reset by the remote side is not an error. */
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
      if (received.length < MAX_BACKUP_FILE_BYTES) received = Buffer.concat([received, bytes]);
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
