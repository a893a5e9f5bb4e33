import type { Runtime } from "../runtime/contract.ts";
import type { WebAssets } from "../web/assets.ts";

/** Everything of the process that the commands use; `main.ts` provides it. */
export interface Context {
  readonly runtime: Runtime;
  readonly webAssets: WebAssets;
  /** The arguments after the program name. */
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}
