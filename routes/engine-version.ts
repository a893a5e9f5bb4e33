import { type Context, Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import { admitAnybody } from "./control/admission.ts";
import { apiVersionOf, controlFailure } from "./control/api-version.ts";
import { queryParameters } from "./control/form.ts";
import { clipped, firstText, parameterError, type RawParameters } from "./control/params.ts";
import { statusMethods, versionMethods } from "./control/service-status.ts";
import { spacedJson, success } from "./envelope.ts";
import { explain } from "./errors.ts";
import type { House, RouteEnv } from "./house.ts";
import { textAnswer } from "./text-answer.ts";

const METHODS = [...versionMethods, ...statusMethods];

/**
 * CHOICE(jsonp): the one answer that scripts of other pages may run with is the version, which anybody may know. A name
 * of a function, and nothing that could be more than a name.
 */
const CALLBACK = /^[A-Za-z_$][\w$.]{0,60}$/;

/** `/webui/api/service`: what programs ask an engine before they know anything of it (interface: Control API). */
export function createEngineVersionRoutes(house: House): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.on(["GET", "POST"], ["/webui/api/service", "/webui/api/service/"], async (c) => {
    let parameters: RawParameters = {};
    try {
      parameters = queryParameters(c.req.raw);
      const name = firstText(parameters.method);
      if (name === undefined) throw new SluiceError("missing_method", "say method=…; see /docs");
      const method = METHODS.find((each) => each.name === name);
      if (!method) throw new SluiceError("unknown_method", `${clipped(name)}; see /docs`);
      admitAnybody(method, c, house);
      const read = method.params.safeParse(parameters);
      if (!read.success) throw parameterError(read.error);
      const result = await method.run(read.data, { house, context: c });
      return name === "get_version" ? versionAnswer(c, result) : success(c, "result", result);
    } catch (thrown) {
      const error = explain(thrown);
      if (!error) throw thrown;
      return controlFailure(c, apiVersionOf(firstText(parameters.api_version)), error);
    }
  });
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
  // The comment keeps the answer from beginning with what the asker chose.
  const script = `/**/${callback}(${spacedJson({ result, error: null })});`;
  return textAnswer(c, script, "text/javascript; charset=utf-8");
}
