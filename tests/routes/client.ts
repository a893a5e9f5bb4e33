import { createApp } from "../../routes/app.ts";
import type { RouteDependencies } from "../../routes/http/dependencies.ts";
import type { RequestOrigin } from "../../src/runtime/contract.ts";
import type { EngineSettings, Inspector } from "../../src/transfer/contract.ts";
import { fakeEngine } from "../engine/fake-engine.ts";
import { fakeLibrary } from "../library/fake-library.ts";

export const LOCAL: RequestOrigin = {
  remote: { host: "127.0.0.1", port: 50000 },
  local: { host: "127.0.0.1", port: 6878 },
};

export interface Call extends RequestInit {
  /** The Host header; default `127.0.0.1:6878`. */
  readonly host?: string;
  readonly origin?: RequestOrigin;
}

/** Creates the routes on a fake engine, called as a runtime calls them. */
export function fakeApp(
  options: {
    settings?: Partial<EngineSettings>;
    dependencies?: Partial<RouteDependencies>;
    hasData?: boolean;
    inspect?: Inspector;
  } = {},
) {
  const house = fakeEngine(options.settings);
  if (options.hasData ?? true) house.transfers.prepare = (transfer) => transfer.bringData();
  const library = fakeLibrary();
  const engine = { ...house.engine, inspect: options.inspect ?? house.engine.inspect };
  const app = createApp({ engine, version: "1.2.3", library, ...options.dependencies });
  const call = (
    path: string,
    { host = "127.0.0.1:6878", origin = LOCAL, ...init }: Call = {},
  ): Promise<Response> => {
    const headers = new Headers(init.headers);
    headers.set("host", host);
    const url = path.startsWith("http") ? path : `http://127.0.0.1:6878${path}`;
    return Promise.resolve(app.fetch(new Request(url, { ...init, headers }), { origin }));
  };
  /** Returns the members of a JSON response. */
  const json = async (path: string, init?: Call) => {
    const response = await call(path, init);
    // biome-ignore lint/suspicious/noExplicitAny: the tests read members by name.
    const body = (await response.json()) as { response: any; result: any; error: any };
    return { ...body, status: response.status, type: response.headers.get("content-type") };
  };
  return { ...house, engine, library, call, json, fetch: app.fetch };
}
