import type { MiddlewareHandler } from "hono";
import type { OperationsService, RouteEnv } from "./dependencies.ts";

/** Ids of requests as proxies write them: UUIDs and hexadecimal numbers, and little else. */
const REQUEST_ID = /^[\w.:-]{1,64}$/;

/**
 * Creates the middleware that reports each answered request. It returns the `x-request-id` of the client or of a proxy, so that
 * their logs and the engine's can be compared.
 */
export function requestReport(operations: OperationsService): MiddlewareHandler<RouteEnv> {
  return async (c, next) => {
    const sent = c.req.header("x-request-id");
    const requestId = sent !== undefined && REQUEST_ID.test(sent) ? sent : undefined;
    await next();
    if (requestId !== undefined) c.res.headers.set("x-request-id", requestId);
    operations.answered({ method: c.req.method, path: c.req.path, requestId, status: c.res.status });
  };
}
