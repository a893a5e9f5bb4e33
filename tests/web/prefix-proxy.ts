import { createServer, request } from "node:http";
import { type AddressInfo, connect } from "node:net";

/** A reverse proxy that serves an engine below a path, as nginx does with `location /sluice/`. */
export interface PrefixProxy {
  /** Such as `http://127.0.0.1:8080/sluice`. */
  readonly url: string;
  close(): void;
}

/** Serves the engine at `target` below `/sluice` on `host`. Every other path is an error of the page, and answers 418. */
export async function startPrefixProxy(target: string, host: string): Promise<PrefixProxy> {
  const prefix = "/sluice";
  const engine = new URL(target);
  const server = createServer((incoming, response) => {
    const path = incoming.url ?? "";
    if (!path.startsWith(`${prefix}/`)) {
      response.writeHead(418).end("outside of the prefix");
      return;
    }
    const headers = {
      ...incoming.headers,
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-host": incoming.headers.host,
      "x-forwarded-prefix": prefix,
    };
    const options = { host: engine.hostname, port: engine.port, method: incoming.method, headers };
    const outgoing = request({ ...options, path: path.slice(prefix.length) }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
      response.on("close", () => answer.destroy());
    });
    outgoing.on("error", () => response.destroy());
    incoming.pipe(outgoing);
  });
  server.on("upgrade", (incoming, socket, head) => {
    const upstream = connect(Number(engine.port), engine.hostname, () => {
      const lines = Object.entries(incoming.headers).map(([name, value]) => `${name}: ${value}`);
      const path = (incoming.url ?? "").slice(prefix.length);
      upstream.write(`GET ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
      upstream.write(head);
      upstream.pipe(socket).pipe(upstream);
    });
    const end = () => {
      upstream.destroy();
      socket.destroy();
    };
    for (const each of [upstream, socket]) each.on("error", end);
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}${prefix}`,
    close: () => server.close().closeAllConnections(),
  };
}
