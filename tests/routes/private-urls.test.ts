import assert from "node:assert/strict";
import { test } from "node:test";
import { Hono } from "hono";
import { allowsPrivateUrls } from "../../routes/http/access.ts";
import type { RouteEnv } from "../../routes/http/dependencies.ts";

const ASKERS = { local: "127.0.0.1", intranet: "192.168.1.7", internet: "8.8.8.8" } as const;
const PAGES = {
  none: {},
  own: { origin: "http://h:6878" },
  foreign: { origin: "http://evil.example" },
} as const;

/** The allowed cases; all others are refused. */
const ALLOWED = ["local none local", "local own local", "local none intranet", "local own intranet"];
ALLOWED.push("intranet none intranet", "intranet own intranet");

test("allowsPrivateUrls: allows this host, and its network if the setting is intranet, but no foreign page", async () => {
  for (const [asker, host] of Object.entries(ASKERS)) {
    for (const [page, headers] of Object.entries(PAGES)) {
      for (const privateUrls of ["local", "intranet", undefined] as const) {
        const app = new Hono<RouteEnv>();
        app.get("/", (c) => c.text(String(allowsPrivateUrls(c, privateUrls ? { privateUrls } : {}))));
        const remote = { host, port: 1 };
        const local = { host: asker === "local" ? "127.0.0.1" : "192.168.1.2", port: 6878 };
        const request = new Request("http://h:6878/", { headers: { host: "h:6878", ...headers } });
        const said = await (await app.fetch(request, { origin: { remote, local } })).text();
        const name = `${asker} ${page} ${privateUrls ?? "local"}`;
        assert.equal(said, String(ALLOWED.includes(name)), name);
      }
    }
  }
});
