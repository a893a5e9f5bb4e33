import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { seededRandom } from "../seeded-random.ts";
import { areSame, History, openPlace, recordsOf } from "./history.ts";

/** More commits than a process has time for. */
const MANY = 100_000;
/** A process is killed within this many acknowledged commits, plus a random delay. */
const LONGEST_LIFE_COMMITS = 60;
const LONGEST_MOMENT_MS = 3;
/** Share of processes that are killed while they start. */
const EARLY_SHARE = 0.25;
const LONGEST_START_MS = 150;
const WRITER = fileURLToPath(new URL("writer.ts", import.meta.url));

/** Results of many kills. */
export interface KillFigures {
  readonly kills: number;
  readonly acknowledged: number;
  /** Commits that were durable but not acknowledged when the process was killed. */
  readonly inFlight: number;
}

/**
 * Kills a committing process (SIGKILL) repeatedly on the same store, in a folder or at a URL: no acknowledged commit may be lost,
 * none may be partial, and the next start must succeed. Throws with the seed if a condition does not hold.
 */
export async function killOften(
  place: string,
  command: readonly [string, ...string[]],
  kills: number,
  seed: number,
): Promise<KillFigures> {
  const random = seededRandom(seed);
  const history = new History(seed);
  let done = 0;
  let acknowledged = 0;
  let inFlight = 0;
  for (let kill = 0; kill < kills; kill++) {
    const life = await liveAndDie([...command, WRITER, place, String(seed), String(MANY)], done, random);
    const label = `seed ${seed}, kill ${kill}, after commit ${life.last}`;
    assert.deepEqual(life.complaints, [], label);
    assert.ok(
      life.begun === undefined || life.begun === done || life.begun === done + 1,
      `${label}, begun ${life.begun}`,
    );
    if (life.begun === done + 1) inFlight++;
    acknowledged += life.last - (life.begun ?? life.last);
    done = life.last;
    // The next process then starts from the state that this one left.
    if (random() < EARLY_SHARE && kill + 1 < kills) continue;
    const store = await openPlace(place, (text) => assert.fail(`${label}: ${text}`));
    const there = await recordsOf(store);
    await store.close();
    const count = Number(there.get("meta/count") ?? 0);
    assert.ok(
      count === life.last || count === life.last + 1,
      `${label}: commit ${count} is the last one there`,
    );
    assert.ok(areSame(there, history.after(count)), `${label}: the records are not those of commit ${count}`);
    if (count > life.last) inFlight++;
    done = count;
  }
  return { kills, acknowledged, inFlight };
}

/** Starts the writer and kills it after a while. */
async function liveAndDie([program, ...args]: string[], done: number, random: () => number) {
  const child = spawn(program!, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("close", resolve));
  const complaints: string[] = [];
  const early =
    random() < EARLY_SHARE ? setTimeout(() => child.kill("SIGKILL"), random() * LONGEST_START_MS) : undefined;
  let left = Math.floor(random() * LONGEST_LIFE_COMMITS);
  let last = done;
  let begun: number | undefined;
  const lines = createInterface({ input: child.stdout });
  lines.on("line", (line) => {
    const [word, number] = line.split(" ");
    if (word === "begun") begun = last = Number(number);
    else if (/^\d+$/.test(line)) last = Number(line);
    else complaints.push(line);
    if (left-- === 0) setTimeout(() => child.kill("SIGKILL"), random() * LONGEST_MOMENT_MS);
  });
  await ended;
  clearTimeout(early);
  lines.close();
  return { last, begun, complaints };
}
