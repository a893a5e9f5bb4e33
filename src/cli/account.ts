import type { Log } from "../base/log.ts";
import { createAccounts } from "../library/accounts.ts";
import type { Accounts } from "../library/contract.ts";
import { createOutbound } from "../outbound/outbound.ts";
import type { Config } from "../settings.ts";
import type { Arguments } from "./args.ts";
import type { Context } from "./context.ts";
import { withLibraryStore } from "./library-store.ts";
import { readSecret } from "./read-secret.ts";
import { usageError } from "./usage.ts";

/** `sluice account add|password|remove|list`: the accounts that sign_in knows. Resolves to the exit code. */
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
  // Asked for before anything is opened: nobody shall wait for somebody who types.
  const password = action === "add" || action === "password" ? await newPassword(context) : "";
  const text = await withLibraryStore(runtime, config, log, async (store) => {
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
  stdout.write(text);
  return 0;
}

async function change(
  accounts: Accounts,
  action: "add" | "password" | "remove" | "list",
  email: string,
  password: string,
): Promise<string> {
  switch (action) {
    case "add":
      await accounts.add(email, password);
      return `${email} can sign in\n`;
    case "password":
      await accounts.setPassword(email, password);
      return `${email} has a new password\n`;
    case "remove":
      await accounts.remove(email);
      return `${email} is no account any more\n`;
    case "list":
      return (await accounts.list()).map((one) => `${one}\n`).join("");
  }
}

/** Typed twice at a terminal, where nobody sees what was typed. */
async function newPassword(context: Context): Promise<string> {
  const password = await readSecret("Password: ", context);
  if (context.stdin.isTTY !== true) return password;
  if ((await readSecret("Once more: ", context)) !== password)
    throw usageError("the two passwords are not the same; nothing was changed");
  return password;
}
