// Mounts an engine in the program's own Fetch API server, which keeps the paths that it needs.
// Usage: bun examples/mount.ts [data folder]      deno run -A examples/mount.ts      node --import tsx examples/mount.ts
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEngine } from "sluice";
import { serveFetch } from "./serve-fetch.ts";

const engine = await startEngine({
  settings: {
    "data-dir": process.argv[2] ?? join(tmpdir(), "sluice-example"),
    "p2p-port": 0,
    dht: "off",
    lsd: "off",
  },
});

const server = await serveFetch((request, client) =>
  new URL(request.url).pathname === "/own"
    ? new Response("my own path\n")
    : // The engine applies its access rules to the address of the client.
      engine.fetch(request, client),
);

const own = await fetch(`${server.url}/own`);
console.log(`own: ${own.status} ${(await own.text()).trim()}`);
const page = await fetch(server.url);
console.log(`engine: ${page.status} ${page.headers.get("content-type")}`);
await page.body?.cancel();

await server.close();
await engine.close();
process.exit(0);
