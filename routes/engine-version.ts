import { type Context, Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import { authorizeWithoutToken } from "./control/authorize.ts";
import { checkedQuery } from "./control/form.ts";
import { clipped, firstText } from "./control/params.ts";
import { statusMethods, versionMethods } from "./control/service-status.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { controlFailure, spacedJson, success, textResponse } from "./http/responses.ts";

const METHODS = [...versionMethods, ...statusMethods];

/**
 * CHOICE(jsonp): only the version, which is public, is available to scripts of other pages. The callback must be a plain
 * function name.
 */
const CALLBACK = /^[A-Za-z_$][\w$.]{0,60}$/;

/** Serves `/webui/api/service`, which programs call to detect the engine (interface: Control API). */
export function createEngineVersionRoutes(dependencies: RouteDependencies): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.on(["GET", "POST"], ["/webui/api/service", "/webui/api/service/"], async (c) => {
    const name = firstText(checkedQuery(c.req.raw).getAll("method"));
    if (name === undefined) throw new SluiceError("missing_method", "add method=…; see /docs");
    const method = METHODS.find((each) => each.name === name);
    if (!method) throw new SluiceError("unknown_method", `${clipped(name)}; see /docs`);
    authorizeWithoutToken(method, c, dependencies);
    const result = await method.answer(c, { dependencies, context: c });
    return name === "get_version" ? versionAnswer(c, result) : success(c, "result", result);
  });
  app.onError((thrown, c) => controlFailure(c, firstText(c.req.queries("api_version")), thrown));
  return app;
}

function versionAnswer(c: Context<RouteEnv>, result: unknown): Response {
  const callback = c.req.query("callback") ?? "";
  if (c.req.query("format") !== "jsonp" || callback === "") return success(c, "result", result);
  if (!CALLBACK.test(callback))
    throw new SluiceError(
      "bad_parameter",
      `callback: expected the name of a function, got "${clipped(callback)}"`,
    );
  // The comment prevents the client from choosing the first bytes of the response.
  const script = `/**/${callback}(${spacedJson({ result, error: null })});`;
  return textResponse(c, script, "text/javascript; charset=utf-8");
}
