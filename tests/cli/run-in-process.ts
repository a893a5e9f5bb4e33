import { PassThrough } from "node:stream";
import { runtime } from "#runtime";
import { run } from "../../src/cli/run.ts";
import { NO_REACH_ENVIRONMENT } from "../parts/no-reach.ts";

/** What a run of the program wrote, and its exit code. */
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command as `main.ts` would, with `input` at its standard input, or typed where `isTyped`. */
export async function runInProcess(
  args: readonly string[],
  options: { readonly dataDir: string; readonly input?: string; readonly isTyped?: boolean },
): Promise<Ran> {
  const written = { out: "", err: "" };
  const stdin = new PassThrough();
  // One key after another, as people type, and the next line only when it is asked for.
  const keys = [...(options.input ?? "")];
  if (options.isTyped) {
    Object.assign(stdin, {
      isTTY: true,
      setRawMode(isRaw: boolean) {
        while (isRaw && keys.length > 0) {
          const key = keys.shift()!;
          stdin.write(key);
          if (key === "\r" || key === "\x03") break;
        }
        return stdin;
      },
    });
  } else {
    stdin.end(options.input ?? "");
  }
  const into = (name: "out" | "err") => ({
    write(text: string) {
      written[name] += text;
      return true;
    },
  });
  const code = await run({
    runtime,
    webAssets: {},
    args,
    environment: {
      ...NO_REACH_ENVIRONMENT,
      SLUICE_DATA_DIR: options.dataDir,
      XDG_CONFIG_HOME: options.dataDir,
    },
    stdin: stdin as unknown as NodeJS.ReadStream,
    stdout: into("out") as unknown as NodeJS.WriteStream,
    stderr: into("err") as unknown as NodeJS.WriteStream,
  });
  return { code, ...written };
}
