import type { Context } from "hono";
import type { z } from "zod";
import type { Library } from "../../src/library/library.ts";
import type { Asker } from "../access-decision.ts";
import type { House, RouteEnv } from "../house.ts";

/** One operation of `/server/api`: a row of the interface's tables. */
export interface ControlMethod<Params extends z.ZodType = z.ZodType> {
  readonly name: string;
  /** One line for the documentation. */
  readonly summary: string;
  /** Callable without a token. */
  readonly isPublic: boolean;
  /** Callable from addresses outside this host. */
  readonly isRemote: boolean;
  /** Whether pages of other sites may cause it. Private methods never are. */
  readonly isOpenToPages: boolean;
  /** Not in the interface's tables: what deployed clients call besides. */
  readonly isExtra?: boolean;
  /** Query and form together: text, lists of text where one is given again, and files. */
  readonly params: Params;
  /** What `result` holds. */
  readonly result: z.ZodType;
  /** Resolves to the `result`, or to a whole response (an image). Rejects with `SluiceError`. */
  run(params: z.output<Params>, call: ControlCall): Promise<unknown>;
}

/** What a method knows of its call. */
export interface ControlCall {
  readonly house: House;
  readonly library: Library;
  readonly context: Context<RouteEnv>;
  /** 1: errors are text, and some results have their old shape. */
  readonly apiVersion: 1 | 2 | 3;
  readonly asker: Asker;
  /** Whether URLs may lead to this host and its network. */
  readonly allowPrivateUrls: boolean;
  /** `http://host:port` as the asker addressed us. */
  readonly base: string;
  /** Fires when the asker hangs up. */
  readonly signal: AbortSignal;
}

/** Declares a method, so that `run` sees the parameters as its schema reads them. */
export function controlMethod<Params extends z.ZodType>(method: ControlMethod<Params>): ControlMethod {
  return method as unknown as ControlMethod;
}

/** What a method knows that needs neither library nor engine's content. */
export type HouseCall = Pick<ControlCall, "house" | "context">;

/** A method that `/webui/api/service` answers as well. */
export type HouseMethod<Params extends z.ZodType = z.ZodType> = Omit<ControlMethod<Params>, "run"> & {
  run(params: z.output<Params>, call: HouseCall): Promise<unknown>;
};

/** Declares such a method. */
export function houseMethod<Params extends z.ZodType>(method: HouseMethod<Params>): HouseMethod {
  return method as unknown as HouseMethod;
}
