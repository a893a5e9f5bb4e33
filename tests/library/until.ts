import assert from "node:assert/strict";

/** These turns of the event loop take about a millisecond; later ones wait for a millisecond each, for a slow disk. */
const QUICK_TURNS = 1_000;
const TURNS = 20_000;

/** Lets promises, streams and files work until `holds` returns true; fails if it never does. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  what = "what was waited for",
): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) {
    if (await holds()) return;
    await new Promise<void>((resolve) => {
      if (turn < QUICK_TURNS) setImmediate(resolve);
      else setTimeout(resolve, 1);
    });
  }
  assert.fail(`${what} did not come`);
}
