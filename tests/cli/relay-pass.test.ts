import assert from "node:assert/strict";
import { mkdir, stat, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { runtime } from "#runtime";
import { readRelayPass } from "../../src/cli/relay-pass.ts";
import { encodeProof, provedRole } from "../../src/wire/live/role-proof.ts";
import { inFolder } from "../contract/folder.ts";
import { INFOHASH, KEY, SEED, TRANSPORT_FILE } from "../wire/live-vectors.ts";
import { runInProcess } from "./run-in-process.ts";

test("broadcast --relay-pass: with the pass, a relay proves its role; only its owner can read it", () =>
  inFolder(async (dataDir) => {
    const folder = `${dataDir}/broadcasts/news`;
    await mkdir(folder, { recursive: true });
    await writeFile(`${folder}/key`, SEED);
    await writeFile(`${folder}/news.sluice`, TRANSPORT_FILE);
    const file = `${dataDir}/relay.pass`;
    const { code, out } = await runInProcess(["broadcast", "--name", "news", "--relay-pass", file], {
      dataDir,
    });
    assert.equal(code, 0);
    assert.match(out, /^Relay pass of news, valid until \d{4}-\d\d-\d\d/);
    assert.equal((await stat(file)).mode & 0o077, 0);
    const pass = await readRelayPass(file, runtime);
    assert.equal(pass.infohash, INFOHASH);
    const parties = {
      infohash: INFOHASH,
      prover: new Uint8Array(20).fill(1),
      verifier: new Uint8Array(20).fill(2),
      challenge: new Uint8Array(16).fill(3),
    };
    const proof = encodeProof(pass.key, parties);
    const role = (bytes: Uint8Array) =>
      provedRole(bytes, parties, KEY.publicKey, runtime.ed25519Verifier, Date.now());
    assert.equal(role(proof), "relay");
    proof[10]! ^= 1;
    assert.equal(role(proof), undefined);
  }));

test("relay --pass, broadcast --relay-pass: mistakes are one line that says what to do", () =>
  inFolder(async (dataDir) => {
    const file = `${dataDir}/relay.pass`;
    for (const [args, expected] of [
      [["broadcast", "--relay-pass", file], /name the stream with --name/],
      [
        ["broadcast", "--name", "news", "--relay-pass", file],
        /never on air on this machine: start it once first/,
      ],
      [["relay", INFOHASH, "--pass", file], /does not exist/],
    ] as const) {
      const { code, err } = await runInProcess(args, { dataDir });
      assert.notEqual(code, 0);
      assert.match(err, expected);
      assert.equal(err.trim().split("\n").length, 1);
    }
    for (const text of ["", "{}", "null", '{"type":"sluice relay pass","infohash":"x"}', "x".repeat(5000)]) {
      await writeFile(file, text);
      const { err } = await runInProcess(["relay", INFOHASH, "--pass", file], { dataDir });
      assert.match(err, /is no relay pass/);
    }
  }));
