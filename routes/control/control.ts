import { zValidator } from "@hono/zod-validator";
import { type Context, Hono } from "hono";
import type { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { Library } from "../../src/library/library.ts";
import { askerOf, baseUrl } from "../access.ts";
import { success } from "../envelope.ts";
import { explain } from "../errors.ts";
import type { House, RouteEnv } from "../house.ts";
import { mayReachPrivate } from "../private-urls.ts";
import { accountMethods } from "./account.ts";
import { admitAsker, admitToken, preflight } from "./admission.ts";
import { apiVersionOf, controlFailure } from "./api-version.ts";
import { senderOf } from "./body-slots.ts";
import { broadcastMethods } from "./broadcast.ts";
import { externalPlaylistMethods } from "./external-playlist.ts";
import { FormReader, queryParameters } from "./form.ts";
import type { ControlCall, ControlMethod } from "./method.ts";
import { clipped, firstText, parameterError, type RawParameters } from "./params.ts";
import { playlistMethods } from "./playlist.ts";
import { serviceMethods } from "./service.ts";
import { suggestion } from "./suggestion.ts";

/** Every control method, by the sections of the interface and in its order. */
export const CONTROL_SECTIONS: readonly {
  readonly title: string;
  readonly methods: readonly ControlMethod[];
}[] = [
  { title: "Service", methods: serviceMethods },
  { title: "Playlist", methods: playlistMethods },
  { title: "External playlists", methods: externalPlaylistMethods },
  { title: "Accounts", methods: accountMethods },
  { title: "Broadcasts", methods: broadcastMethods },
];

/** The same in one list. */
export const CONTROL_METHODS: readonly ControlMethod[] = CONTROL_SECTIONS.flatMap(({ methods }) => methods);

const BY_NAME: ReadonlyMap<string, ControlMethod> = new Map(
  CONTROL_METHODS.map((method) => [method.name, method]),
);

/** CHOICE(service-api): the interface's heading says `/service/api`, all its examples `/server/api`: both are served. */
const PATHS = ["/server/api", "/server/api/", "/service/api", "/service/api/"];

/** `/server/api`: finds the method, asks whether it may be called, reads its parameters, runs it. */
export function createControlRoutes(house: House & { readonly library: Library }): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  const forms = new FormReader();
  app.on("OPTIONS", PATHS, (c) => preflight(BY_NAME.get(c.req.query("method") ?? ""), c, house));
  app.on(["GET", "POST"], PATHS, async (c) => {
    c.header("cache-control", "no-store");
    let parameters: RawParameters = {};
    try {
      parameters = queryParameters(c.req.raw);
      // Whoever may not call a method shall not make us read a body for it either.
      const named = firstText(parameters.method);
      if (named !== undefined) admitAsker(methodOf(named), c, house);
      parameters = await forms.read(c.req.raw, senderOf(c.env.origin));
      const result = await call(house, c, parameters);
      if (result instanceof Response) return result;
      const next = c.req.method === "POST" ? ownPath(firstText(parameters.redirect)) : undefined;
      return next === undefined ? success(c, "result", result) : c.redirect(next, 303);
    } catch (thrown) {
      const error = explain(thrown);
      if (!error) throw thrown;
      return controlFailure(c, apiVersionOf(firstText(parameters.api_version)), error);
    }
  });
  return app;
}

/** Where a form wants its browser sent: one of our own paths, else nowhere. */
function ownPath(redirect: string | undefined): string | undefined {
  return redirect !== undefined && /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,1000}$/.test(redirect)
    ? redirect
    : undefined;
}

async function call(
  house: House & { readonly library: Library },
  c: Context<RouteEnv>,
  parameters: RawParameters,
): Promise<unknown> {
  const method = methodOf(firstText(parameters.method));
  admitAsker(method, c, house);
  await admitToken(method, c, house, firstText(parameters.token));
  const controlCall: ControlCall = {
    house,
    library: house.library,
    context: c,
    apiVersion: apiVersionOf(firstText(parameters.api_version)),
    asker: askerOf(c.env.origin),
    allowPrivateUrls: mayReachPrivate(c, house),
    base: baseUrl(c),
    signal: c.req.raw.signal,
  };
  return method.run(await validated(c, method.params, parameters), controlCall);
}

function methodOf(name: string | undefined): ControlMethod {
  if (name === undefined) throw new SluiceError("missing_method", "say method=…; see /docs");
  const method = BY_NAME.get(name);
  if (method) return method;
  const meant = suggestion(name, [...BY_NAME.keys()]);
  throw new SluiceError(
    "unknown_method",
    `${clipped(name)}; ${meant === undefined ? "" : `did you mean ${meant}? `}see /docs`,
  );
}

/** The parameters as the method's schema reads them: those of the query, and those that a form brought. */
async function validated(
  c: Context<RouteEnv>,
  schema: z.ZodType,
  parameters: RawParameters,
): Promise<unknown> {
  let params: unknown;
  const validator = zValidator(
    "query",
    schema,
    (result) => {
      if (!result.success) throw parameterError(result.error);
      params = result.data;
    },
    { validationFunction: () => schema.safeParse(parameters) },
  );
  // It asks nothing of the environment, so any context will do.
  await validator(c as unknown as Context, async () => {});
  return params;
}
