import { type Context, Hono } from "hono";
import { SluiceError } from "../../src/base/errors.ts";
import type { Library } from "../../src/library/library.ts";
import { askerOf, baseUrl, isOwnPage } from "../access.ts";
import { failure, success } from "../envelope.ts";
import { explain } from "../errors.ts";
import type { House, RouteEnv } from "../house.ts";
import { accountMethods } from "./account.ts";
import { externalPlaylistMethods } from "./external-playlist.ts";
import { callParameters } from "./form.ts";
import type { ControlCall, ControlMethod } from "./method.ts";
import { playlistMethods } from "./playlist.ts";
import { serviceMethods } from "./service.ts";

/** Every control method, in the order of the interface. */
export const CONTROL_METHODS: readonly ControlMethod[] = [
  ...serviceMethods,
  ...playlistMethods,
  ...externalPlaylistMethods,
  ...accountMethods,
];

const BY_NAME: ReadonlyMap<string, ControlMethod> = new Map(
  CONTROL_METHODS.map((method) => [method.name, method]),
);

/** CHOICE(service-api): the interface's heading says `/service/api`, all its examples `/server/api`: both are served. */
const PATHS = ["/server/api", "/server/api/", "/service/api", "/service/api/"];

/** `/server/api`: finds the method, asks whether it may be called, reads its parameters, runs it. */
export function createControlRoutes(house: House & { readonly library: Library }): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.on(["GET", "POST"], PATHS, async (c) => {
    c.header("cache-control", "no-store");
    const apiVersion = apiVersionOf(c.req.query("api_version"));
    try {
      const result = await call(house, c, apiVersion);
      return result instanceof Response ? result : success(c, "result", result);
    } catch (thrown) {
      const error = explain(thrown);
      if (!error) throw thrown;
      return failure(c, "result", apiVersion === 1 ? error.text : { message: error.text, code: error.code });
    }
  });
  return app;
}

/** CHOICE(api-version): absent, 1 and what cannot be read: errors are text. 2 and 3, and what comes later: objects. */
function apiVersionOf(text: string | undefined): 1 | 2 | 3 {
  const number = Number(text);
  if (!(number >= 2)) return 1;
  return number === 2 ? 2 : 3;
}

async function call(
  house: House & { readonly library: Library },
  c: Context<RouteEnv>,
  apiVersion: 1 | 2 | 3,
): Promise<unknown> {
  const parameters = await callParameters(c.req.raw);
  const name = parameters.text("method");
  if (name === undefined) throw new SluiceError("missing_method", "say method=…; see /docs");
  const method = BY_NAME.get(name);
  if (!method) throw new SluiceError("unknown_method", name.slice(0, 60));
  const { library } = house;
  const asker = askerOf(c.env.origin);
  await allow(method, library, c, parameters.text("token"));
  const controlCall: ControlCall = {
    house,
    library,
    context: c,
    apiVersion,
    asker,
    allowPrivateUrls: asker === "local" && isOwnPage(c),
    base: baseUrl(c),
    signal: c.req.raw.signal,
  };
  return method.run(parameters.read(method.params), controlCall);
}

/** Who may call this (interface: Authentication 1 to 5). */
async function allow(
  method: ControlMethod,
  library: Library,
  c: Context<RouteEnv>,
  token: string | undefined,
): Promise<void> {
  if (!method.isRemote && askerOf(c.env.origin) !== "local")
    throw new SluiceError("access_denied", "only from this host");
  if (!method.isOpenToPages && !isOwnPage(c)) throw new SluiceError("access_denied", "not for other pages");
  if (method.isPublic) return;
  if (token === undefined) throw new SluiceError("token_required", "get one with get_api_access_token");
  if (!(await library.access.isToken(token)))
    throw new SluiceError("wrong_token", "get a new one with get_api_access_token");
}
