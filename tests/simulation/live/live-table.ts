import { ATTACKS } from "./hostile-peer.ts";
import { type LiveReport, type LiveScenario, LiveWorld, SMALL } from "./live-world.ts";

const NUMBERS: Record<string, keyof LiveScenario> = {
  "--peers": "peers",
  "--seed": "seed",
  "--seconds": "seconds",
  "--stripes": "stripes",
  "--piece-ms": "pieceMs",
  "--lag-ms": "lagMs",
  "--bytes-per-second": "bytesPerSecond",
  "--churn": "churnPercent",
  "--crowd": "crowd",
  "--black-holes": "blackHolePercent",
  "--hole-upload": "blackHoleUpload",
  "--nat": "natPercent",
  "--punch": "punchPercent",
  "--source-upload": "sourceUpload",
  "--loopback": "loopback",
  "--attackers": "attackers",
  "--attack-seconds": "attackSeconds",
  "--loss": "lossPercent",
  "--browsers": "browsers",
};

const FLAGS: Record<string, keyof LiveScenario> = {
  "--attacks-source": "attacksSource",
  "--attacks-early": "attacksEarly",
};

/** `npm run sim -- live …`: simulates one broadcast for each seed and prints what its viewers experienced. */
export function runLive(words: readonly string[]): void {
  const scenario: Record<string, unknown> = { ...SMALL, seconds: 30, natPercent: 30 };
  let seeds = 1;
  for (let i = 0; i < words.length; i += 2) {
    if (words[i] === "--attack") {
      scenario.attack = ([...ATTACKS, "replay", "mixed"] as const).find((attack) => attack === words[i + 1]);
      if (!scenario.attack) throw new Error(`--attack: expected one of ${ATTACKS.join(" ")} mixed`);
      continue;
    }
    const flag = FLAGS[words[i]!];
    if (flag !== undefined) {
      scenario[flag] = words[i + 1] === "1";
      continue;
    }
    const name = NUMBERS[words[i]!];
    const value = Number.parseFloat(words[i + 1] ?? "");
    if (Number.isNaN(value)) throw new Error(`${words[i]}: expected a number, not ${words[i + 1]}`);
    if (words[i] === "--seeds") seeds = value;
    else if (name === undefined)
      throw new Error(`${words[i]}: expected one of ${Object.keys(NUMBERS).join(" ")} --seeds`);
    else scenario[name] = value;
  }
  const rows: Record<string, Record<string, string | number>> = {};
  for (let i = 0; i < seeds; i++) {
    const seed = (scenario.seed as number) + i;
    const began = performance.now();
    const report = new LiveWorld({ ...(scenario as unknown as LiveScenario), seed }).run();
    rows[`seed ${seed}`] = rowOf(report, scenario.peers as number, performance.now() - began);
  }
  // One column for each seed.
  const names = Object.keys(Object.values(rows)[0] ?? {});
  console.table(
    Object.fromEntries(
      names.map((name) => [
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
