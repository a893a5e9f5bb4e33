import assert from "node:assert/strict";
import { test } from "node:test";
import { accountHouse } from "../accounts/account-house.ts";
import { FAKE_TOKEN, fakeLibrary } from "../library/fake-library.ts";
import { fakeApp } from "./client.ts";

const EMAIL = "me@example.org";

async function appWithAccount() {
  const made = accountHouse();
  await made.accounts.add(EMAIL, " correct horse ");
  const app = fakeApp({ dependencies: { library: { ...fakeLibrary(), accounts: made.accounts } } });
  const ask = (method: string, params: Record<string, string> = {}, more = "") =>
    app.json(
      `/server/api?${new URLSearchParams({ api_version: "3", method, token: FAKE_TOKEN, ...params })}${more}`,
    );
  return { ...made, ask };
}

const SIGNED_OUT = {
  package_name: null,
  global_auth_level: 0,
  auth_level: 0,
  session_auth_level: -1,
  purse_amount: -1,
  bonus_amount: -1,
  bonuses_updated_at: 0,
  package_days_left: -1,
  package_color: -1,
  token: null,
  login: null,
  method: "none",
  ace_auth_token: null,
};

test("check_auth, sign_in, sign_out: every field of the interface, signed out and in", async () => {
  const { ask } = await appWithAccount();
  assert.deepEqual((await ask("check_auth")).result, SIGNED_OUT);
  assert.equal((await ask("sign_in", { email: ` ${EMAIL}`, password: " correct horse " })).result, "ok");
  const { ace_auth_token: signed, ...rest } = (await ask("check_auth")).result;
  const { ace_auth_token: _, ...out } = SIGNED_OUT;
  assert.deepEqual(rest, { ...out, global_auth_level: 1, auth_level: 1, login: EMAIL, method: "engine" });
  assert.match(signed, /^[\w-]+\.[\w-]+\.[\w-]+$/);
  assert.equal((await ask("sign_out")).result, "ok");
  assert.deepEqual((await ask("check_auth")).result, SIGNED_OUT);
  assert.equal((await ask("sign_out")).result, "ok");
});

test("account_set_limits: names of groups may contain commas", async () => {
  const { ask, accounts } = await appWithAccount();
  const groups = ["News, local", "Sport"];
  const query = new URLSearchParams([["max_streams", "2"], ...groups.map((name) => ["group", name])]);
  assert.equal((await ask("account_set_limits", { email: EMAIL }, `&${query}`)).result, "ok");
  assert.deepEqual(await accounts.limits(EMAIL), { maxStreams: 2, groups });
});

test("sign_in: every failure is auth_error with code 0 and no details", async () => {
  const { ask } = await appWithAccount();
  const wrong: Record<string, string>[] = [
    { email: EMAIL, password: "correct horse" },
    { email: "nobody@example.org", password: " correct horse " },
    { email: "no address", password: "x" },
    { email: EMAIL, password: "x".repeat(5_000) },
    { google_token: "a.b.c" },
    { google_token: "x".repeat(10_000) },
  ];
  for (const params of wrong)
    assert.deepEqual((await ask("sign_in", params)).error, { message: "auth_error", code: 0 });
  // One more than the limit of failures per minute.
  assert.deepEqual((await ask("sign_in", { email: EMAIL, password: " correct horse " })).error, {
    message: "auth_error",
    code: 0,
  });
});

test("sign_in: names the missing parameters", async () => {
  const { ask } = await appWithAccount();
  for (const params of [{}, { email: EMAIL }, { password: "x" }, { email: EMAIL, password: "" }]) {
    const { error } = await ask("sign_in", params as Record<string, string>);
    assert.deepEqual(error, {
      message: "missing parameter: email and password, or google_token",
      code: 102,
    });
  }
});

test("sign_in: counts failures by the client address, not by a header", async () => {
  const { accounts } = await appWithAccount();
  const app = fakeApp({ dependencies: { library: { ...fakeLibrary(), accounts } } });
  const sign = (remote: string, password: string) => {
    const query = new URLSearchParams({ method: "sign_in", token: FAKE_TOKEN, email: EMAIL, password });
    const local = { host: "192.168.1.2", port: 6878 };
    const headers = { "x-forwarded-for": String(Math.random()) };
    const origin = { remote: { host: remote, port: 1 }, local };
    return app.json(`/server/api?${query}`, { origin, headers, host: "192.168.1.2:6878" });
  };
  const unknown = (i: number) => ({ email: `no${i}@example.org` });
  for (let i = 0; i < 5; i++) {
    const query = new URLSearchParams({ method: "sign_in", token: FAKE_TOKEN, password: "x", ...unknown(i) });
    const local = { host: "192.168.1.2", port: 6878 };
    const origin = { remote: { host: "192.168.1.7", port: 1 }, local };
    await app.call(`/server/api?${query}`, { origin, host: "192.168.1.2:6878" });
  }
  assert.equal((await sign("192.168.1.7", " correct horse ")).error, "auth_error");
  assert.equal((await sign("192.168.1.8", " correct horse ")).result, "ok");
});
