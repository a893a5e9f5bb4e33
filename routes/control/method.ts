import type { Context } from "hono";
import { z } from "zod";
import type { Library } from "../../src/library/library.ts";
import type { RouteDependencies, RouteEnv } from "../http/dependencies.ts";

/** One control method: a row of the interface's tables. */
export interface ControlMethod<Params extends z.ZodType = z.ZodType> {
  readonly name: string;
  /** One line for the documentation. */
  readonly summary: string;
  /** Callable without a token. */
  readonly isPublic: boolean;
  /** Callable by clients of other hosts. */
  readonly isRemote: boolean;
  /** Whether pages of other sites may call it; private methods never allow that. */
  readonly isCrossOrigin: boolean;
  /** An extension that deployed clients call, which the interface's tables do not list. */
  readonly isExtra?: boolean;
  /** The parameters of query and form: texts, lists of texts if a name is repeated, and files. */
  readonly params: Params;
  /** The schema of `result`. */
  readonly result: z.ZodType;
  /** Resolves to `result`, or to a complete response, such as an image. Rejects with `SluiceError`. */
  run(params: z.output<Params>, call: ControlCall): Promise<unknown>;
}

/** The context of a call of a control method. */
export interface ControlCall {
  readonly dependencies: RouteDependencies;
  readonly library: Library;
  readonly context: Context<RouteEnv>;
  /** 1: errors are strings, and some results have an older shape. */
  readonly apiVersion: 1 | 2 | 3;
  /** Whether URLs may lead to this host and its network. */
  readonly allowPrivateUrls: boolean;
  /** `http://host:port` as the client addressed the engine. */
  readonly base: string;
  /** Fires when the client disconnects. */
  readonly signal: AbortSignal;
}

/** Declares a method, so that TypeScript infers the parameters of `run` from the schema. */
export function controlMethod<Params extends z.ZodType>(method: ControlMethod<Params>): ControlMethod {
  return method as unknown as ControlMethod;
}

/** The part of the context that methods of `/webui/api/service` use. */
type EngineCall = Pick<ControlCall, "dependencies" | "context">;

/** A method that `/webui/api/service` answers as well. */
type EngineMethod<Params extends z.ZodType = z.ZodType> = Omit<ControlMethod<Params>, "run"> & {
  run(params: z.output<Params>, call: EngineCall): Promise<unknown>;
};

/** Declares a method that `/webui/api/service` answers as well. */
export function engineMethod<Params extends z.ZodType>(method: EngineMethod<Params>): EngineMethod {
  return method as unknown as EngineMethod;
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
