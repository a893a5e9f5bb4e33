import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { createAccessControl } from "../../src/accounts/access-control.ts";
import { sameSecret } from "../../src/accounts/same-secret.ts";
import { SluiceError } from "../../src/base/errors.ts";
import { MapStore } from "../library/map-store.ts";

function open(store: MapStore, fixedToken?: string) {
  return createAccessControl({
    store,
    randomBytes: (length) => new Uint8Array(randomBytes(length)),
    fixedToken,
  });
}

test("switches: intranet on and Internet off by default; a change is stored and effective at once", async () => {
  const store = new MapStore();
  const access = await open(store);
  assert.deepEqual([access.allowsIntranet, access.allowsRemote], [true, false]);
  await Promise.all([access.setAllowsIntranet(false), access.setAllowsRemote(true)]);
  assert.deepEqual([access.allowsIntranet, access.allowsRemote], [false, true]);
  const again = await open(store);
  assert.deepEqual([again.allowsIntranet, again.allowsRemote], [false, true]);
});

test("switches: a change that cannot be stored has no effect, and the next one works", async () => {
  const store = new MapStore();
  const access = await open(store);
  store.failure = new SluiceError("disk_full", "no room");
  await assert.rejects(access.setAllowsRemote(true), /no room/);
  store.failure = undefined;
  assert.equal(access.allowsRemote, false);
  await access.setAllowsIntranet(false);
  assert.equal((await open(store)).allowsRemote, false);
});

test("switches: a damaged record allows no access", async () => {
  const store = new MapStore();
  store.records.set("access/switches", '{"intranet":"yes","remote":true}');
  const access = await open(store);
  assert.deepEqual([access.allowsIntranet, access.allowsRemote], [false, false]);
});

test("token: 64 hex digits, generated once and stored before it is returned", async () => {
  const store = new MapStore();
  const access = await open(store);
  assert.equal(await access.isToken(""), false);
  assert.equal(await access.isToken("undefined"), false);
  const tokens = await Promise.all([access.token(), access.token(), (await open(store)).token()]);
  assert.match(tokens[0]!, /^[0-9a-f]{64}$/);
  assert.equal(new Set(tokens).size, 1);
  assert.equal(await (await open(store)).token(), tokens[0]);
  assert.equal(await access.isToken(tokens[0]!), true);
});

test("token: rejects if it cannot be stored", async () => {
  const store = new MapStore();
  store.failure = new SluiceError("disk_full", "no room");
  await assert.rejects((await open(store)).token(), /no room/);
});

test("isToken: accepts only the exact text", async () => {
  const access = await open(new MapStore());
  const token = await access.token();
  const wrong = ["", token.slice(1), `${token}0`, token.toUpperCase(), ` ${token}`, "0".repeat(64)];
  for (const text of wrong) assert.equal(await access.isToken(text), false);
  assert.equal(await access.isToken("x".repeat(100_000)), false);
});

test("renewToken: revokes the old token at once, also for other processes", async () => {
  const store = new MapStore();
  const [engine, tool] = [await open(store), await open(store)];
  const old = await engine.token();
  const renewed = await tool.renewToken();
  assert.notEqual(renewed, old);
  assert.equal(await engine.isToken(old), false);
  assert.equal(await engine.isToken(renewed), true);
  assert.equal(await engine.token(), renewed);
});

test("fixedToken: overrides the stored token and cannot be renewed", async () => {
  const store = new MapStore();
  const kept = await (await open(store)).token();
  const fixed = "a secret that the user chose, long enough";
  const access = await open(store, fixed);
  assert.equal(await access.token(), fixed);
  assert.equal(await access.isToken(fixed), true);
  assert.equal(await access.isToken(kept), false);
  await assert.rejects(access.renewToken(), (error: SluiceError) => error.code === "bad_configuration");
});

test("sameSecret: compares texts", async () => {
  assert.equal(await sameSecret("ä", "ä"), true);
  assert.equal(await sameSecret("", ""), true);
  assert.equal(await sameSecret("a", "b"), false);
  assert.equal(await sameSecret("a", "aa"), false);
});

test("switches: onSwitched is called after each change, when it is stored and in effect", async () => {
  const access = await open(new MapStore());
  const seen: boolean[] = [];
  access.onSwitched(() => seen.push(access.allowsIntranet));
  access.onSwitched(() => seen.push(access.allowsRemote));
  await access.setAllowsIntranet(false);
  await access.setAllowsRemote(true);
  assert.deepEqual(seen, [false, false, false, true]);
});
