import assert from "node:assert/strict";
import { test } from "node:test";
import { diagnosisSchema } from "../../routes/diagnosis.ts";
import type { Infohash } from "../../src/base/ids.ts";
import type { Diagnosis } from "../../src/playback/diagnosis/contract.ts";
import { fakeApp } from "./client.ts";

const DIAGNOSIS: Diagnosis = {
  rows: [
    { name: "Port", level: "ok", text: "Peers reach us." },
    { name: "Clock", level: "fail", text: "It is wrong.", advice: "Set it." },
  ],
  streams: [
    {
      infohash: "aa".repeat(20) as Infohash,
      name: "film",
      playersBuffering: [undefined, { code: "choked", sentence: "All choke us.", numbers: { peers: 3 } }],
      origins: { dht: 2 },
      peers: [
        {
          address: { host: "2001:db8::1", port: 4 },
          client: "someone",
          origin: "dht",
          bytesPerSecondDown: 10.4,
          bytesPerSecondUp: 0,
          slow: "it chokes us",
        },
      ],
    },
  ],
};
const dependencies = { diagnose: async () => DIAGNOSIS };
const NEIGHBOUR = {
  remote: { host: "192.168.1.9", port: 50000 },
  local: { host: "192.168.1.5", port: 6878 },
};

test("/api/diagnosis: returns everything to this host, as its schema describes", async () => {
  const { json } = fakeApp({ dependencies });
  const { result, error, status } = await json("/api/diagnosis");
  assert.equal(status, 200);
  assert.equal(error, null);
  assert.deepEqual(diagnosisSchema.parse(result), result);
  assert.deepEqual(result.rows[1], { name: "Clock", level: "fail", text: "It is wrong.", advice: "Set it." });
  assert.equal(result.rows[0].advice, null);
  const [stream] = result.streams;
  assert.deepEqual(stream.players, [
    { buffering: null },
    { buffering: { reason: "choked", text: "All choke us.", peers: 3 } },
  ]);
  assert.deepEqual(stream.peers[0].address, "[2001:db8::1]:4");
  assert.equal(stream.peers[0].bytes_per_second_down, 10);
});

test("/api/diagnosis: other hosts need the token, and pages of other sites are refused", async () => {
  const { call, library } = fakeApp({ dependencies });
  const away = { origin: NEIGHBOUR, host: "192.168.1.5:6878" };
  assert.equal((await call("/api/diagnosis", away)).status, 401);
  assert.equal((await call("/api/diagnosis?token=wrong", away)).status, 401);
  const token = await library.access.token();
  assert.equal((await call(`/api/diagnosis?token=${token}`, away)).status, 200);
  const bearer = { ...away, headers: { authorization: `Bearer ${token}` } };
  assert.equal((await call("/api/diagnosis", bearer)).status, 200);
  const page = { headers: { origin: "https://evil.example", "sec-fetch-site": "cross-site" } };
  assert.equal((await call("/api/diagnosis", page)).status, 403);
});
