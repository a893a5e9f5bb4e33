import { parseArgs } from "node:util";
import { ATTACKS } from "./hostile-peer.ts";
import { type LiveReport, type LiveScenario, LiveWorld, SMALL } from "./live-world.ts";

/** The numbers of a scenario, by option. */
const NUMBERS: Record<string, keyof LiveScenario> = {
  peers: "peers",
  seed: "seed",
  seconds: "seconds",
  stripes: "stripes",
  "piece-ms": "pieceMs",
  "lag-ms": "lagMs",
  "bytes-per-second": "bytesPerSecond",
  churn: "churnPercent",
  crowd: "crowd",
  "black-holes": "blackHolePercent",
  "hole-upload": "blackHoleUpload",
  nat: "natPercent",
  punch: "punchPercent",
  "source-upload": "sourceUpload",
  loopback: "loopback",
  attackers: "attackers",
  "attack-seconds": "attackSeconds",
  loss: "lossPercent",
  browsers: "browsers",
};

/** Switches: 1 or 0. */
const FLAGS: Record<string, keyof LiveScenario> = {
  "attacks-source": "attacksSource",
  "attacks-early": "attacksEarly",
};

const ATTACK_NAMES = [...ATTACKS, "replay", "mixed"] as const;

const DEFAULTS = { ...SMALL, seconds: 30 };

/** The options of {@link prepareLive} with their defaults, for `--help`. */
export const LIVE_HELP = [
  "--seeds 1",
  ...Object.entries(NUMBERS).map(([option, name]) => `--${option} ${DEFAULTS[name] ?? "N"}`),
  ...Object.keys(FLAGS).map((option) => `--${option} 0|1`),
  `--attack ${ATTACK_NAMES.join("|")}`,
].join("\n  ");

/** `npm run sim -- live …`: returns a function that simulates one broadcast for each seed and prints what its viewers experienced. Throws
 * if an option is wrong. */
export function prepareLive(words: readonly string[]): () => void {
  const names = [...Object.keys(NUMBERS), ...Object.keys(FLAGS), "seeds", "attack"];
  const options = Object.fromEntries(names.map((name) => [name, { type: "string" }] as const));
  const { values } = parseArgs({ args: [...words], options });
  const scenario: Record<string, unknown> = { ...DEFAULTS };
  const { seeds = "1", attack, ...others } = values;
  if (attack !== undefined) {
    scenario.attack = ATTACK_NAMES.find((name) => name === attack);
    if (!scenario.attack) throw new Error(`--attack: expected one of ${ATTACK_NAMES.join(", ")}`);
  }
  for (const [option, text = ""] of Object.entries(others)) {
    const value = numberOption(option, text);
    if (option in FLAGS) scenario[FLAGS[option]!] = value === 1;
    else scenario[NUMBERS[option]!] = value;
  }
  const count = numberOption("seeds", seeds);
  return () => runLive(scenario as unknown as LiveScenario, count);
}

/** Returns the number that an option has. Throws if its text is none. */
export function numberOption(option: string, text: string): number {
  const value = Number(text);
  if (Number.isNaN(value)) throw new Error(`--${option}: expected a number, not "${text}"`);
  return value;
}

function runLive(scenario: LiveScenario, seeds: number): void {
  const rows: Record<string, Record<string, string | number>> = {};
  for (let i = 0; i < seeds; i++) {
    const seed = scenario.seed + i;
    const began = performance.now();
    const report = new LiveWorld({ ...scenario, seed }).run();
    rows[`seed ${seed}`] = rowOf(report, scenario.peers, performance.now() - began);
  }
  // One column for each seed.
  const figures = Object.keys(Object.values(rows)[0] ?? {});
  console.table(
    Object.fromEntries(
      figures.map((name) => [
        name,
        Object.fromEntries(Object.entries(rows).map(([seed, row]) => [seed, row[name]!])),
      ]),
    ),
  );
}

function rowOf(report: LiveReport, peers: number, realMs: number): Record<string, string | number> {
  const { startMs, firstMs, delayMs } = report;
  const three = (h: typeof startMs, last: number) =>
    `${h.quantile(0.5)} / ${h.quantile(0.95)} / ${h.quantile(last)}`;
  return {
    "first piece ms p50/p95/p99": three(firstMs, 0.99),
    "0.5 s of media ms p50/p95/p99": three(startMs, 0.99),
    "joined / never started": `${report.joined} / ${report.neverStarted}`,
    "delay ms p50/p95/p99.9": three(delayMs, 0.999),
    "chunks on time %": (100 * (1 - report.missedChunks / Math.max(1, report.expectedChunks))).toFixed(5),
    "missed by those there before": report.oldMissedChunks,
    "viewers hit %": (100 * report.hitShare).toFixed(2),
    "source upload x": report.sourceCopies.toFixed(2),
    "all source upload x": report.sourceUpload.toFixed(2),
    "offload %": (100 * (1 - report.sourceCopies / peers)).toFixed(2),
    "duplicates %": (100 * report.duplicateShare).toFixed(2),
    "control %": (100 * report.controlShare).toFixed(2),
    "depth mean / max": `${report.meanDepth.toFixed(1)} / ${report.maxDepth}`,
    "bans / innocent / wrong": `${report.banned} / ${report.innocentBans} / ${report.wrongPieces}`,
    "worst start / stall ms": `${Math.round(report.worstStartMs)} / ${Math.round(report.worstStallMs)}`,
    events: report.events,
    "trace hash": report.traceHash.toString(16),
    "real s": (realMs / 1_000).toFixed(1),
  };
}
