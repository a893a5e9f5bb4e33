// Runs an engine inside a program and serves it under a path of the program's own server.
// Usage: bun examples/embed.ts [data folder]      deno run -A examples/embed.ts      node --import tsx examples/embed.ts
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEngine } from "sluice";

const engine = await startEngine({
  settings: {
    "data-dir": process.argv[2] ?? join(tmpdir(), "sluice-example"),
    "p2p-port": 0,
    dht: "off",
    lsd: "off",
  },
  log: (line) => console.error(line),
});

// Requests can be answered without a socket …
const version = await engine.fetch(new Request("http://127.0.0.1/webui/api/service?method=get_version"));
console.log(`engine: ${await version.text()}`);

// … so any server can pass them on. Check who may do so: the engine treats them as requests of this machine.
const server = createServer(async (incoming, outgoing) => {
  const path = incoming.url?.replace(/^\/tv/, "") ?? "/";
  const response = await engine.fetch(new Request(new URL(path, "http://127.0.0.1")));
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.end(new Uint8Array(await response.arrayBuffer()));
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const { port } = server.address() as { port: number };
const page = await fetch(`http://127.0.0.1:${port}/tv/`);
console.log(`own server: ${page.status} ${page.headers.get("content-type")}`);

// Players connect to a listener of the engine, which streams with backpressure.
const url = await engine.listen({ host: "127.0.0.1", port: 0 });
const docs = await fetch(`${url}/docs`);
console.log(`players: ${docs.status}`);

server.close();
await engine.close();
process.exit(0);
