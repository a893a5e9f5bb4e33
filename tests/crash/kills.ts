import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { seededRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/runtime/open-store.ts";
import { areSame, History, recordsOf } from "./history.ts";

/** More commits than a life has time for. */
const MANY = 100_000;
/** A life ends within so many acknowledged commits, and a moment that is no multiple of anything. */
const LONGEST_LIFE_COMMITS = 60;
const LONGEST_MOMENT_MS = 3;
/** Some are killed while they start, on what the one before left. */
const EARLY_SHARE = 0.25;
const LONGEST_START_MS = 150;
const WRITER = fileURLToPath(new URL("writer.ts", import.meta.url));

/** What came of many kills. */
export interface KillFigures {
  readonly kills: number;
  readonly acknowledged: number;
  /** Commits that were durable and not yet told when the kill came. */
  readonly inFlight: number;
}

/**
 * Kills a process that commits (SIGKILL) again and again, each time on the same store: nothing acknowledged may be lost,
 * none may be there by half, and the next start must do. Throws with the seed where one of these does not hold.
 */
export async function killOften(
  folder: string,
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
    const life = await liveAndDie([...command, WRITER, folder, String(seed), String(MANY)], done, random);
    const label = `seed ${seed}, kill ${kill}, after commit ${life.last}`;
    assert.deepEqual(life.complaints, [], label);
    assert.ok(
      life.begun === undefined || life.begun === done || life.begun === done + 1,
      `${label}, begun ${life.begun}`,
    );
    if (life.begun === done + 1) inFlight++;
    acknowledged += life.last - (life.begun ?? life.last);
    done = life.last;
    // The next life finds what this one left, unless the last look is now.
    if (random() < EARLY_SHARE && kill + 1 < kills) continue;
    const store = await openStore({
      folder,
      kind: "sqlite",
      shared: false,
      warn: (text) => assert.fail(`${label}: ${text}`),
    });
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

/** Starts the writer, lets it commit for a while, and kills it. */
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
