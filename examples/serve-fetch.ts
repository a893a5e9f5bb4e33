// Serves a Fetch API handler on the server of the runtime: Bun.serve, Deno.serve, or node:http.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream as NodeStream } from "node:stream/web";

/** The other end of a connection. */
export interface Client {
  readonly remote: { readonly host: string; readonly port: number };
}

type Handler = (request: Request, client: Client) => Response | Promise<Response>;

interface Server {
  readonly url: string;
  close(): Promise<void>;
}

declare const Deno:
  | {
      serve(
        options: { hostname: string; port: number; onListen(): void },
        handler: (
          request: Request,
          info: { remoteAddr: { hostname: string; port: number } },
        ) => ReturnType<Handler>,
      ): { readonly addr: { readonly port: number }; shutdown(): Promise<void> };
    }
  | undefined;

/** Listens on a free port of 127.0.0.1. */
export async function serveFetch(handler: Handler): Promise<Server> {
  if (typeof Bun !== "undefined") return onBun(handler);
  return typeof Deno === "undefined" ? onNode(handler) : onDeno(handler, Deno);
}

function onBun(handler: Handler): Server {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    // A live stream may be silent for longer than the default of 10 s.
    idleTimeout: 0,
    fetch(request, self) {
      const client = self.requestIP(request);
      if (client === null) return new Response(null, { status: 400 });
      return handler(request, { remote: { host: client.address, port: client.port } });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, close: () => server.stop(true) };
}

function onDeno(handler: Handler, deno: NonNullable<typeof Deno>): Server {
  const server = deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request, { remoteAddr }) =>
    handler(request, { remote: { host: remoteAddr.hostname, port: remoteAddr.port } }),
  );
  return { url: `http://127.0.0.1:${server.addr.port}`, close: () => server.shutdown() };
}

async function onNode(handler: Handler): Promise<Server> {
  const server = createServer((incoming, outgoing) => {
    // A player that hangs up ends the pipeline, which cancels the body.
    answer(handler, incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${port}`, close };
}

async function answer(handler: Handler, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const { method = "GET", headers, socket, url = "/" } = incoming;
  const hasBody = method !== "GET" && method !== "HEAD";
  const request = new Request(new URL(url, `http://${headers.host}`), {
    method,
    headers: Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]),
    ...(hasBody && { body: Readable.toWeb(incoming) as unknown as ReadableStream, duplex: "half" }),
  });
  const remote = { host: socket.remoteAddress ?? "", port: socket.remotePort ?? 0 };
  const response = await handler(request, { remote });
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null) outgoing.end();
  else await pipeline(Readable.fromWeb(response.body as unknown as NodeStream), outgoing);
}
