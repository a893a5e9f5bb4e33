import assert from "node:assert/strict";

/** Lets promises and streams run until `holds` returns true; fails if it never does. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  what = "what was waited for",
): Promise<void> {
  for (let turn = 0; turn < 50_000; turn++) {
    if (await holds()) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  assert.fail(`${what} did not come`);
}
