import assert from "node:assert/strict";
import { test } from "node:test";
import { CandidateFilter } from "../../src/web/page/viewer/candidate-filter.ts";

const candidate = (host: string) => `candidate:1 1 udp 2113937151 ${host} 50000 typ host generation 0`;
const MDNS = "5f0b4e8a-7c3d-4f5e-9a1b-0123456789ab.local";

test("CandidateFilter.allows: names of the browser and public addresses, but no address of a local network", () => {
  const filter = new CandidateFilter();
  const allowed = [MDNS, "8.8.8.8", "2001:db8::1", "172.32.0.1", "100.128.0.1"];
  for (const host of allowed) assert.ok(filter.allows(candidate(host)), host);
  const refused = [
    ...[
      "192.168.1.1",
      "10.0.0.1",
      "172.16.0.1",
      "172.31.9.9",
      "127.0.0.1",
      "169.254.1.1",
      "100.64.0.1",
      "0.0.0.0",
    ],
    ...["::1", "::", "fe80::1", "fd00::1", "fc00::1", "::ffff:192.168.1.1", "::ffff:c0a8:101"],
    ...["router.local", "router", "localhost", "192.168.1", "0x7f.1", "2130706433"],
  ];
  for (const host of refused) assert.ok(!filter.allows(candidate(host)), host);
  for (const text of ["nothing", "candidate:1 1 udp"]) assert.ok(!filter.allows(text), text);
  assert.ok(filter.allows(""));
});

test("CandidateFilter.allows: addresses of a network that this browser has revealed", () => {
  const filter = new CandidateFilter();
  filter.revealed(candidate(MDNS));
  filter.revealed(candidate("192.168.1.20"));
  assert.ok(filter.allows(candidate("192.168.1.77")));
  assert.ok(!filter.allows(candidate("192.168.2.77")));
});

test("CandidateFilter.description: removes candidates of local networks from an offer", () => {
  const sdp = ["v=0", `a=${candidate("192.168.1.1")}`, `a=${candidate(MDNS)}`, "a=end-of-candidates", ""];
  const filtered = new CandidateFilter().description(sdp.join("\r\n"));
  assert.deepEqual(filtered.split("\r\n"), [sdp[0], ...sdp.slice(2)]);
});
