import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { type ControlMethod, controlMethod } from "./method.ts";
import { text } from "./params.ts";

const PRIVATE = { isPublic: false, isRemote: true, isOpenToPages: false } as const;

/** The bit of `auth_level` that says that somebody is signed in; the others are things that are sold elsewhere. */
const SIGNED_IN = 1;
/** What the interface says for a number that is not set. */
const UNSET = -1;

/** As it was typed: a space at its end belongs to it. */
const password = z
  .unknown()
  .transform(
    (value) => [value].flat().find((each) => typeof each === "string" && each !== "") as string | undefined,
  )
  .optional()
  .meta({ type: "string", format: "password" });

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
 * Who is signed in at this engine (interface: Account methods).
 *
 * CHOICE(sign-in): one account at a time is signed in, for the whole engine, and stays so over restarts. It opens nothing
 * and is asked for nothing: who may call is decided by address and access token alone.
 */
export const accountMethods: readonly ControlMethod[] = [
  controlMethod({
    name: "check_auth",
    summary: "Tells who is signed in",
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
    summary: "Signs in by e-mail address and password, or by a Google ID token",
    ...PRIVATE,
    params: z.object({ email: text, password, google_token: text }),
    result: z.literal("ok"),
    async run({ email, password, google_token: idToken }, { library: { accounts }, context }) {
      const asker = context.env.origin.remote.host;
      const signIn = () => {
        if (email !== undefined && password !== undefined)
          return accounts.signInByPassword(email, password, asker);
        if (idToken !== undefined) return accounts.signInByGoogle(idToken, asker);
        throw new SluiceError("missing_parameter", "email and password, or google_token");
      };
      // Why it failed is told to the log alone: whoever guesses shall learn nothing.
      if (!(await signIn())) throw new SluiceError("auth_error", "the sign-in was refused");
      return "ok";
    },
  }),
  controlMethod({
    name: "sign_out",
    summary: "Signs out",
    ...PRIVATE,
    params: z.object({}),
    result: z.literal("ok"),
    async run(_, { library }) {
      await library.accounts.signOut();
      return "ok";
    },
  }),
];
