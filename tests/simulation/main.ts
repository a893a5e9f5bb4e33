import { runLive } from "./live/live-table.ts";
import { runScenario, SCENARIOS } from "./scenarios.ts";

/** `npm run sim -- [scenario …] [--seed N]`: runs the scenarios and prints what the players experienced.
 * `live` with its own options simulates a broadcast instead. */
const words = process.argv.slice(2);
if (words[0] === "live") runLive(words.slice(1));
else runTorrents();

function runTorrents(): void {
  const names: string[] = [];
  let seed = 1;
  for (let i = 0; i < words.length; i++) {
    if (words[i] === "--seed") seed = Number(words[++i]);
    else names.push(words[i]!);
  }

  console.log(`seed ${seed}`);
  const rows: Record<string, Record<string, string | number>> = {};
  for (const name of names.length > 0 ? names : Object.keys(SCENARIOS)) {
    const began = performance.now();
    const report = runScenario(name, seed);
    rows[name] = {
      "first byte ms": report.firstByteMs?.toFixed(0) ?? "never",
      "start ms": report.startMs?.toFixed(0) ?? "never",
      stalls: report.stalls,
      "stalled ms": Math.round(report.stalledMs),
      played: report.isComplete ? "all" : "NOT ALL",
      "waste %": report.wastePercent.toFixed(2),
      bans: report.bans,
      innocent: report.innocentBans,
      wrong: report.wrongPieces,
      unwanted: report.unwantedPieces,
      "seed copies": report.seedCopies.toFixed(2),
      "sim s": report.seconds.toFixed(1),
      events: report.events,
      "real ms": Math.round(performance.now() - began),
    };
  }
  console.table(rows);
}
