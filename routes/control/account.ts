import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { type ControlMethod, controlMethod, okResult, PRIVATE, PRIVATE_LOCAL } from "./method.ts";
import { integer, required, text, texts } from "./params.ts";

/** The bit of `auth_level` that means "signed in"; the other bits are paid features, which this engine does not have. */
const SIGNED_IN = 1;
/** The value of numbers that are not set, as the interface specifies. */
const UNSET = -1;

/** A password, not trimmed: a space at its end belongs to it. */
const password = z
  .unknown()
  .transform(
    (value) => [value].flat().find((each) => typeof each === "string" && each !== "") as string | undefined,
  )
  .optional()
  .meta({ type: "string", format: "password" });

const email = required(text).describe("The email address, which is the name of the account");

const unset = z.literal(UNSET);

/** Interface: Authorization status. */
const status = z.object({
  package_name: z.null(),
  global_auth_level: z.int(),
  auth_level: z.int(),
  session_auth_level: unset,
  purse_amount: unset,
  bonus_amount: unset,
  bonuses_updated_at: z.literal(0),
  package_days_left: unset,
  package_color: unset,
  token: z.null(),
  login: z.string().nullable(),
  method: z.enum(["none", "engine", "google"]),
  ace_auth_token: z.string().nullable(),
});

/**
 * Sign-in and sign-out (interface: Account methods).
 *
 * CHOICE(sign-in): one account at a time is signed in, for the whole engine, and stays signed in after a restart. Signing
 * in grants no access: only the client's address and the access token decide which methods it may call.
 */
export const accountMethods: readonly ControlMethod[] = [
  controlMethod({
    name: "check_auth",
    summary: "Returns the sign-in status",
    ...PRIVATE,
    params: z.object({}),
    result: status,
    async run(_, { library }): Promise<z.output<typeof status>> {
      const { method, login, authToken } = await library.accounts.status();
      const level = method === "none" ? 0 : SIGNED_IN;
      return {
        package_name: null,
        global_auth_level: level,
        auth_level: level,
        session_auth_level: UNSET,
        purse_amount: UNSET,
        bonus_amount: UNSET,
        bonuses_updated_at: 0,
        package_days_left: UNSET,
        package_color: UNSET,
        token: null,
        login,
        method,
        ace_auth_token: authToken,
      };
    },
  }),
  controlMethod({
    name: "sign_in",
    summary: "Signs in with an email address and password, or with a Google ID token",
    ...PRIVATE,
    params: z.object({ email: text, password, google_token: text }),
    result: okResult,
    async run({ email, password, google_token: idToken }, { library: { accounts }, context }) {
      const client = context.env.origin.remote.host;
      const signIn = () => {
        if (email !== undefined && password !== undefined)
          return accounts.signInByPassword(email, password, client);
        if (idToken !== undefined) return accounts.signInByGoogle(idToken, client);
        throw new SluiceError("missing_parameter", "email and password, or google_token");
      };
      // Only the log contains the reason, because it would help an attacker who guesses passwords.
      if (!(await signIn())) throw new SluiceError("auth_error", "the sign-in was refused");
      return "ok";
    },
  }),
  controlMethod({
    name: "sign_out",
    summary: "Signs out",
    ...PRIVATE,
    params: z.object({}),
    result: okResult,
    async run(_, { library }) {
      await library.accounts.signOut();
      return "ok";
    },
  }),
  controlMethod({
    name: "account_list",
    summary: "Lists the accounts with what each may play by the Xtream Codes API",
    ...PRIVATE_LOCAL,
    isExtra: true,
    params: z.object({}),
    result: z.object({
      accounts: z.array(
        z.object({
          email: z.string(),
          max_streams: z.int().describe("Streams at the same time; 0: no limit"),
          groups: z.array(z.string()).describe("Empty: all"),
        }),
      ),
    }),
    async run(_, { library: { accounts } }) {
      const listed = (await accounts.list()).map(async (email) => {
        const { maxStreams, groups } = await accounts.limits(email);
        return { email, max_streams: maxStreams, groups: [...groups] };
      });
      return { accounts: await Promise.all(listed) };
    },
  }),
  controlMethod({
    name: "account_add",
    summary: "Creates an account",
    ...PRIVATE_LOCAL,
    isExtra: true,
    params: z.object({ email, password }),
    result: okResult,
    async run({ email, password }, { library }) {
      await library.accounts.add(email, given(password));
      return "ok";
    },
  }),
  controlMethod({
    name: "account_set_password",
    summary: "Changes the password of an account",
    ...PRIVATE_LOCAL,
    isExtra: true,
    params: z.object({ email, password }),
    result: okResult,
    async run({ email, password }, { library }) {
      await library.accounts.setPassword(email, given(password));
      return "ok";
    },
  }),
  controlMethod({
    name: "account_set_limits",
    summary: "Replaces what an account may play by the Xtream Codes API",
    ...PRIVATE_LOCAL,
    isExtra: true,
    params: z.object({
      email,
      max_streams: integer.describe("Streams at the same time; 0: no limit"),
      group: texts.describe("A category, subcategory or tag; repeatable. None: all"),
    }),
    result: okResult,
    async run({ email, max_streams: maxStreams = 0, group: groups }, { library }) {
      await library.accounts.setLimits(email, { maxStreams, groups });
      return "ok";
    },
  }),
  controlMethod({
    name: "account_remove",
    summary: "Removes an account, and signs it out",
    ...PRIVATE_LOCAL,
    isExtra: true,
    params: z.object({ email }),
    result: okResult,
    async run({ email }, { library }) {
      await library.accounts.remove(email);
      return "ok";
    },
  }),
];

function given(password: string | undefined): string {
  if (password === undefined) throw new SluiceError("missing_parameter", "password");
  return password;
}
