// Broadcasts a test pattern for some seconds, controlled by a script.
// Usage: bun examples/broadcast.ts [data folder] [seconds]
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startEngine } from "sluice";

const [dataDir = join(tmpdir(), "sluice-example"), seconds = "5"] = process.argv.slice(2);
const engine = await startEngine({
  settings: { "data-dir": dataDir, "p2p-port": 0, dht: "off", lsd: "off", store: "memory" },
});

interface BroadcastStatus {
  readonly name: string;
  readonly status: string;
  readonly link: string;
  readonly infohash: string;
}

const live = (await engine.call("broadcast_start", { name: "example", test_pattern: 1 })) as BroadcastStatus;
console.log(`link: ${live.link}`);
const url = await engine.listen({ host: "127.0.0.1", port: 0 });
console.log(`preview: ${url}/ace/getstream?infohash=${live.infohash}`);

for (let second = 0; second < Number(seconds); second++) {
  await delay(1000);
  const { broadcasts } = (await engine.call("broadcast_list")) as { broadcasts: BroadcastStatus[] };
  console.log(broadcasts.map(({ name, status }) => `${name}: ${status}`).join(", "));
}

await engine.call("broadcast_stop", { name: "example" });
console.log("stopped");
await engine.close();
process.exit(0);
