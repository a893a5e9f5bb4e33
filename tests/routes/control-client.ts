import type { Library } from "../../src/library/library.ts";
import { FAKE_TOKEN, fakeLibrary } from "../library/fake-library.ts";
import { type RealLibrary, withRealLibrary } from "../library/real-library.ts";
import { type Call, fakeApp } from "./client.ts";

/** The parameters of a call; a file makes it multipart/form-data. */
export type CallValues = Readonly<Record<string, string | number | File>>;

/** Creates a client of the control methods on a fake library, with its token. */
export function controlClient(options: AppOptions = {}) {
  return clientOf(fakeLibrary(), FAKE_TOKEN, options);
}

/** Runs `work` with a client on a real library whose store is in memory. */
export function withRealClient(
  work: (client: ReturnType<typeof clientOf> & RealLibrary) => Promise<void>,
): () => Promise<void> {
  return () =>
    withRealLibrary(async (real) =>
      work({ ...clientOf(real.library, await real.library.access.token()), ...real }),
    );
}

type AppOptions = NonNullable<Parameters<typeof fakeApp>[0]>;

function clientOf<Kind extends Library>(library: Kind, token: string, options: AppOptions = {}) {
  const app = fakeApp({ ...options, dependencies: { ...options.dependencies, library } });
  const query = (method: string, values: CallValues = {}) =>
    new URLSearchParams({ api_version: "3", token, method, ...textsOf(values) });
  /** Returns the whole response of a method. */
  const ask = (method: string, values: CallValues = {}, init: Call = {}) => {
    const files = Object.entries(values).filter(([, value]) => value instanceof File);
    if (files.length === 0) return app.json(`/server/api?${query(method, values)}`, init);
    const body = new FormData();
    for (const [name, file] of files) body.append(name, file as File);
    return app.json(`/server/api?${query(method, values)}`, { method: "POST", body, ...init });
  };
  /** Returns the result of a method; an error fails the test. */
  const result = async (method: string, values: CallValues = {}) => {
    const answer = await ask(method, values);
    if (answer.error) throw new Error(`${method}: ${JSON.stringify(answer.error)}`);
    return answer.result;
  };
  /** Returns the error of a method. */
  const error = async (method: string, values: CallValues = {}): Promise<{ message: string; code: number }> =>
    (await ask(method, values)).error;
  return { ...app, library, query, ask, result, error };
}

function textsOf(values: CallValues): Record<string, string> {
  const texts = Object.entries(values).filter(([, value]) => !(value instanceof File));
  return Object.fromEntries(texts.map(([name, value]) => [name, String(value)]));
}
