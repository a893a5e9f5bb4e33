import { VERBS, type Verb } from "./dimensions.ts";
import { CASE_COUNT, Matrix } from "./matrix.ts";

/** `npm run matrix -- [VERB …]`: every case there is, for GET or the verbs that are named. */
const named = process.argv.slice(2).map((word) => word.toUpperCase());
const unknown = named.find((word) => !VERBS.some((verb) => verb === word));
if (unknown !== undefined) throw new Error(`expected some of ${VERBS.join(", ")}, got ${unknown}`);
const verbs = named.length === 0 ? (["GET"] as const) : (named as Verb[]);

const matrix = await Matrix.open();
const startedMs = performance.now();
let [asked, wrong] = [0, 0];
for (const verb of verbs) {
  for (let index = 0; index < CASE_COUNT; index++) {
    const problem = await matrix.check(index, verb);
    asked++;
    if (problem !== undefined && ++wrong <= 50) console.error(problem);
    if (asked % 500_000 === 0) console.log(`${asked} of ${CASE_COUNT * verbs.length}, ${wrong} wrong`);
  }
}
console.log(`${asked} requests in ${((performance.now() - startedMs) / 1000).toFixed(0)} s, ${wrong} wrong`);
process.exit(wrong === 0 ? 0 : 1);
