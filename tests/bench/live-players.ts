// `bun tests/bench/live-players.ts [--players 100 --minutes 10 --kbit 2000]`: connects N players to one engine. Prints its memory each
// half minute, and whether every player gets the bytes that a player at the source gets.
import { createHash } from "node:crypto";
import { parseArgs } from "node:util";
import { startEngine } from "../parts/engine.ts";
import { startBroadcast, watchUrl } from "../parts/live-broadcast.ts";
import { usageOf } from "../parts/process.ts";
import { MarkReader } from "../parts/timed-stream.ts";
import { markdownTable } from "./table.ts";

const { values } = parseArgs({
  options: {
    players: { type: "string", default: "100" },
    minutes: { type: "string", default: "10" },
    kbit: { type: "string", default: "2000" },
  },
});
const PACKET_BYTES = 188;
/** Bytes are hashed and compared in runs of this many marks. */
const RUN_MARKS = 2_048;
const endAt = performance.now() + Number(values.minutes) * 60_000;

/** What one player received: the hash of each run, keyed by the run's last mark. */
type Runs = Map<number, string>;

async function play(url: string): Promise<Runs> {
  const abort = new AbortController();
  setTimeout(() => abort.abort(), endAt - performance.now());
  const runs: Runs = new Map();
  let rest: Uint8Array = new Uint8Array(0);
  let hash: ReturnType<typeof createHash> | undefined;
  try {
    const response = await fetch(url, { signal: abort.signal });
    if (!response.ok || !response.body) throw new Error(`${response.status}`);
    for await (const bytes of response.body) {
      const all = rest.length === 0 ? bytes : new Uint8Array(Buffer.concat([rest, bytes]));
      const whole = all.length - (all.length % PACKET_BYTES);
      let from = 0;
      for (let at = 0; at < whole; at += PACKET_BYTES) {
        const [mark] = new MarkReader().push(all.subarray(at, at + PACKET_BYTES));
        if (!mark || mark.index % RUN_MARKS !== 0) continue;
        hash?.update(all.subarray(from, at));
        if (hash) runs.set(mark.index, hash.digest("hex"));
        hash = createHash("sha1");
        from = at;
      }
      hash?.update(all.subarray(from, whole));
      rest = all.slice(whole);
    }
    throw new Error("the stream ended");
  } catch (thrown) {
    if (!abort.signal.aborted) console.error(`a player stopped: ${thrown}`);
  }
  return runs;
}

const source = await startBroadcast({ timedBytesPerSecond: Number(values.kbit) * 125 });
const engine = await startEngine({ env: { SLUICE_LOG: "error" } });
try {
  const own = play(watchUrl({ url: source.url }, source.magnet));
  const players = Array.from({ length: Number(values.players) }, (_, i) =>
    play(`${watchUrl(engine, source.magnet)}&pid=p${i}`),
  );
  const memory: number[] = [];
  const cpu = usageOf(engine.pid).cpuSeconds;
  const look = setInterval(() => memory.push(usageOf(engine.pid).residentBytes / 2 ** 20), 30_000);
  const expected = await own;
  const got = await Promise.all(players);
  clearInterval(look);
  let [same, other] = [0, 0];
  for (const runs of got) {
    for (const [index, digest] of runs) {
      if (expected.has(index)) expected.get(index) === digest ? same++ : other++;
    }
  }
  const seconds = Number(values.minutes) * 60;
  console.log(
    markdownTable(
      [`${values.players} players, ${values.kbit} kbit/s, ${values.minutes} min`, ""],
      [
        ["memory after each half minute, MiB", memory.map((each) => each.toFixed(0)).join(" ")],
        [
          "growth after the first minute, MiB (aim ≤ 32)",
          (Math.max(...memory.slice(1)) - memory[1]!).toFixed(0),
        ],
        ["runs of bytes the same as at the source; others", `${same}; ${other}`],
        [
          "runs of the player with fewest, and most",
          `${Math.min(...got.map(({ size }) => size))}, ${Math.max(...got.map(({ size }) => size))}`,
        ],
        [
          "CPU of the engine, % of a core",
          ((100 * (usageOf(engine.pid).cpuSeconds - cpu)) / seconds).toFixed(0),
        ],
      ],
    ),
  );
} finally {
  await engine.stop();
  await source.stop();
}
