import { createApp } from "../../routes/app.ts";
import type { House } from "../../routes/house.ts";
import type { EngineSettings, Inspector } from "../../src/engine/contract.ts";
import type { RequestOrigin } from "../../src/runtime/contract.ts";
import { fakeHouse } from "../engine/fake-house.ts";
import { fakeLibrary } from "../library/fake-library.ts";

export const LOCAL: RequestOrigin = {
  remote: { host: "127.0.0.1", port: 50000 },
  local: { host: "127.0.0.1", port: 6878 },
};

export interface Call extends RequestInit {
  /** The Host header; `127.0.0.1:6878` unless said. */
  readonly host?: string;
  readonly origin?: RequestOrigin;
}

/** The routes on a fake engine, asked as a runtime would ask them. */
export function fakeApp(
  options: {
    settings?: Partial<EngineSettings>;
    house?: Partial<House>;
    hasData?: boolean;
    inspect?: Inspector;
  } = {},
) {
  const house = fakeHouse(options.settings);
  if (options.hasData ?? true) house.transfers.prepare = (transfer) => transfer.bringData();
  const library = fakeLibrary();
  const engine = { ...house.engine, inspect: options.inspect ?? house.engine.inspect };
  const app = createApp({ engine, version: "1.2.3", library, ...options.house });
  const call = (
    path: string,
    { host = "127.0.0.1:6878", origin = LOCAL, ...init }: Call = {},
  ): Promise<Response> => {
    const headers = new Headers(init.headers);
    headers.set("host", host);
    const url = path.startsWith("http") ? path : `http://127.0.0.1:6878${path}`;
    return Promise.resolve(app.fetch(new Request(url, { ...init, headers }), { origin }));
  };
  /** The `response` and `error` of a JSON answer. */
  const json = async (path: string, init?: Call) => {
    const response = await call(path, init);
    // biome-ignore lint/suspicious/noExplicitAny: the tests look into members by name.
    const body = (await response.json()) as { response: any; result: any; error: any };
    return { ...body, status: response.status, type: response.headers.get("content-type") };
  };
  return { ...house, engine, library, call, json };
}
