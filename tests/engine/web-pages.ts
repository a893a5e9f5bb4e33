import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** The response of a path. */
export interface Page {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent with its length. If `isEndless`, repeated without a length while the client reads. */
  readonly body?: string | Uint8Array;
  readonly isEndless?: boolean;
  /** Sent without its length. */
  readonly isChunked?: boolean;
}

/** A web server on loopback. */
export interface WebPages {
  /** The base URL, for example `http://127.0.0.1:1234`. */
  readonly base: string;
  /** By path, without the query. */
  readonly pages: Map<string, Page>;
  readonly asked: string[];
  /** Bytes written to sockets so far. */
  sentBytes(): number;
  close(): Promise<void>;
}

/** Serves `pages` on a free port. */
export async function servePages(pages: Readonly<Record<string, Page>> = {}): Promise<WebPages> {
  const byPath = new Map(Object.entries(pages));
  const asked: string[] = [];
  let sent = 0;
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const path = request.url!.split("?", 1)[0]!;
    asked.push(path);
    const {
      status = 200,
      headers = {},
      body = "",
      isEndless,
      isChunked,
    } = byPath.get(path) ?? { status: 404 };
    const bytes = Buffer.from(body);
    const length = isEndless || isChunked ? {} : { "content-length": String(bytes.length) };
    response.writeHead(status, { ...length, ...headers });
    const more = () => {
      while (!response.destroyed) {
        sent += bytes.length;
        if (!response.write(bytes)) return;
      }
    };
    if (isEndless) {
      response.on("drain", more);
      more();
      return;
    }
    sent += bytes.length;
    response.end(bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    base: `http://127.0.0.1:${port}`,
    pages: byPath,
    asked,
    sentBytes: () => sent,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
