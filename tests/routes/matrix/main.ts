import { VERBS, type Verb } from "./dimensions.ts";
import { CASE_COUNT, Matrix } from "./matrix.ts";

/** `npm run matrix -- [VERB …]`: checks every case, for GET or the given verbs. */
const named = process.argv.slice(2).map((word) => word.toUpperCase());
const unknown = named.find((word) => !VERBS.some((verb) => verb === word));
if (unknown !== undefined) throw new Error(`expected one or more of ${VERBS.join(", ")}, got ${unknown}`);
const verbs = named.length === 0 ? (["GET"] as const) : (named as Verb[]);

const matrix = await Matrix.open();
const startedMs = performance.now();
let [checked, wrong] = [0, 0];
for (const verb of verbs) {
  for (let index = 0; index < CASE_COUNT; index++) {
    const problem = await matrix.check(index, verb);
    checked++;
    if (problem !== undefined && ++wrong <= 50) console.error(problem);
    if (checked % 500_000 === 0) console.log(`${checked} of ${CASE_COUNT * verbs.length}, ${wrong} wrong`);
  }
}
console.log(
  `${checked} requests in ${((performance.now() - startedMs) / 1000).toFixed(0)} s, ${wrong} wrong`,
);
process.exit(wrong === 0 ? 0 : 1);
