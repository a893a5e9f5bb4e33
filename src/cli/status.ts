import { readinessSchema } from "../../routes/operations.ts";
import type { Config } from "../settings/settings.ts";
import type { Arguments } from "./args.ts";
import type { Context } from "./context.ts";
import { askEngine, urlOf } from "./running-engine.ts";

/** A healthy engine answers within milliseconds; health checks of containers wait about this long. */
const ANSWER_MS = 5_000;
/** Exit code if no engine answers. */
const NO_ENGINE = 3;

/**
 * `sluice status`: shows whether the running engine can serve players. Resolves to the exit code: 0 if it is ready, 1 if a check
 * fails, 3 if no engine answers.
 */
export async function status({ stdout, stderr }: Context, config: Config, args: Arguments): Promise<number> {
  const answer = await askEngine(config, "readyz", ANSWER_MS);
  const read = readinessSchema.safeParse(answer?.json);
  if (!read.success) {
    stderr.write(`No engine answers at ${urlOf(config)}. Start it with: sluice\n`);
    return NO_ENGINE;
  }
  const { data } = read;
  if (args.flags.has("json")) stdout.write(`${JSON.stringify(data)}\n`);
  else {
    const lines = data.checks.map(({ name, ok, text }) => `  ${ok ? "ok  " : "fail"}  ${name}: ${text}\n`);
    stdout.write(`The engine at ${urlOf(config)} is ${data.status}.\n${lines.join("")}`);
  }
  return data.status === "ready" ? 0 : 1;
}
