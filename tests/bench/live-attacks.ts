// `bun tests/bench/live-attacks.ts [--strangers 10 --seconds 4 --only REGEXP]`: attacks the source and the viewer
// of a live stream with each kind of hostile peer, as separate processes, and prints what a player noticed. A second
// stream with a viewer of its own runs beside it undisturbed, as the control. `--nice=-15` (Linux, as root) puts all its processes before
// other load.
import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { cpus, loadavg, setPriority } from "node:os";
import { parseArgs } from "node:util";
import { runtime } from "#runtime";
import { parseLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { startEngine } from "../parts/engine.ts";
import { type BroadcastProcess, startBroadcast, watchUrl } from "../parts/live-broadcast.ts";
import { processGroup, usageOf } from "../parts/process.ts";
import { GapPlayer } from "./gap-player.ts";
import { ATTACK_KINDS } from "./live-attack-kinds.ts";
import { startStrangers, traffic } from "./live-stranger.ts";
import { markdownTable } from "./table.ts";

const { values } = parseArgs({
  options: {
    strangers: { type: "string", default: "10" },
    seconds: { type: "string", default: "4" },
    kbit: { type: "string", default: "1500" },
    only: { type: "string", default: "" },
    nice: { type: "string" },
    // For the process of the strangers.
    kind: { type: "string" },
    file: { type: "string", default: "" },
    key: { type: "string", default: "" },
    ports: { type: "string", default: "" },
    round: { type: "string", default: "0" },
  },
});
const strangers = Number(values.strangers);
/** A player with a gap above this would stall; the stream is on the way for less. */
const MAX_GAP_MS = 500;
/** The time after an attack in which its effects still count. */
const AFTER_MS = 1_000;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A source and a viewer with a player. */
async function startPair() {
  const source = await startBroadcast(
    { timedBytesPerSecond: Number(values.kbit) * 125 },
    { flags: ["--log", "info"] },
  );
  const viewer = await startEngine({
    env: { SLUICE_LOG: "info", SLUICE_LIVE_LIMIT: "0", SLUICE_STORE: "memory" },
  });
  // Strangers have addresses of their own, so this one is the source or the viewer.
  const bans = { count: 0 };
  for (const { child } of [source, viewer])
    for (const stream of [child.stdout!, child.stderr!])
      stream.on("data", (text) => {
        bans.count += String(text).match(/peer banned peer=127\.0\.0\.1:/g)?.length ?? 0;
      });
  return { source, viewer, bans, player: new GapPlayer(watchUrl(viewer, source.magnet)) };
}

/** The strangers of one attack, until SIGTERM. */
async function beStrangers(): Promise<void> {
  const kind = ATTACK_KINDS.find(({ name }) => name === values.kind)!;
  const bytes = new Uint8Array(await readFile(values.file));
  const file = parseLiveTransportFile(bytes, runtime.sha1, runtime.ed25519Verifier);
  const { sign } = runtime.ed25519Key(new Uint8Array(await readFile(values.key)));
  const [sourcePort, ...targetPorts] = values.ports.split(",").map(Number) as [number, ...number[]];
  process.on("SIGTERM", () => {
    const { user, system } = process.cpuUsage();
    console.log(JSON.stringify({ ...traffic, cpuMs: (user + system) / 1_000 }));
    process.exit(0);
  });
  for (let i = 0; i < strangers; i++) {
    const localAddress = `127.${1 + Math.floor(Number(values.round) / 250)}.${1 + (Number(values.round) % 250)}.${1 + i}`;
    for (const targetPort of targetPorts) kind.run({ file, sourcePort, targetPort, localAddress, sign });
  }
  // A stranger whose connections are closed waits for the end.
  setInterval(() => {}, 1_000);
  console.log("attacking");
}

async function attack(kind: string, round: number, source: BroadcastProcess, targetPort: number) {
  const process = await startStrangers(kind, strangers, source, [targetPort], round);
  await pause(1_000 * Number(values.seconds));
  process.child.kill("SIGTERM");
  const line = await process.line((text) => text.startsWith("{"));
  await process.stop();
  return JSON.parse(line) as { sent: number; received: number; cpuMs: number };
}

if (values.kind !== undefined) await beStrangers();
else {
  await main();
  // The players read without end.
  process.exit(0);
}

async function main(): Promise<void> {
  if (values.nice) setPriority(Number(values.nice));
  const attacked = await startPair();
  const control = await startPair();
  if (values.nice)
    // Linux compares sessions first, and only then the processes of a session. Each source has a session of its own.
    for (const pid of ["self", attacked.source.pid, control.source.pid])
      await writeFile(`/proc/${pid}/autogroup`, values.nice);
  const rows: string[][] = [];
  try {
    await pause(8_000);
    const grownMiB = (name: keyof Pair) => residentMiB(attacked, name) - residentMiB(control, name);
    const grownBefore = { source: grownMiB("source"), viewer: grownMiB("viewer") };
    let round = 0;
    for (const { name, only } of ATTACK_KINDS) {
      if (!new RegExp(values.only).test(name)) continue;
      for (const target of ["source", "viewer"] as const) {
        if (only !== undefined && only !== target) continue;
        attacked.player.takeGapMs();
        control.player.takeGapMs();
        const before = {
          cpu: cpuMs(attacked),
          other: cpuMs(control),
          ends: attacked.player.ends,
          bans: attacked.bans.count,
        };
        const port = target === "source" ? attacked.source.p2pPort : attacked.viewer.p2pPort;
        const spent = await attack(name, round++, attacked.source, port);
        await pause(AFTER_MS);
        const gapMs = attacked.player.takeGapMs();
        const ourCpuMs = cpuMs(attacked) - before.cpu - (cpuMs(control) - before.other);
        rows.push([
          name,
          target,
          `${gapMs > MAX_GAP_MS ? `**${gapMs}**` : gapMs}`,
          String(control.player.takeGapMs()),
          String(attacked.bans.count - before.bans + attacked.player.ends - before.ends),
          `${(spent.sent / 1e6).toFixed(2)} / ${(spent.received / 1e6).toFixed(2)}`,
          `${Math.round(spent.cpuMs)} / ${Math.round(ourCpuMs)}`,
          `${share(ourCpuMs, spent.cpuMs)}, ${share(spent.received, spent.sent)}`,
          `${Math.round(grownMiB("source") - grownBefore.source)}, ${Math.round(grownMiB("viewer") - grownBefore.viewer)}`,
        ]);
        console.error(rows.at(-1)!.join(" | "));
        if (gapMs > 3_000) await pause(5_000);
      }
    }
    console.log(
      `${cpus().length} × ${cpus()[0]?.model}, load ${loadavg()[1]!.toFixed(1)}; ${strangers} strangers, ${process.versions.bun ? "Bun" : "Node"}\n`,
    );
    const head = [
      "attack",
      "on",
      "gap ms",
      "control ms",
      "honest bans and ends",
      "MB sent / received by strangers",
      "CPU ms strangers / engines, more than the control",
      "our cost for 1 of theirs: CPU, bytes",
      "memory + MiB of source, viewer, more than the control",
    ];
    console.log(markdownTable(head, rows));
  } finally {
    for (const pair of [attacked, control]) {
      pair.viewer.child.kill("SIGKILL");
      await pair.source.stop();
    }
  }
}

/** What the engines spend for each unit that the strangers spend. */
function share(ours: number, theirs: number): string {
  return (Math.max(0, ours) / Math.max(1, theirs)).toFixed(1);
}

interface Pair {
  readonly source: { readonly pid: number };
  readonly viewer: { readonly pid: number };
}

/** CPU time of both, with the input of the source. */
function cpuMs({ source, viewer }: Pair): number {
  return [viewer.pid, ...processGroup(source.pid)].reduce(
    (sum, pid) => sum + 1_000 * usageOf(pid).cpuSeconds,
    0,
  );
}

/** The memory of the engine, without the program that feeds the source. */
function residentMiB(pair: Pair, name: keyof Pair): number {
  const { pid } = pair[name];
  const isEngine = (each: number) =>
    readFileSync(`/proc/${each}/cmdline`, "utf8").split("\0").includes("broadcast");
  const pids = name === "viewer" ? [pid] : processGroup(pid).filter(isEngine);
  return pids.reduce((sum, each) => sum + usageOf(each).residentBytes, 0) / 2 ** 20;
}
