import { parseArgs } from "node:util";
import { LIVE_HELP, numberOption, prepareLive } from "./live/live-table.ts";
import { runScenario, SCENARIOS, scenarioNamed } from "./scenarios.ts";

const HELP = `npm run sim -- [scenario …] [--seed N]: runs scenarios of torrents and prints what the players experienced.
  ${Object.keys(SCENARIOS).join(" ")}

npm run sim -- live [option …]: simulates a live broadcast. Options and their defaults:
  ${LIVE_HELP}`;

const words = process.argv.slice(2);
if (words.includes("--help")) console.log(HELP);
else prepared()?.();

/** Returns the run that the command line names. If an option is wrong, prints why. */
function prepared(): (() => void) | undefined {
  try {
    return words[0] === "live" ? prepareLive(words.slice(1)) : prepareTorrents();
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`);
    process.exitCode = 2;
    return undefined;
  }
}

function prepareTorrents(): () => void {
  const { values, positionals } = parseArgs({
    args: words,
    allowPositionals: true,
    options: { seed: { type: "string", default: "1" } },
  });
  const names = positionals.length > 0 ? positionals : Object.keys(SCENARIOS);
  for (const name of names) scenarioNamed(name);
  const seed = numberOption("seed", values.seed);
  return () => runTorrents(names, seed);
}

function runTorrents(names: readonly string[], seed: number): void {
  console.log(`seed ${seed}`);
  const rows: Record<string, Record<string, string | number>> = {};
  for (const name of names) {
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
