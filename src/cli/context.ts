import type { Runtime } from "../runtime/contract.ts";
import type { WebAsset } from "../web/assets.ts";

/** What `main.ts` hands to the command line: everything of the process that the commands touch. */
export interface Context {
  readonly runtime: Runtime;
  readonly webAssets: Readonly<Record<string, WebAsset>>;
  /** The arguments after the program's name. */
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}
