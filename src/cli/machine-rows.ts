import { readFile } from "node:fs/promises";
import type { DiagnosisRow } from "../base/diagnosis.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings/settings.ts";
import { bytesText } from "./units.ts";

/** Below this free space, the cache evicts data that was just downloaded. */
const LITTLE_SPACE_BYTES = 1e9;
const TRIAL_BYTES = 4 * 1024 * 1024;
/** Enough to write a stream of high bit rate while reading it. */
const SLOW_DISK_BYTES_PER_SECOND = 10e6;
/** Files of the cache, and files that the runtime opens. */
const FILES_BESIDE_CONNECTIONS = 200;
const SLOW_LOOKUP_MS = 1_000;

/** Diagnoses disk space, disk speed, name resolution and the limit of open files. */
export async function machineRows(runtime: Runtime, config: Config): Promise<DiagnosisRow[]> {
  return [
    ...(await Promise.all([spaceRow(runtime, config), diskRow(runtime, config), namesRow(runtime, config)])),
    ...(await filesRow(config)),
  ];
}

async function spaceRow({ files }: Runtime, { dataDir, cacheLimit }: Config): Promise<DiagnosisRow> {
  const name = "Space";
  const free = await files.freeBytes(dataDir);
  if (free === undefined)
    return { name, level: "note", text: `The system does not report the free space at ${dataDir}.` };
  const text = `${bytesText(free)} free at ${dataDir}.`;
  if (cacheLimit === 0 || free >= LITTLE_SPACE_BYTES) return { name, level: "ok", text };
  return {
    name,
    level: "warn",
    text,
    advice:
      "Free some space, choose another disk with --data-dir, or turn the disk cache off (--cache-limit 0).",
  };
}

/** Measures disk speed by writing and syncing a small file, the way records are written. */
async function diskRow({ files, clock, randomBytes }: Runtime, { dataDir }: Config): Promise<DiagnosisRow> {
  const name = "Disk";
  const path = `${dataDir}/.trial-${Date.now().toString(36)}`;
  try {
    const began = clock.now();
    await files.replace(path, randomBytes(TRIAL_BYTES));
    const tookMs = Math.max(1, Math.round(clock.now() - began));
    const bytesPerSecond = (1000 * TRIAL_BYTES) / tookMs;
    const text = `Writing and syncing ${bytesText(TRIAL_BYTES)} took ${tookMs} ms.`;
    if (bytesPerSecond >= SLOW_DISK_BYTES_PER_SECOND) return { name, level: "ok", text };
    return {
      name,
      level: "warn",
      text: `${text} This disk is slow.`,
      advice:
        "If playback stutters, move the data folder to another disk (--data-dir) or turn the disk cache off (--cache-limit 0).",
    };
  } catch (error) {
    return {
      name,
      level: "fail",
      text: `Cannot write to ${dataDir}: ${messageOf(error)}.`,
      advice: "Make the folder writable for this user, or choose another with --data-dir.",
    };
  } finally {
    await files.remove(path).catch(() => {});
  }
}

async function namesRow(runtime: Runtime, config: Config): Promise<DiagnosisRow> {
  const name = "Names";
  const host = nameToResolve(config);
  if (host === undefined) return { name, level: "ok", text: "No setting contains a host name to resolve." };
  if (config.proxy !== "" && config.proxyStrict === "on")
    return { name, level: "ok", text: "The proxy resolves names; this machine sends no DNS queries." };
  const began = runtime.clock.now();
  try {
    const addresses = await runtime.lookup(host);
    const tookMs = Math.round(runtime.clock.now() - began);
    const text = `${host} resolves (${addresses.length === 1 ? "1 address" : `${addresses.length} addresses`}, ${tookMs} ms).`;
    if (tookMs <= SLOW_LOOKUP_MS) return { name, level: "ok", text };
    return {
      name,
      level: "warn",
      text: `${text} That is slow.`,
      advice: "Check the DNS servers of this system.",
    };
  } catch (error) {
    return {
      name,
      level: "warn",
      text: `Cannot resolve ${host}: ${error instanceof SluiceError ? error.message : messageOf(error)}.`,
      advice: "Trackers need name resolution: check the Internet connection and the DNS servers.",
    };
  }
}

/** Returns a host name in the settings: a tracker or DHT node. */
function nameToResolve({ dht, dhtNodes, trackers }: Config): string | undefined {
  const ofTracker = trackers.flatMap((url) => /^[a-z]+:\/\/([^/:[\]]+)/i.exec(url)?.[1] ?? []);
  const ofNode = dht === "on" ? dhtNodes.map((node) => node.slice(0, node.lastIndexOf(":"))) : [];
  return [...ofTracker, ...ofNode].find((host) => /[a-z]/i.test(host) && !host.startsWith("["));
}

/** Diagnoses the limit of open files and sockets; empty if the system does not report it. */
async function filesRow({ maxConnections, maxHttpConnections }: Config): Promise<DiagnosisRow[]> {
  const limits = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const limit = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1]);
  if (!Number.isFinite(limit)) return [];
  const needed = maxConnections + maxHttpConnections + FILES_BESIDE_CONNECTIONS;
  const name = "Open files";
  if (limit >= needed) return [{ name, level: "ok", text: `The limit is ${limit}; ${needed} are enough.` }];
  return [
    {
      name,
      level: "warn",
      text: `The limit is ${limit}, but the engine may need ${needed}.`,
      advice: `Raise the limit (ulimit -n ${needed}), or lower --max-connections and --max-http-connections.`,
    },
  ];
}
