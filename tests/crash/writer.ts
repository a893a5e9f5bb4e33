import { writeSync } from "node:fs";
import { History, openPlace } from "./history.ts";

/**
 * A process that commits continuously from the store's last commit, and prints the number of each commit once it is
 * acknowledged. Arguments: folder or URL of the store, seed, last commit. Prints a rejected commit as `failed <number>` and does not repeat
 * it; the next one has its number.
 */
const [place = "", seed = "1", last = "0"] = process.argv.slice(2);
const say = (line: string) => writeSync(1, `${line}\n`);
const history = new History(Number(seed));
const store = await openPlace(place, (message) => say(`warned ${message}`)).catch((error: unknown) => {
  say(`refused ${String(error)}`);
  process.exit(1);
});
const begun = Number((await store.get("meta/count").catch(() => 0)) ?? 0);
say(`begun ${begun}`);
for (let number = begun + 1, tries = 0; number <= Number(last) && tries < Number(last) * 2; tries++) {
  try {
    await store.commit(history.change(number));
    say(String(number));
    number++;
  } catch (error) {
    say(`failed ${number} ${String(error)}`);
  }
}
await store.close().catch((error: unknown) => say(`not closed ${String(error)}`));
say("closed");
process.exit(0);
