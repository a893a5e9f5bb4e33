import { zValidator } from "@hono/zod-validator";
import type { Context } from "hono";
import { z } from "zod";
import type { Library } from "../../src/library/library.ts";
import type { MethodAccess } from "../http/access-rules.ts";
import type { Files, RouteDependencies, RouteEnv } from "../http/dependencies.ts";
import { refuseInvalid } from "./params.ts";

/** One control method: a row of the interface's tables. */
export interface ControlMethod extends MethodAccess {
  /** One line for the documentation. */
  readonly summary: string;
  /** An extension that deployed clients call, which the interface's tables do not list. */
  readonly isExtra?: boolean;
  /** The parameters of query and form: texts, and lists of texts if a name is repeated. */
  readonly params: z.ZodType;
  /** The files of a form: their names with descriptions. */
  readonly files?: Readonly<Record<string, string>>;
  /** The schema of `result`. */
  readonly result: z.ZodType;
  /**
   * Validates the parameters and runs the method. Resolves to `result`, or to a complete response, such as an image. Rejects
   * with `SluiceError`.
   */
  answer(c: Context<RouteEnv>, call: ControlCall): Promise<unknown>;
}

/** The context of a call of a control method. */
export interface ControlCall {
  readonly dependencies: RouteDependencies;
  readonly library: Library;
  readonly context: Context<RouteEnv>;
  /** The uploaded files by name. */
  readonly files: Files;
  /** 1: errors are strings, and some results have an older shape. */
  readonly apiVersion: 1 | 2 | 3;
  /** Whether URLs may lead to this host and its network. */
  readonly allowPrivateUrls: boolean;
  /** `http://host:port` as the client addressed the engine. */
  readonly base: string;
  /** Fires when the client disconnects. */
  readonly signal: AbortSignal;
}

/** A method as it is declared: `run` takes validated parameters. */
type Declaration<Params extends z.ZodType, Call> = Omit<ControlMethod, "params" | "answer"> & {
  readonly params: Params;
  run(params: z.output<Params>, call: Call): Promise<unknown>;
};

/** Declares a method, so that TypeScript infers the parameters of `run` from the schema. */
export function controlMethod<Params extends z.ZodType>(
  method: Declaration<Params, ControlCall>,
): ControlMethod {
  return validated(method);
}

/** The part of the context that methods of `/webui/api/service` use. */
type EngineCall = Pick<ControlCall, "dependencies" | "context">;

/** A method that `/webui/api/service` answers as well. */
type EngineMethod = Omit<ControlMethod, "answer"> & {
  answer(c: Context<RouteEnv>, call: EngineCall): Promise<unknown>;
};

/** Declares a method that `/webui/api/service` answers as well. */
export function engineMethod<Params extends z.ZodType>(
  method: Declaration<Params, EngineCall>,
): EngineMethod {
  return validated(method);
}

/** What the validator of a method leaves in the context. */
interface Valid<Params extends z.ZodType> {
  readonly in: { readonly query: z.input<Params> };
  readonly out: { readonly query: z.output<Params> };
}

/** Puts the middleware that validates the parameters before `run`. */
function validated<Params extends z.ZodType, Call>({ run, ...row }: Declaration<Params, Call>) {
  const validate = zValidator<
    Params,
    "query",
    RouteEnv,
    string,
    typeof refuseInvalid,
    z.input<Params>,
    z.output<Params>,
    Valid<Params>,
    Valid<Params>
  >("query", row.params, refuseInvalid);
  return {
    ...row,
    async answer(c: Context<RouteEnv, string, Valid<Params>>, call: Call): Promise<unknown> {
      let result: unknown;
      await validate(c, async () => {
        result = await run(c.req.valid("query"), call);
      });
      return result;
    },
  };
}

/** Access of methods that any page may call. */
export const OPEN = { isPublic: true, isRemote: true, isCrossOrigin: true } as const;
/** Access of methods that need no token, but are closed to pages of other sites. */
export const PUBLIC = { isPublic: true, isRemote: true, isCrossOrigin: false } as const;
/** Access of methods that need the token. */
export const PRIVATE = { isPublic: false, isRemote: true, isCrossOrigin: false } as const;
/** Access of methods that need the token and accept only clients of this host. */
export const PRIVATE_LOCAL = { isPublic: false, isRemote: false, isCrossOrigin: false } as const;

/** The result of most methods that change something (interface: Endpoints). */
export const okResult = z.literal("ok");

/** An error inside a list result (interface: Errors 3). */
export const elementError = z.object({
  error: z.object({ message: z.string(), code: z.int() }),
});
