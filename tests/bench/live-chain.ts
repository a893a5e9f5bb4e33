// `bun tests/bench/live-chain.ts [--hops 6 --seconds 20]`, as root: a source and engines in network namespaces, each of which
// reaches only the one before and the one behind it. How late a byte is after each hop, with a stream of 8 Mbit/s.
import { parseArgs } from "node:util";
import { engineCommand, freePort } from "../parts/engine.ts";
import { startBroadcast } from "../parts/live-broadcast.ts";
import { run, startProcess } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { markdownTable } from "./table.ts";

const { values } = parseArgs({
  options: { hops: { type: "string", default: "6" }, seconds: { type: "string", default: "20" } },
});
const hops = Number(values.hops);
const spaces = Array.from({ length: hops + 1 }, (_, i) => `sluice-c${process.pid}-${i}`);
const [command, ...runtimeArgs] = engineCommand();

/** The address of the end towards the next, or the one before, of the link between `i` and `i + 1`. */
const nearEnd = (i: number) => `10.77.${i}.1`;
const farEnd = (i: number) => `10.77.${i}.2`;

async function ip(...args: string[]): Promise<void> {
  await run("ip", args);
}

async function wire(): Promise<void> {
  for (const [i, space] of spaces.entries()) {
    await ip("netns", "add", space);
    await ip("-n", space, "link", "set", "lo", "up");
    if (i === 0) continue;
    const [near, far] = [`c${i}a`, `c${i}b`];
    await ip("-n", spaces[i - 1]!, "link", "add", near, "type", "veth", "peer", "name", far, "netns", space);
    await ip("-n", spaces[i - 1]!, "addr", "add", `${nearEnd(i)}/24`, "dev", near);
    await ip("-n", space, "addr", "add", `${farEnd(i)}/24`, "dev", far);
    await ip("-n", spaces[i - 1]!, "link", "set", near, "up");
    await ip("-n", space, "link", "set", far, "up");
  }
}

const within = (i: number) => ["ip", "netns", "exec", spaces[i]!];
const stops: (() => Promise<unknown>)[] = [];
const scratch = await tempFolder("chain");
try {
  await wire();
  const p2pPort = await freePort();
  const source = await startBroadcast({ timedBytesPerSecond: 1_000_000 }, { prefix: within(0), p2pPort });
  stops.push(() => source.stop());
  const urls: string[] = [];
  for (let i = 1; i <= hops; i++) {
    // Ports cannot collide: each engine has its own network namespace.
    const engine = startProcess("ip", [...within(i).slice(1), command, ...runtimeArgs, "serve"], {
      env: {
        SLUICE_P2P_PORT: String(p2pPort),
        SLUICE_LOG: "error",
        SLUICE_STORE: "memory",
        SLUICE_DATA_DIR: `${scratch.path}/${i}`,
      },
    });
    stops.push(() => engine.stop());
    await engine.line((line) => line.includes("Open"));
    const magnet = `magnet:?xt=urn:btih:${source.infohash}&x.pe=${nearEnd(i)}:${p2pPort}`;
    urls.push(`http://127.0.0.1:6878/ace/getstream?magnet=${encodeURIComponent(magnet)}`);
  }
  const watches = [];
  for (const [i, url] of urls.entries()) {
    const left = Number(values.seconds) + 2 * (hops - i);
    const args = [...within(i + 1).slice(1), command, ...runtimeArgs, "tests/parts/live-watch.ts"];
    watches.push(startProcess("ip", [...args, String(left), url]));
    await new Promise((resolve) => setTimeout(resolve, 2_000));
  }
  const rows: string[][] = [];
  for (const [i, watch] of watches.entries()) {
    const seen = JSON.parse(await watch.line((line) => line.startsWith("{"), 120_000)) as Record<
      string,
      number
    >;
    const figures = ["p50", "p95", "p999", "missing", "firstByteMs", "secondMs"].map((name) =>
      String(Math.round(seen[name] ?? Number.NaN)),
    );
    rows.push([String(i + 1), ...figures]);
  }
  console.log(
    markdownTable(
      ["hops", "delay p50 ms", "p95 (aim ≤ 1500 at 6)", "p99.9", "missing", "first byte", "a second"],
      rows,
    ),
  );
} finally {
  for (const stop of stops.reverse()) await stop().catch(() => {});
  await scratch.remove();
  for (const space of spaces) await ip("netns", "del", space).catch(() => {});
}
