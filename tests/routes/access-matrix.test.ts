import assert from "node:assert/strict";
import { test } from "node:test";
import { CONTROL_METHODS } from "../../routes/control/control.ts";
import { seededRandom } from "../../src/base/random.ts";
import { INTERFACE_METHODS } from "./interface-methods.ts";
import { Matrix, randomCase } from "./matrix/matrix.ts";

/** `npm run matrix` asks them all. */
const SAMPLE = 24_000;
const SEED = 20_261_121;

test("the 38 methods of the interface are there, public and remote as its tables say", () => {
  const flags = (method: { name: string; isPublic: boolean; isRemote: boolean }) =>
    `${method.name} ${method.isPublic} ${method.isRemote}`;
  assert.equal(INTERFACE_METHODS.length, 38);
  const written = new Set(INTERFACE_METHODS.map(({ name }) => name));
  const ours = CONTROL_METHODS.filter(({ name }) => written.has(name)).map(flags);
  assert.deepEqual(ours.sort(), INTERFACE_METHODS.map(flags).sort());
  const names = CONTROL_METHODS.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
});

test("no private method is open to pages of other sites", () => {
  const open = CONTROL_METHODS.filter(({ isPublic, isOpenToPages }) => !isPublic && isOpenToPages);
  assert.deepEqual(
    open.map(({ name }) => name),
    [],
  );
});

test(`access matrix: ${SAMPLE} cases of it, not one wrong allow or deny (seed ${SEED})`, async () => {
  const matrix = await Matrix.open();
  const random = seededRandom(SEED);
  const wrong: string[] = [];
  for (let i = 0; i < SAMPLE && wrong.length < 10; i++) {
    const problem = await matrix.check(...randomCase(random));
    if (problem !== undefined) wrong.push(problem);
  }
  assert.deepEqual(wrong, []);
});
