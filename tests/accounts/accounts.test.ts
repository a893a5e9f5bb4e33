import assert from "node:assert/strict";
import { test } from "node:test";
import { importJWK, jwtVerify } from "jose";
import { SluiceError } from "../../src/base/errors.ts";
import { accountHouse } from "./account-house.ts";

const EMAIL = "me@example.org";
const PASSWORD = "correct horse";
const ASKER = "192.168.1.7";

async function house() {
  const made = accountHouse();
  await made.accounts.add(EMAIL, PASSWORD);
  return made;
}

const isBad = (error: unknown) => error instanceof SluiceError && error.code === "bad_parameter";

test("add: one account per address, ignoring case; stores only a salted hash of the password", async () => {
  const { accounts, store } = await house();
  await assert.rejects(
    accounts.add(" ME@Example.ORG ", PASSWORD),
    /the account me@example\.org already exists/,
  );
  await accounts.add("you@example.org", PASSWORD);
  assert.deepEqual(await accounts.list(), [EMAIL, "you@example.org"]);
  const kept = [...store.records.values()];
  assert.ok(kept.every((text) => !text.includes(PASSWORD)));
  const salts = kept.map((text) => JSON.parse(text).password.salt);
  assert.equal(new Set(salts).size, 2);
});

test("add: refuses invalid addresses and passwords without repeating them", async () => {
  const { accounts } = accountHouse();
  for (const email of ["", "me", "me@", "@example.org", "a@b@c", "a b@c", `${"a".repeat(300)}@b`, "a\n@b"])
    await assert.rejects(accounts.add(email, PASSWORD), isBad, email);
  for (const password of ["", "seven77", "x".repeat(1_001)])
    await assert.rejects(
      accounts.add(EMAIL, password),
      (error: Error) => isBad(error) && !/seven77/.test(error.message),
    );
  await accounts.add(EMAIL, "x".repeat(1_000));
  await accounts.add("eight@example.org", "12345678");
});

test("signInByPassword: accepts the right password in any Unicode composition, the address in any case", async () => {
  const { accounts } = await house();
  await accounts.add("u@example.org", "p\u00e4sswort");
  const signIn = (email: string, password: string) => accounts.signInByPassword(email, password, ASKER);
  assert.equal(await signIn("Me@EXAMPLE.org", PASSWORD), true);
  assert.equal(await signIn("u@example.org", "pa\u0308sswort"), true);
  assert.equal(await signIn(EMAIL, `${PASSWORD} `), false);
  assert.equal(await signIn("nobody@example.org", PASSWORD), false);
  assert.equal(await signIn("", ""), false);
  assert.deepEqual((await accounts.status()).login, "u@example.org");
});

test("isPassword: hashes a right password once, and again after the password was changed; opens no session", async () => {
  const { accounts, hashes } = await house();
  const isRight = (password: string, email = EMAIL) => accounts.isPassword(email, password, ASKER);
  assert.deepEqual(
    [await isRight("wrong horse"), await isRight(PASSWORD), await isRight("", "x@y")],
    [false, true, false],
  );
  const before = hashes();
  for (let i = 0; i < 10; i++) assert.equal(await isRight(PASSWORD, "ME@example.org"), true);
  assert.equal(hashes(), before);
  await accounts.setPassword(EMAIL, "another horse");
  assert.equal(await isRight(PASSWORD), false);
  assert.equal(await isRight("another horse"), true);
  await accounts.remove(EMAIL);
  assert.equal(await isRight("another horse"), false);
  assert.equal((await accounts.status()).method, "none");
});

test("isPassword: refuses after too many failures, and still accepts what was right before", async () => {
  const { accounts } = await house();
  const isRight = (password: string) => accounts.isPassword(EMAIL, password, ASKER);
  assert.equal(await isRight(PASSWORD), true);
  for (let i = 0; i < 6; i++) assert.equal(await isRight(`wrong ${i}`), false);
  assert.equal(await accounts.signInByPassword(EMAIL, PASSWORD, ASKER), false);
  assert.equal(await isRight(PASSWORD), true);
});

test("signInByPassword: an unknown account and an overlong password take as long as a wrong one", async () => {
  const { accounts, hashes } = await house();
  const before = hashes();
  await accounts.signInByPassword("nobody@example.org", "x", "10.0.0.1");
  await accounts.signInByPassword(EMAIL, "x".repeat(10_000), "10.0.0.2");
  await accounts.signInByPassword("no address", "x", "10.0.0.3");
  assert.equal(hashes() - before, 3);
});

test("signInByPassword: five failures in a minute block the account for all clients", async () => {
  const { accounts, clock, hashes } = await house();
  const tryIt = (password: string, client: string) => accounts.signInByPassword(EMAIL, password, client);
  for (let i = 0; i < 5; i++) assert.equal(await tryIt("wrong", `10.0.0.${i}`), false);
  const before = hashes();
  assert.equal(await tryIt(PASSWORD, "10.0.0.9"), false);
  assert.equal(hashes(), before);
  await clock.advance(59_999);
  assert.equal(await tryIt(PASSWORD, "10.0.0.9"), false);
  await clock.advance(1);
  assert.equal(await tryIt(PASSWORD, "10.0.0.9"), true);
});

test("signInByPassword: five failures block the client for all accounts; other clients are not blocked", async () => {
  const { accounts } = await house();
  for (let i = 0; i < 5; i++) await accounts.signInByPassword(`no${i}@example.org`, "x", "2001:db8::1");
  assert.equal(await accounts.signInByPassword(EMAIL, PASSWORD, "2001:db8::ffff:1"), false);
  assert.equal(await accounts.signInByPassword(EMAIL, PASSWORD, "2001:db8:0:1::1"), true);
});

test("signInByPassword: concurrent attempts are limited like sequential ones", async () => {
  const { accounts, hashes } = await house();
  const before = hashes();
  const all = Array.from({ length: 50 }, (_, i) => accounts.signInByPassword(EMAIL, `wrong ${i}`, ASKER));
  assert.deepEqual(new Set(await Promise.all(all)), new Set([false]));
  assert.equal(hashes() - before, 5);
});

test("signInByPassword: spaced failures and successes do not block", async () => {
  const { accounts, clock } = await house();
  for (let i = 0; i < 20; i++) {
    assert.equal(await accounts.signInByPassword(EMAIL, "wrong", ASKER), false);
    assert.equal(await accounts.signInByPassword(EMAIL, PASSWORD, ASKER), true);
    await clock.advance(20_000);
  }
});

test("signInByPassword: logs the reason of a failure without secrets", async () => {
  const { accounts, lines } = await house();
  await accounts.signInByPassword(EMAIL, "Tr0ub4dor&3", ASKER);
  await accounts.signInByPassword("Tr0ub4dor&3", "x", ASKER);
  assert.match(lines.join("\n"), /wrong password[\s\S]*account does not exist/);
  assert.doesNotMatch(lines.join("\n"), /Tr0ub4dor/);
});

test("signInByPassword: fails if the session cannot be stored", async () => {
  const { accounts, store } = await house();
  store.failure = new SluiceError("disk_full", "no room");
  await assert.rejects(accounts.signInByPassword(EMAIL, PASSWORD, ASKER), /no room/);
  assert.equal((await accounts.status()).method, "none");
});

test("status: the session persists with a signed token and ends with signOut", async () => {
  const first = await house();
  await first.accounts.signInByPassword(EMAIL, PASSWORD, ASKER);
  const { accounts, store, clock } = accountHouse({ store: first.store });
  const { method, login, authToken } = await accounts.status();
  assert.deepEqual([method, login], ["engine", EMAIL]);
  const { d: _, ...open } = JSON.parse(store.records.get("account/key")!);
  const { payload, protectedHeader } = await jwtVerify(authToken!, await importJWK(open, "EdDSA"), {
    issuer: "sluice",
    currentDate: new Date(clock.unixSeconds() * 1000),
  });
  assert.equal(protectedHeader.alg, "EdDSA");
  assert.deepEqual(payload, {
    sub: EMAIL,
    iss: "sluice",
    iat: clock.unixSeconds(),
    exp: clock.unixSeconds() + 86_400,
  });
  await accounts.signOut();
  assert.deepEqual(await accounts.status(), { method: "none", login: null, authToken: null });
  await accounts.signOut();
});

test("setPassword, remove: end the account's session", async () => {
  const { accounts } = await house();
  await accounts.add("you@example.org", PASSWORD);
  await accounts.signInByPassword(EMAIL, PASSWORD, ASKER);
  await accounts.setPassword("you@example.org", "another password");
  assert.equal((await accounts.status()).login, EMAIL);
  await accounts.setPassword(EMAIL, "another password");
  assert.equal((await accounts.status()).method, "none");
  assert.equal(await accounts.signInByPassword(EMAIL, PASSWORD, ASKER), false);
  assert.equal(await accounts.signInByPassword(EMAIL, "another password", ASKER), true);
  await accounts.remove(EMAIL);
  assert.equal((await accounts.status()).method, "none");
  assert.deepEqual(await accounts.list(), ["you@example.org"]);
  await assert.rejects(accounts.remove(EMAIL), isBad);
  await assert.rejects(accounts.setPassword(EMAIL, PASSWORD), isBad);
});

test("accounts: a damaged record is not an account", async () => {
  const { accounts, store } = await house();
  store.records.set("account/user/odd@example.org", '{"email":"odd@example.org","password":{"N":1}}');
  store.records.set("account/session", '{"method":"engine","login":"odd@example.org","since":1}');
  assert.deepEqual(await accounts.list(), [EMAIL]);
  assert.equal(await accounts.signInByPassword("odd@example.org", "", ASKER), false);
  assert.equal((await accounts.status()).method, "none");
});

test("setLimits: kept with the account, also when its password changes; a record without limits allows everything", async () => {
  const { accounts, store } = await house();
  const none = { maxStreams: 0, groups: [] };
  const [[key, text]] = [...store.records] as [[string, string]];
  const { maxStreams: _, groups: __, ...old } = JSON.parse(text);
  await store.commit({ set: [[key, old]] });
  assert.deepEqual(await accounts.limits(EMAIL), none);
  assert.equal(await accounts.signInByPassword(EMAIL, PASSWORD, ASKER), true);
  await accounts.setLimits(" ME@Example.org", { maxStreams: 2, groups: ["News"] });
  assert.equal((await accounts.status()).login, EMAIL);
  await accounts.setPassword(EMAIL, "battery staple");
  assert.deepEqual(await accounts.limits(EMAIL), { maxStreams: 2, groups: ["News"] });
  assert.deepEqual(await accounts.limits("nobody@example.org"), none);
  for (const limits of [
    { maxStreams: -1, groups: [] },
    { maxStreams: 1.5, groups: [] },
    { maxStreams: 0, groups: [""] },
    { maxStreams: 0, groups: ["x".repeat(201)] },
  ])
    await assert.rejects(accounts.setLimits(EMAIL, limits), isBad);
  await assert.rejects(accounts.setLimits("you@example.org", none), isBad);
});
