import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { after, before, test } from "node:test";
import { runInProcess } from "../cli/run-in-process.ts";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { openRaw } from "../parts/raw-socket.ts";

const EMAIL = "me@example.org";
const PASSWORD = "Tr0ub4dor-and-3";

let engine: EngineProcess;
const secrets: string[] = [PASSWORD, "wrong-Tr0ub4dor"];
before(async () => {
  engine = await startEngine({ env: { SLUICE_HOST: "0.0.0.0", SLUICE_LOG: "debug" } });
});
after(() => engine.stop());

const portOf = () => new URL(engine.url).port;

async function call(method: string, params: Record<string, string> = {}, base = engine.url) {
  const query = new URLSearchParams({ api_version: "3", method, ...params });
  const answer = await fetch(`${base}/server/api?${query}`);
  return (await answer.json()) as {
    result: Record<string, unknown> & string;
    error: { code: number; message: string };
  };
}

async function newToken(): Promise<string> {
  const { token } = (await call("get_api_access_token")).result;
  secrets.push(token as string);
  return token as string;
}

test("a running engine: its token opens private methods until sluice token renew", async () => {
  const token = await newToken();
  assert.equal((await call("check_auth")).error.code, 104);
  assert.equal((await call("check_auth", { token: "0".repeat(64) })).error.code, 105);
  assert.equal((await call("check_auth", { token })).result.method, "none");
  const renewed = (await runInProcess(["token", "renew"], { dataDir: engine.dataDir })).out.trim();
  secrets.push(renewed);
  assert.equal((await call("check_auth", { token })).error.code, 105);
  assert.equal((await call("check_auth", { token: renewed })).result.method, "none");
  assert.equal(await newToken(), renewed);
});

test("a running engine: an account that sluice account adds signs in, and a wrong password does not", async () => {
  const token = await newToken();
  await runInProcess(["account", "add", EMAIL], { dataDir: engine.dataDir, input: PASSWORD });
  const wrong = await call("sign_in", { token, email: EMAIL, password: "wrong-Tr0ub4dor" });
  assert.deepEqual(wrong.error, { message: "auth_error", code: 0 });
  assert.equal((await call("sign_in", { token, email: EMAIL, password: PASSWORD })).result, "ok");
  const { login, method, ace_auth_token } = (await call("check_auth", { token })).result;
  assert.deepEqual([login, method], [EMAIL, "engine"]);
  secrets.push(ace_auth_token as string);
  assert.equal((await call("sign_out", { token })).result, "ok");
});

test("a running engine: a request from this host's own network address is treated as local", async (t) => {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const own = all.find(({ internal, family }) => !internal && family === "IPv4");
  if (own === undefined) return t.skip("this machine is on no network");
  const { result } = await call("get_api_access_token", {}, `http://${own.address}:${portOf()}`);
  assert.match(result.token as string, /^[0-9a-f]{64}$/);
});

test("a running engine: a WebSocket under a foreign host name, or from a foreign page, is refused", async () => {
  const ask = async (host: string, origin: string) => {
    const raw = await openRaw(Number(portOf()));
    try {
      raw.send(
        `GET /app/screens/peerjs?id=1 HTTP/1.1\r\nHost: ${host}\r\nOrigin: ${origin}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${"A".repeat(22)}==\r\n\r\n`,
      );
      const heard = await raw.hears((bytes) => bytes.length > 12, 5_000);
      return heard?.toString("latin1", 9, 12);
    } finally {
      raw.end();
    }
  };
  const own = `127.0.0.1:${portOf()}`;
  assert.equal(await ask(own, `http://${own}`), "101");
  assert.equal(await ask(`evil.example:${portOf()}`, `http://evil.example:${portOf()}`), "421");
  assert.equal(await ask(own, "https://evil.example"), "403");
});

test("a running engine: logs none of these secrets at any level", () => {
  assert.ok(secrets.length >= 6);
  for (const secret of secrets) assert.ok(!engine.output().includes(secret));
  assert.match(engine.output(), /sign-in refused.*wrong password/);
});
