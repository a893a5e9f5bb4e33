import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { runtime } from "#runtime";
import { SILENT_LOG } from "../../src/base/log.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import { accountHouse } from "./account-house.ts";

const ISSUER = "https://accounts.example";
const AUDIENCE = "sluice.apps.example";
const ASKER = "192.168.1.7";

type Pair = Awaited<ReturnType<typeof generateKeyPair>>;

/** A local issuer that serves its public keys. */
const issuer = {
  pairs: new Map<string, Pair>(),
  asked: 0,
  body: undefined as string | undefined,
  status: 200,
};
const server = createServer(async (_request, response) => {
  issuer.asked++;
  const keys = await Promise.all(
    [...issuer.pairs].map(async ([kid, { publicKey }]) => ({ ...(await exportJWK(publicKey)), kid })),
  );
  response.writeHead(issuer.status, { "content-type": "application/json" });
  response.end(issuer.body ?? JSON.stringify({ keys }));
});

before(async () => {
  issuer.pairs.set("one", await generateKeyPair("RS256"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
after(() => new Promise((resolve) => server.close(resolve)));

function house(settings: { audience?: string; keysUrl?: string } = {}) {
  const keysUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
  issuer.asked = 0;
  issuer.body = undefined;
  issuer.status = 200;
  return accountHouse({
    google: { issuer: ISSUER, audience: AUDIENCE, keysUrl, ...settings },
    outbound: createOutbound(runtime, SILENT_LOG),
  });
}

interface Claims {
  readonly [name: string]: unknown;
}

/** A valid ID token, except for the given claims. */
async function token(
  clock: { unixSeconds(): number },
  claims: Claims = {},
  kid = "one",
  pair = issuer.pairs.get(kid)!,
) {
  const now = clock.unixSeconds();
  const good = { iss: ISSUER, aud: AUDIENCE, sub: "4711", iat: now, exp: now + 3600 };
  const all = { ...good, email: "Me@Example.org", email_verified: true, ...claims };
  const kept = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  return new SignJWT(kept).setProtectedHeader({ alg: "RS256", kid }).sign(pair.privateKey);
}

test("signInByGoogle: a valid token signs in with its verified address", async () => {
  const { accounts, clock } = house();
  assert.equal(await accounts.signInByGoogle(await token(clock), ASKER), true);
  const { method, login, authToken } = await accounts.status();
  assert.deepEqual([method, login], ["google", "me@example.org"]);
  assert.match(authToken!, /^[\w-]+\.[\w-]+\.[\w-]+$/);
  assert.equal(await accounts.signInByGoogle(await token(clock, { iss: "accounts.example" }), ASKER), true);
  assert.equal(issuer.asked, 1);
});

const BAD: readonly (readonly [name: string, claims: (now: number) => Claims])[] = [
  ["of another issuer", () => ({ iss: "https://evil.example" })],
  ["for another audience", () => ({ aud: "other.apps.example" })],
  ["for nobody", () => ({ aud: undefined })],
  ["that is over", (now) => ({ exp: now - 61 })],
  ["without an end", () => ({ exp: undefined })],
  ["without a beginning", () => ({ iat: undefined })],
  ["that is not valid yet", (now) => ({ nbf: now + 61 })],
  ["without an address", () => ({ email: undefined })],
  ["with an unverified address", () => ({ email_verified: false })],
  ["without a word on the address", () => ({ email_verified: undefined })],
  ["with an address that is none", () => ({ email: "me" })],
  ["with an address that is no text", () => ({ email: ["me@example.org"] })],
];

for (const [name, claims] of BAD) {
  test(`signInByGoogle: a token ${name} is refused`, async () => {
    const { accounts, clock } = house();
    assert.equal(
      await accounts.signInByGoogle(await token(clock, claims(clock.unixSeconds())), ASKER),
      false,
    );
    assert.equal((await accounts.status()).method, "none");
  });
}

test("signInByGoogle: refuses forged and unsigned tokens, and tokens signed with the public key", async () => {
  const { accounts, clock, lines } = house();
  const good = await token(clock);
  const [head, body, signature] = good.split(".");
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const publicKey = new TextEncoder().encode(
    JSON.stringify(await exportJWK(issuer.pairs.get("one")!.publicKey)),
  );
  const confused = new SignJWT({ iss: ISSUER, aud: AUDIENCE }).setProtectedHeader({
    alg: "HS256",
    kid: "one",
  });
  const forged = [
    await token(clock, {}, "one", await generateKeyPair("RS256")),
    `${encoded({ alg: "none" })}.${body}.`,
    `${head}.${body}.`,
    `${head}.${encoded({ sub: "x" })}.${signature}`,
    await confused.sign(publicKey),
    "",
    "a.b.c",
    "x".repeat(10_000),
  ];
  for (const [i, text] of forged.entries())
    assert.equal(await accounts.signInByGoogle(text, `10.0.0.${i}`), false, text.slice(0, 40));
  assert.ok(lines.every((line) => !line.includes(body!) && !line.includes(signature!)));
});

test("signInByGoogle: an unknown key triggers a fetch of the keys, at a limited rate", async () => {
  const { accounts, clock } = house();
  await accounts.signInByGoogle(await token(clock), ASKER);
  issuer.pairs.set("two", await generateKeyPair("RS256"));
  await clock.advance(60_000);
  assert.equal(await accounts.signInByGoogle(await token(clock, {}, "two"), ASKER), true);
  assert.equal(issuer.asked, 2);
  const stranger = await generateKeyPair("RS256");
  for (let i = 0; i < 20; i++)
    await accounts.signInByGoogle(await token(clock, {}, `kid ${i}`, stranger), `10.0.1.${i}`);
  assert.equal(issuer.asked, 2);
  await clock.advance(3_600_000);
  assert.equal(await accounts.signInByGoogle(await token(clock), ASKER), true);
  assert.equal(issuer.asked, 3);
});

test("signInByGoogle: disabled without an audience; refused if the keys are unavailable", async () => {
  const off = house({ audience: "" });
  assert.equal(await off.accounts.signInByGoogle(await token(off.clock), ASKER), false);
  assert.equal(issuer.asked, 0);
  assert.match(off.lines.join("\n"), /google-audience/);
  for (const [status, body] of [
    [500, undefined],
    [200, "<html>"],
    [200, '{"keys":{}}'],
    [200, "x".repeat(100_000)],
    [200, JSON.stringify({ keys: Array(100).fill({ kty: "RSA" }) })],
  ] as const) {
    const { accounts, clock } = house();
    Object.assign(issuer, { status, body });
    assert.equal(
      await accounts.signInByGoogle(await token(clock), ASKER),
      false,
      `${status} ${body?.slice(0, 20)}`,
    );
  }
});

test("signInByGoogle: a client with five failures in a minute must wait", async () => {
  const { accounts, clock } = house();
  for (let i = 0; i < 5; i++) await accounts.signInByGoogle("a.b.c", ASKER);
  assert.equal(await accounts.signInByGoogle(await token(clock), ASKER), false);
  await clock.advance(60_000);
  assert.equal(await accounts.signInByGoogle(await token(clock), ASKER), true);
});
