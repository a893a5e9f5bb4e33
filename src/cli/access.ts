import type { Log } from "../base/log.ts";
import { createAccessControl } from "../library/access-control.ts";
import { createAccounts } from "../library/accounts.ts";
import type { Accounts } from "../library/contract.ts";
import { createOutbound } from "../outbound/outbound.ts";
import type { Config } from "../settings/settings.ts";
import { type Arguments, usageError } from "./args.ts";
import type { Context } from "./context.ts";
import { readSecret } from "./stdin.ts";
import { withStore } from "./store.ts";

/** `sluice token show|renew`: writes the access token to standard output. Resolves to the exit code. */
export async function token(context: Context, config: Config, log: Log, args: Arguments): Promise<number> {
  const { runtime, stdout } = context;
  const [action, ...rest] = args.operands;
  if ((action !== "show" && action !== "renew") || rest.length > 0)
    throw usageError("token: expected show or renew");
  const fixedToken = config.accessToken === "" ? undefined : config.accessToken;
  const text = await withStore(runtime, config, log, async (store) => {
    const access = await createAccessControl({ store, randomBytes: runtime.randomBytes, fixedToken });
    return action === "show" ? access.token() : access.renewToken();
  });
  stdout.write(`${args.flags.has("json") ? JSON.stringify({ access_token: text }) : text}\n`);
  return 0;
}

/** `sluice account add|password|remove|list`: the accounts of sign_in. Resolves to the exit code. */
export async function account(context: Context, config: Config, log: Log, args: Arguments): Promise<number> {
  const { runtime, stdout } = context;
  const [action, email] = args.operands;
  const isList = action === "list";
  if (!isList && action !== "add" && action !== "password" && action !== "remove")
    throw usageError("account: expected add, password, remove or list");
  if (isList !== (email === undefined))
    throw usageError(
      isList ? `account list: unexpected "${email}"` : `account ${action}: expected an e-mail address`,
    );
  // Read before the database is opened: a running engine must not wait for the user to type.
  const password = action === "add" || action === "password" ? await newPassword(context) : "";
  const result = await withStore(runtime, config, log, async (store) => {
    const { clock, randomBytes, scrypt } = runtime;
    const google = {
      issuer: config.googleIssuer,
      audience: config.googleAudience,
      keysUrl: config.googleKeysUrl,
    };
    const outbound = createOutbound(runtime, log);
    const accounts = createAccounts({ store, clock, randomBytes, scrypt, outbound, google, log });
    return change(accounts, action, email ?? "", password);
  });
  if (args.flags.has("json")) stdout.write(`${JSON.stringify(result.facts)}\n`);
  else stdout.write(result.lines.map((line) => `${line}\n`).join(""));
  return 0;
}

/** The result of a change: lines for users, and the same as JSON. */
interface ChangeResult {
  readonly lines: readonly string[];
  readonly facts: unknown;
}

async function change(
  accounts: Accounts,
  action: "add" | "password" | "remove" | "list",
  email: string,
  password: string,
): Promise<ChangeResult> {
  switch (action) {
    case "add":
      await accounts.add(email, password);
      return { lines: [`${email} can sign in`], facts: { email, added: true } };
    case "password":
      await accounts.setPassword(email, password);
      return { lines: [`the password of ${email} was changed`], facts: { email, changed: true } };
    case "remove":
      await accounts.remove(email);
      return { lines: [`${email} was removed`], facts: { email, removed: true } };
    case "list": {
      const emails = await accounts.list();
      return { lines: emails, facts: emails };
    }
  }
}

/** At a terminal the password is typed twice, because it is not shown. */
async function newPassword(context: Context): Promise<string> {
  const password = await readSecret("Password: ", context);
  if (context.stdin.isTTY !== true) return password;
  if ((await readSecret("Repeat the password: ", context)) !== password)
    throw usageError("the two passwords differ; nothing was changed");
  return password;
}
