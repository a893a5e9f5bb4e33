import { PassThrough } from "node:stream";
import { runtime } from "#runtime";
import type { Context } from "../../src/cli/context.ts";
import { run } from "../../src/cli/run.ts";
import { NO_REACH_ENVIRONMENT } from "../parts/no-reach.ts";

/** Output and exit code of a run of the program. */
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  readonly dataDir: string;
  /** Text for standard input. */
  readonly input?: string;
  /** Standard input is a terminal. */
  readonly isTyped?: boolean;
}

/** Runs a command as `main.ts` does, in this process. */
export async function runInProcess(args: readonly string[], options: RunOptions): Promise<Ran> {
  const { context, written } = contextOf(args, options);
  const code = await run(context);
  return { code, ...written };
}

/** The context of a command, and what it has written so far. */
export function contextOf(args: readonly string[], options: RunOptions) {
  const written = { out: "", err: "" };
  const into = (name: "out" | "err") =>
    ({
      write(text: string) {
        written[name] += text;
        return true;
      },
    }) as unknown as NodeJS.WriteStream;
  const context: Context = {
    runtime,
    webAssets: async () => ({}),
    args,
    environment: {
      ...NO_REACH_ENVIRONMENT,
      SLUICE_DATA_DIR: options.dataDir,
      XDG_CONFIG_HOME: options.dataDir,
    },
    stdin: inputOf(options),
    stdout: into("out"),
    stderr: into("err"),
  };
  return { context, written };
}

function inputOf({ input = "", isTyped = false }: RunOptions): NodeJS.ReadStream {
  const stdin = new PassThrough();
  if (!isTyped) {
    stdin.end(input);
    return stdin as unknown as NodeJS.ReadStream;
  }
  // Keys arrive one at a time, and the next line only after the program asks for it.
  const keys = [...input];
  const setRawMode = (isRaw: boolean) => {
    while (isRaw && keys.length > 0) {
      const key = keys.shift()!;
      stdin.write(key);
      if (key === "\r" || key === "\x03") break;
    }
    return stdin;
  };
  return Object.assign(stdin, { isTTY: true, setRawMode }) as unknown as NodeJS.ReadStream;
}
