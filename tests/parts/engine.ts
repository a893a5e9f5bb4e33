import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type RunningProcess, startProcess } from "./process.ts";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Names the compiled engine, which {@link startEngine} then runs instead of the sources if no other runtime is asked for. */
export const PROGRAM_VARIABLE = "TESTS_PROGRAM";

/** An engine in a process of its own, started as a user starts it. */
export interface EngineProcess extends RunningProcess {
  /** Such as `http://127.0.0.1:40123`. */
  readonly url: string;
  readonly p2pPort: number;
  readonly dataDir: string;
}

/** The command that runs a TypeScript file under the named runtime (default: the one that runs this). */
export function runtimeCommand(
  runtime: RuntimeName = currentRuntime(),
): [command: string, ...args: string[]] {
  if (runtime === "bun") return [process.versions.bun ? process.execPath : "bun"];
  if (runtime === "deno") return ["deno", "run", "-A"];
  return [currentRuntime() === "node" ? process.execPath : currentNode(), "--import", "tsx"];
}

/** The command that runs the engine: the compiled program under Bun if there is one. */
export function engineCommand(runtime: RuntimeName = currentRuntime()): [command: string, ...args: string[]] {
  const program = process.env[PROGRAM_VARIABLE];
  return runtime === "bun" && program !== undefined ? [program] : [...runtimeCommand(runtime), MAIN];
}

/** Returns the path of a Node that is new enough for the engine: the installed one, or one from npm. */
function currentNode(): string {
  return execFileSync(join(ROOT, ".ci/node"), ["-p", "process.execPath"], { encoding: "utf8" }).trim();
}

export type RuntimeName = "bun" | "deno" | "node";

function currentRuntime(): RuntimeName {
  if (process.versions.bun) return "bun";
  return "Deno" in globalThis ? "deno" : "node";
}

/** Returns a TCP port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts the engine on ports and in a data folder of its own; resolves when it answers. */
export async function startEngine(
  options: {
    runtime?: RuntimeName;
    env?: Record<string, string> | ((url: string) => Record<string, string>);
    dataDir?: string;
    /** The HTTP port; a free one by default. */
    httpPort?: number;
  } = {},
): Promise<EngineProcess> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), "sluice-engine-")));
  const [command, ...args] = engineCommand(options.runtime);
  const attempt = async () => {
    const [httpPort, p2pPort] = [options.httpPort ?? (await freePort()), await freePort()];
    const url = `http://127.0.0.1:${httpPort}`;
    const started = startProcess(command, [...args, "serve"], {
      cwd: ROOT,
      env: {
        PATH: `${join(ROOT, "node_modules", ".bin")}:${process.env.PATH}`,
        SLUICE_HTTP_PORT: String(httpPort),
        SLUICE_P2P_PORT: String(p2pPort),
        SLUICE_DATA_DIR: dataDir,
        SLUICE_HOST: "127.0.0.1",
        XDG_CONFIG_HOME: dataDir,
        ...(typeof options.env === "function" ? options.env(url) : options.env),
      },
    });
    await answers(url, started);
    return { started, url, p2pPort };
  };
  // Another program can take a free port before the engine does.
  const { started, url, p2pPort } = await attempt().catch((error) => {
    if (!/port \d+ at \S+ is in use/.test(String(error))) throw error;
    return attempt();
  });
  return {
    ...started,
    url,
    p2pPort,
    dataDir,
    stop: async () => {
      const code = await started.stop();
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true });
      return code;
    },
  };
}

async function answers(url: string, started: RunningProcess): Promise<void> {
  for (let tries = 0; tries < 2400; tries++) {
    if (started.child.exitCode !== null) break;
    try {
      const response = await fetch(`${url}/webui/api/service?method=get_version`);
      await response.arrayBuffer();
      if (response.ok) return;
    } catch {
      // Not listening yet: the loop is bounded, and its failure prints the engine's output.
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  await started.stop();
  throw new Error(`the engine did not answer; its output:\n${started.output()}`);
}

/** Asks for a session as clients do (`format=json`) and returns its answer. */
export async function startSession(
  engine: { url: string },
  output: "getstream" | "manifest.m3u8",
  query: Record<string, string>,
  body?: Uint8Array,
): Promise<{ playback_url: string; stat_url: string; command_url: string; infohash: string }> {
  const address = `${engine.url}/ace/${output}?${new URLSearchParams({ format: "json", ...query })}`;
  const response = await fetch(
    address,
    body === undefined
      ? {}
      : {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ transport_file_data: Buffer.from(body).toString("base64") }),
        },
  );
  const answer = (await response.json()) as { response: never; error: string | null };
  if (answer.error) throw new Error(`no session: ${answer.error}`);
  return answer.response;
}

/** Opens content without a media file: the session is refused, but `/files/…` serves the content from then on. */
export async function nameContent(
  engine: { url: string },
  query: Record<string, string>,
  body?: Uint8Array,
): Promise<void> {
  await startSession(engine, "getstream", query, body).catch((error: Error) => {
    if (!error.message.includes("media format is not supported")) throw error;
  });
}
