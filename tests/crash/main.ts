import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startRedis } from "../interop/redis-server.ts";
import { runtimeCommand } from "../parts/engine.ts";
import { corrupt } from "./corruptions.ts";
import { failEachCall, missingFaultSupport } from "./faults.ts";
import { killOften } from "./kills.ts";
import { killServerOften } from "./server-kills.ts";

/**
 * Kills, faults and corruptions of the store, in any number:
 * `npm run crash -- --kills 1000 --corruptions 10000 --faults [--seed N]`, and with the store on a Redis server:
 * `npm run crash -- --redis-kills 200 --redis-server-kills 50`.
 */
const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "0" },
    corruptions: { type: "string", default: "0" },
    faults: { type: "boolean", default: false },
    "redis-kills": { type: "string", default: "0" },
    "redis-server-kills": { type: "string", default: "0" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
  },
});
const seed = Number(values.seed);
const command = runtimeCommand();
console.log(`seed ${seed}, ${command[0]}`);

await runIfWanted("kills", Number(values.kills) > 0, (folder) =>
  killOften(folder, command, Number(values.kills), seed),
);
await runIfWanted("corruptions", Number(values.corruptions) > 0, (folder) =>
  corrupt(folder, Number(values.corruptions), seed),
);
const why = values.faults ? missingFaultSupport() : undefined;
if (why !== undefined) console.log(`faults: skipped, ${why}`);
await runIfWanted("faults", values.faults && why === undefined, (folder) =>
  failEachCall(folder, command, 1, seed),
);
await runIfWanted("redis-kills", Number(values["redis-kills"]) > 0, async (folder) => {
  const server = await startRedis(folder);
  const figures = await killOften(server.url, command, Number(values["redis-kills"]), seed);
  await server.stop();
  return figures;
});
await runIfWanted("redis-server-kills", Number(values["redis-server-kills"]) > 0, (folder) =>
  killServerOften(folder, Number(values["redis-server-kills"]), seed),
);

async function runIfWanted(
  name: string,
  isWanted: boolean,
  work: (folder: string) => Promise<object>,
): Promise<void> {
  if (!isWanted) return;
  const folder = await mkdtemp(join(tmpdir(), "sluice-crash-"));
  const beganMs = performance.now();
  const figures = await work(folder);
  const seconds = Math.round((performance.now() - beganMs) / 1000);
  console.log(name, JSON.stringify({ ...figures, seconds }));
  // After a failure the folder stays for inspection.
  await rm(folder, { recursive: true });
}
