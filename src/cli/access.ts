import { createAccessControl } from "../accounts/access-control.ts";
import type { AccountLimits, Accounts } from "../accounts/account-contract.ts";
import { createAccounts } from "../accounts/accounts.ts";
import type { Log } from "../base/log.ts";
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

/** What `sluice account` does. */
const ACTIONS = ["add", "password", "limit", "remove", "list"] as const;
type Action = (typeof ACTIONS)[number];

/** `sluice account add|password|limit|remove|list`: the accounts of sign_in. Resolves to the exit code. */
export async function account(context: Context, config: Config, log: Log, args: Arguments): Promise<number> {
  const { runtime, stdout } = context;
  const [word, email] = args.operands;
  const action = ACTIONS.find((name) => name === word);
  if (action === undefined) throw usageError("account: expected add, password, limit, remove or list");
  const isList = action === "list";
  if (isList !== (email === undefined))
    throw usageError(
      isList ? `account list: unexpected "${email}"` : `account ${action}: expected an e-mail address`,
    );
  const limits = limitsOf(args);
  if (action !== "limit" && (args.flags.has("streams") || limits.groups.length > 0))
    throw usageError(`account ${action}: --streams and --group belong to account limit`);
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
    return change(accounts, action, email ?? "", { password, limits });
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
  action: Action,
  email: string,
  { password, limits }: { readonly password: string; readonly limits: AccountLimits },
): Promise<ChangeResult> {
  switch (action) {
    case "add":
      await accounts.add(email, password);
      return { lines: [`${email} can sign in`], facts: { email, added: true } };
    case "password":
      await accounts.setPassword(email, password);
      return { lines: [`the password of ${email} was changed`], facts: { email, changed: true } };
    case "limit":
      await accounts.setLimits(email, limits);
      return {
        lines: [`${email}: ${limitText(limits)}`],
        facts: { email, max_streams: limits.maxStreams, groups: limits.groups },
      };
    case "remove":
      await accounts.remove(email);
      return { lines: [`${email} was removed`], facts: { email, removed: true } };
    case "list": {
      const emails = await accounts.list();
      const lines = emails.map(async (account) => {
        const own = await accounts.limits(account);
        return isLimited(own) ? `${account}: ${limitText(own)}` : account;
      });
      return { lines: await Promise.all(lines), facts: emails };
    }
  }
}

function limitsOf(args: Arguments): AccountLimits {
  const streams = args.flags.get("streams") ?? "0";
  if (streams === true || !/^\d{1,4}$/.test(streams))
    throw usageError(`--streams: expected a whole number, got ${streams}`);
  return { maxStreams: Number(streams), groups: args.lists.get("group") ?? [] };
}

function isLimited({ maxStreams, groups }: AccountLimits): boolean {
  return maxStreams > 0 || groups.length > 0;
}

function limitText({ maxStreams, groups }: AccountLimits): string {
  const streams = maxStreams === 0 ? "any number of streams" : `streams: ${maxStreams}`;
  return `${streams}; ${groups.length === 0 ? "all groups" : `groups: ${groups.join(", ")}`}`;
}

/** At a terminal the password is typed twice, because it is not shown. */
async function newPassword(context: Context): Promise<string> {
  const password = await readSecret("Password: ", context);
  if (context.stdin.isTTY !== true) return password;
  if ((await readSecret("Repeat the password: ", context)) !== password)
    throw usageError("the two passwords differ; nothing was changed");
  return password;
}
