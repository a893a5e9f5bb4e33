import type { Config } from "../settings/settings.ts";

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
