import { readFile } from "node:fs/promises";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { DiagnosisRow } from "../engine/diagnosis/contract.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings.ts";
import { bytesText } from "./units.ts";

/** Below this the cache gives up what was just fetched. */
const LITTLE_SPACE_BYTES = 1e9;
const TRIAL_BYTES = 4 * 1024 * 1024;
/** A high bit rate, and as much again for what is read meanwhile. */
const SLOW_DISK_BYTES_PER_SECOND = 10e6;
/** Sockets of peers and players, files of the cache, and what the runtime itself opens. */
const FILES_BESIDE_CONNECTIONS = 200;
const SLOW_LOOKUP_MS = 1_000;

/** What this machine gives to the engine: disk, names, open files. */
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
    return { name, level: "note", text: `The system does not say how much is free at ${dataDir}.` };
  const text = `${bytesText(free)} are free at ${dataDir}.`;
  if (cacheLimit === 0 || free >= LITTLE_SPACE_BYTES) return { name, level: "ok", text };
  return {
    name,
    level: "warn",
    text,
    advice: "Make room, name another disk with --data-dir, or keep nothing on disk with --cache-limit 0.",
  };
}

/** Writes a little, as safely as records are written: what that takes says what the disk is worth. */
async function diskRow({ files, clock, randomBytes }: Runtime, { dataDir }: Config): Promise<DiagnosisRow> {
  const name = "Disk";
  const path = `${dataDir}/.trial-${Date.now().toString(36)}`;
  try {
    const began = clock.now();
    await files.replace(path, randomBytes(TRIAL_BYTES));
    const tookMs = Math.max(1, Math.round(clock.now() - began));
    const bytesPerSecond = (1000 * TRIAL_BYTES) / tookMs;
    const text = `${bytesText(TRIAL_BYTES)} were written and safe after ${tookMs} ms.`;
    if (bytesPerSecond >= SLOW_DISK_BYTES_PER_SECOND) return { name, level: "ok", text };
    return {
      name,
      level: "warn",
      text: `${text} That is slow.`,
      advice: "Where playing stutters, name another disk with --data-dir, or use --cache-limit 0.",
    };
  } catch (error) {
    return {
      name,
      level: "fail",
      text: `Nothing can be written at ${dataDir}: ${messageOf(error)}.`,
      advice: "Make the folder writable for who runs this program, or name another with --data-dir.",
    };
  } finally {
    await files.remove(path).catch(() => {});
  }
}

async function namesRow(runtime: Runtime, config: Config): Promise<DiagnosisRow> {
  const name = "Names";
  const host = nameToAsk(config);
  if (host === undefined)
    return { name, level: "ok", text: "No setting names a server, so there is nothing to look up." };
  if (config.proxy !== "" && config.proxyStrict === "on")
    return { name, level: "ok", text: "The proxy looks them up: this machine asks no DNS." };
  const began = runtime.clock.now();
  try {
    const addresses = await runtime.lookup(host);
    const tookMs = Math.round(runtime.clock.now() - began);
    const text = `${host} is known to the DNS (${addresses.length === 1 ? "1 address" : `${addresses.length} addresses`}, ${tookMs} ms).`;
    if (tookMs <= SLOW_LOOKUP_MS) return { name, level: "ok", text };
    return {
      name,
      level: "warn",
      text: `${text} That is slow.`,
      advice: "Look at the DNS servers of this system.",
    };
  } catch (error) {
    return {
      name,
      level: "warn",
      text: `${host} cannot be looked up: ${error instanceof SluiceError ? error.message : messageOf(error)}.`,
      advice: "Without names no tracker is found: look at the DNS servers and the Internet connection.",
    };
  }
}

/** A server that the settings name. */
function nameToAsk({ dht, dhtNodes, trackers }: Config): string | undefined {
  const ofTracker = trackers.flatMap((url) => /^[a-z]+:\/\/([^/:[\]]+)/i.exec(url)?.[1] ?? []);
  const ofNode = dht === "on" ? dhtNodes.map((node) => node.slice(0, node.lastIndexOf(":"))) : [];
  return [...ofTracker, ...ofNode].find((host) => /[a-z]/i.test(host) && !host.startsWith("["));
}

/** How many files and sockets the system lets one program open; where it says so. */
async function filesRow({ maxConnections, maxHttpConnections }: Config): Promise<DiagnosisRow[]> {
  const limits = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const limit = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1]);
  if (!Number.isFinite(limit)) return [];
  const needed = maxConnections + maxHttpConnections + FILES_BESIDE_CONNECTIONS;
  const name = "Open files";
  if (limit >= needed) return [{ name, level: "ok", text: `${limit} may be open, ${needed} are enough.` }];
  return [
    {
      name,
      level: "warn",
      text: `${limit} may be open, but ${needed} may be needed.`,
      advice: `Raise the limit (ulimit -n ${needed}), or lower --max-connections and --max-http-connections.`,
    },
  ];
}
