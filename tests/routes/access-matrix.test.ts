import assert from "node:assert/strict";
import { test } from "node:test";
import { CONTROL_SECTIONS } from "../../routes/control/control.ts";
import { seededRandom } from "../seeded-random.ts";
import { INTERFACE_METHODS } from "./interface-methods.ts";
import { Matrix, randomCase } from "./matrix/matrix.ts";

const METHODS = CONTROL_SECTIONS.flatMap(({ methods }) => methods);

/** `npm run matrix` checks all cases. */
const SAMPLE = 24_000;
const SEED = 20_261_121;

test("control methods: all 38 methods of the interface exist, with its public and remote flags", () => {
  const flags = (method: { name: string; isPublic: boolean; isRemote: boolean }) =>
    `${method.name} ${method.isPublic} ${method.isRemote}`;
  assert.equal(INTERFACE_METHODS.length, 38);
  const written = new Set(INTERFACE_METHODS.map(({ name }) => name));
  const ours = METHODS.filter(({ name }) => written.has(name)).map(flags);
  assert.deepEqual(ours.sort(), INTERFACE_METHODS.map(flags).sort());
  const names = METHODS.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
});

test("control methods: no private method is open to pages of other sites", () => {
  const open = METHODS.filter(({ isPublic, isCrossOrigin }) => !isPublic && isCrossOrigin);
  assert.deepEqual(
    open.map(({ name }) => name),
    [],
  );
});

test(`access matrix: ${SAMPLE} random cases are allowed or denied as the oracle expects (seed ${SEED})`, async () => {
  const matrix = await Matrix.open();
  const random = seededRandom(SEED);
  const wrong: string[] = [];
  for (let i = 0; i < SAMPLE && wrong.length < 10; i++) {
    const problem = await matrix.check(...randomCase(random));
    if (problem !== undefined) wrong.push(problem);
  }
  assert.deepEqual(wrong, []);
});
