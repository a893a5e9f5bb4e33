import type { Log } from "../base/log.ts";
import { createAccessControl } from "../library/access-control.ts";
import type { Config } from "../settings.ts";
import type { Arguments } from "./args.ts";
import type { Context } from "./context.ts";
import { withLibraryStore } from "./library-store.ts";
import { usageError } from "./usage.ts";

/** `sluice token show|renew`: writes the access token to standard output. Resolves to the exit code. */
export async function token(context: Context, config: Config, log: Log, args: Arguments): Promise<number> {
  const { runtime, stdout } = context;
  const [action, ...rest] = args.operands;
  if ((action !== "show" && action !== "renew") || rest.length > 0)
    throw usageError("token: expected show or renew");
  const fixedToken = config.accessToken === "" ? undefined : config.accessToken;
  const text = await withLibraryStore(runtime, config, log, async (store) => {
    const access = await createAccessControl({ store, randomBytes: runtime.randomBytes, fixedToken });
    return action === "show" ? access.token() : access.renewToken();
  });
  stdout.write(`${text}\n`);
  return 0;
}
