import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import {
  bool,
  integer,
  integerList,
  oneOf,
  parameterError,
  required,
  text,
  texts,
} from "../../routes/control/params.ts";

/** Returns the parsed value of a parameter, or its error. */
function read(type: z.ZodType, ...values: readonly string[]): unknown {
  const result = z.object({ it: type }).safeParse(values.length > 0 ? { it: values } : {});
  if (result.success) return result.data.it;
  const { code, message } = parameterError(result.error);
  return `${code} ${message}`;
}

/** Type, values, and the expected result. */
const CASES: readonly (readonly [string, z.ZodType, readonly string[], unknown])[] = [
  ["text", text, [], undefined],
  ["text", text, [" a "], "a"],
  ["text", text, ["", "  ", "b", "c"], "b"],
  ["integer", integer, ["-1"], -1],
  ["integer", integer, ["007"], 7],
  ["integer", integer, [""], undefined],
  ["integer", integer, ["1.5"], 'bad_parameter it: expected a whole number, got "1.5"'],
  ["integer", integer, ["1e3"], 'bad_parameter it: expected a whole number, got "1e3"'],
  ["integer", integer, ["0x10"], 'bad_parameter it: expected a whole number, got "0x10"'],
  [
    "integer",
    integer,
    ["9".repeat(16)],
    `bad_parameter it: expected a whole number, got "${"9".repeat(16)}"`,
  ],
  [
    "integer",
    integer,
    ["x".repeat(200)],
    `bad_parameter it: expected a whole number, got "${"x".repeat(60)}…"`,
  ],
  ["bool", bool, ["1"], true],
  ["bool", bool, ["True"], true],
  ["bool", bool, ["0"], false],
  ["bool", bool, ["false"], false],
  ["bool", bool, ["yes"], 'bad_parameter it: expected 1 or 0, got "yes"'],
  ["oneOf", oneOf(["brief", "full"]), ["FULL"], "full"],
  ["oneOf", oneOf(["brief", "full"]), ["all"], 'bad_parameter it: expected brief or full, got "all"'],
  ["texts", texts, [], []],
  ["texts", texts, ["a", "", "b"], ["a", "b"]],
  ["integerList", integerList, [], []],
  ["integerList", integerList, ["1,2", "3"], [1, 2, 3]],
  ["integerList", integerList, ["1", "x"], 'bad_parameter it: expected whole numbers, got "1,x"'],
  ["required text", required(text), [], "missing_parameter it: expected text"],
  ["required integer", required(integer), ["  "], "missing_parameter it: expected a whole number"],
  ["required integer", required(integer), ["x"], 'bad_parameter it: expected a whole number, got "x"'],
  ["required integer", required(integer), ["5"], 5],
  ["required bool", required(bool), ["0"], false],
];

test("params: each type parses its values, an empty parameter counts as absent, and errors name parameter and value", () => {
  for (const [name, type, values, expected] of CASES)
    assert.deepEqual(read(type, ...values), expected, `${name} of ${JSON.stringify(values)}`);
});

test("params: unknown parameters are ignored", () => {
  const schema = z.object({ a: required(integer) });
  assert.deepEqual(schema.parse({ a: ["1"], ".mp4": [""], __proto__: ["2"], constructor: ["3"] }), { a: 1 });
});

test("required: keeps the description of the parameter", () => {
  const meta = required(integer.describe("An item")).meta();
  assert.equal(meta?.type, "integer");
  assert.equal(meta?.description, "An item");
});
