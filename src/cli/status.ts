import { readinessSchema } from "../../routes/operations.ts";
import type { Config } from "../settings/settings.ts";
import type { Arguments } from "./args.ts";
import type { Context } from "./context.ts";

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

/** No answer of an engine is longer. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** Returns the URL of the engine that these settings describe, on this machine, with a `/` at its end. */
export function urlOf({ host, httpPort }: Pick<Config, "host" | "httpPort">): string {
  const isEverywhere = host === "0.0.0.0" || host === "::";
  const name = isEverywhere ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return `http://${name}:${httpPort}/`;
}

/**
 * Requests JSON from the running engine. `path` has no `/` at its start. Resolves to undefined if no engine answers within
 * `timeoutMs`, or if the answer is no JSON.
 */
export async function askEngine(
  config: Config,
  path: string,
  timeoutMs: number,
): Promise<{ readonly status: number; readonly json: unknown } | undefined> {
  try {
    const response = await fetch(`${urlOf(config)}${path}`, {
      redirect: "error",
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (Number(response.headers.get("content-length") ?? 0) > MAX_ANSWER_BYTES) {
      await response.body?.cancel();
      return undefined;
    }
    return { status: response.status, json: await response.json() };
  } catch {
    return undefined;
  }
}
