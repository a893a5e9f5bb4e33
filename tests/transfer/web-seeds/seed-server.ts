import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request to the server. */
export interface Asked {
  readonly path: string;
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/** A web server with files by path, which records its requests. */
export interface SeedServer {
  /** Such as `http://127.0.0.1:40123`. */
  readonly url: string;
  readonly asked: readonly Asked[];
  /** Maximum number of concurrent requests. */
  readonly mostOpen: number;
  close(): Promise<void>;
}

/** Returns true if it has sent the response itself. */
export type Misbehave = (asked: Asked, response: ServerResponse, request: IncomingMessage) => boolean;

/** Starts a server with ranges (RFC 9110 14); `misbehave` may answer requests differently. */
export async function startSeedServer(
  files: Readonly<Record<string, Uint8Array>>,
  misbehave: Misbehave = () => false,
): Promise<SeedServer> {
  const asked: Asked[] = [];
  let open = 0;
  let mostOpen = 0;
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    const bytes = files[path];
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
    const range = { path, start: Number(first ?? 0), end: last === undefined ? 0 : Number(last) + 1 };
    asked.push(range);
    mostOpen = Math.max(mostOpen, ++open);
    response.once("close", () => open--);
    if (misbehave(range, response, request)) return;
    if (!bytes) {
      response.writeHead(404).end();
      return;
    }
    const end = Math.min(range.end, bytes.length);
    response.writeHead(206, {
      "content-range": `bytes ${range.start}-${end - 1}/${bytes.length}`,
      "content-length": String(end - range.start),
    });
    response.end(bytes.subarray(range.start, end));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    get mostOpen() {
      return mostOpen;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
